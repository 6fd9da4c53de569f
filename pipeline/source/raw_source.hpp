#pragma once

#include <chrono>
#include <cstddef>
#include <memory>
#include <string>

#include "pipeline/av/av_ptr.hpp"
#include "pipeline/av/buffer_ref.hpp"
#include "pipeline/source/fd_reader.hpp"
#include "pipeline/source/frame_importer.hpp"
#include "pipeline/source/input_options.hpp"
#include "pipeline/source/raw_clock.hpp"
#include "pipeline/source/raw_layout.hpp"
#include "pipeline/source/read_ahead.hpp"
#include "pipeline/source/source.hpp"

namespace framelane {

/// Raw video from a file, a FIFO or standard input. It is read straight into the pool's buffers, in
/// which the frames stay: their planes lie one after the other, with the pitch they come with. A
/// frame counts as arrived with its last byte; one that its writer does not finish is counted as
/// truncated. A file's frames are read ahead (ReadAhead), unless they are small: what comes out is
/// the same. Their times: see RawClock.
class RawSource final : public Source {
 public:
  /// Opens; does not wait for a FIFO's writer. Throws as open_source does.
  RawSource(const InputOptions& input, const SourceContext& context);

  const SourceInfo& info() const override { return info_; }
  ReadResult read(SourceItem& item) override;

 private:
  bool fill();
  bool read_here();
  bool take_read_ahead();
  void leave_pipe();
  bool begin_again();

  const InputOptions input_;
  const SourceContext context_;
  const std::string name_;
  SourceInfo info_;
  FrameImporter importer_;
  std::unique_ptr<FdReader> reader_;
  std::size_t skip_;  // bytes to read before the next frame: the rest of one that stayed incomplete
  const RawLayout layout_;
  RawClock clock_;
  FramePtr frame_;                    // refers to a buffer only inside read()
  std::unique_ptr<ReadAhead> ahead_;  // null: the source thread reads
  BufferRef buffer_;                  // the frame being read
  std::size_t filled_ = 0;            // bytes of it that have been read
};

}  // namespace framelane
