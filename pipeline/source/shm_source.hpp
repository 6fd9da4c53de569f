#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>

#include "pipeline/av/av_ptr.hpp"
#include "pipeline/source/frame_importer.hpp"
#include "pipeline/source/input_options.hpp"
#include "pipeline/source/raw_clock.hpp"
#include "pipeline/source/raw_layout.hpp"
#include "pipeline/source/shm_connection.hpp"
#include "pipeline/source/source.hpp"

struct framelane_capture_stamp;

namespace framelane {

/// Raw video from another process's shared memory ("shm:SOCKET"), which is read in place: the GPU
/// uploads from it, and the CPU converts from it. A frame is acknowledged, so that its producer may
/// overwrite it, when its job is done in every encode.
///
/// A producer has only so many slots, and some stand still for good when all are held. So one slot
/// less than the area has may be lent; what comes beyond that is copied, counted
/// (HostCopy::kDecoder) and acknowledged at once. A frame of another size than input.size and
/// input.pixel_format give is dropped and counted as unsupported; if no other comes within the
/// timeout, the source is lost.
///
/// Its times: see RawClock. With `producer` the time at which a frame was taken is read from behind
/// the frame (capture/framelane_capture.h has the contract); where there is none, the frame has the
/// time of its arrival. The numbers that stand there too tell how many frames the producer has
/// published and not given to this reader; they are counted (FeedStats::frames_missed).
class ShmSource final : public Source {
 public:
  /// Connects. Throws as open_source does.
  ShmSource(const InputOptions& input, const SourceContext& context);
  ~ShmSource() override;

  const SourceInfo& info() const override { return info_; }
  ReadResult read(SourceItem& item) override;

 private:
  using Clock = std::chrono::steady_clock;

  void refuse(const ShmConnection::Announced& frame);
  void import(ShmConnection::Announced announced, InputFrame& frame);
  int most_lent(const SharedArea& area);
  void count_missed(const SharedArea& area, const framelane_capture_stamp& stamp);
  Clock::time_point taken_at(const framelane_capture_stamp* stamp, Clock::time_point arrived);

  const InputOptions input_;
  const SourceContext context_;
  const RawLayout layout_;
  RawClock clock_;
  SourceInfo info_;
  FrameImporter importer_;
  FramePtr frame_;  // refers to a frame only inside read()
  std::shared_ptr<ShmConnection> connection_;
  Clock::time_point last_frame_;  // or when the source was opened
  std::string last_area_;         // that a stamped frame came in; empty: none has come
  std::uint64_t last_sequence_ = 0;
  SaidOfProducer own_said_;
  SaidOfProducer& said_;
};

}  // namespace framelane
