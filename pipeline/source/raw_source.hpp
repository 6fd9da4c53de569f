#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "pipeline/source/fd_reader.hpp"
#include "pipeline/source/frame_importer.hpp"
#include "pipeline/source/source.hpp"

namespace framelane {

/// Raw video from a file, a FIFO or standard input, read straight into the memory the frames stay
/// in: a frame's planes follow one another with the pitch they come with. A frame is there when its
/// last byte is; one that its writer does not finish is counted as truncated.
///
/// Timestamps: by rate, frame n is n ticks of 1/rate; by arrival, the steady clock when the last
/// byte came, in microseconds. Either way the feed's line continues over loops and reopening.
class RawSource final : public Source {
 public:
  /// Opens; does not wait for a FIFO's writer. Throws as open_source does.
  RawSource(const InputOptions& input, const SourceContext& context);

  const SourceInfo& info() const override { return info_; }
  ReadResult read(SourceItem& item) override;

 private:
  void lay_out(const RawVideoOptions& raw);
  void begin_segment();
  bool fill();
  void keep_pipe();
  std::int64_t stamp(std::chrono::steady_clock::time_point now);
  bool go_round();

  const InputOptions input_;
  const SourceContext context_;
  const std::string name_;
  SourceInfo info_;
  FrameImporter importer_;
  std::unique_ptr<FdReader> reader_;
  std::size_t skip_;  // bytes before the next frame: the rest of one that was given up
  FramePtr frame_;    // the shape of every frame; refers to a buffer only inside read()
  PacketPtr packet_;  // carries timestamps through the timeline
  std::array<std::size_t, 4> offsets_{};
  std::size_t frame_bytes_ = 0;
  BufferRef buffer_;        // the frame being read
  std::size_t filled_ = 0;  // bytes of it
  std::int64_t count_ = 0;  // frames since the segment began
  std::int64_t last_arrival_ = 0;
  std::optional<std::int64_t> end_us_;  // on the timeline, from input.duration
};

}  // namespace framelane
