#include "pipeline/source/raw_source.hpp"

#include <algorithm>
#include <cerrno>
#include <utility>

#include "pipeline/av/av_rational.hpp"
#include "pipeline/base/failure.hpp"
#include "pipeline/base/redact.hpp"
#include "pipeline/base/url.hpp"

namespace framelane {
namespace {

/// Encoders and swscale may read up to this many bytes behind the last row.
constexpr std::size_t kTailPadding = 128;
/// Frames of a file that are smaller are not read ahead: one core reads more than 20,000 of them a
/// second, and to hand one over costs a tenth of the time that reading it takes, or more.
constexpr std::size_t kLeastReadAhead = std::size_t{256} << 10;

std::string path_of(const InputOptions& input) {
  if (const std::optional<std::string> path = local_path(input.url)) return *path;
  throw FeedError(FeedFault::kConfiguration,
                  "raw video is read from a file, a FIFO, standard input (-) or shared memory "
                  "(shm:SOCKET), not from " +
                      redact(input.url) + "; correct input.url");
}

std::unique_ptr<FdReader> open_reader(const InputOptions& input, const SourceContext& context) {
  const std::string path = path_of(input);
  if (context.pipe != nullptr && context.pipe->reader) {
    std::unique_ptr<FdReader> open = std::move(context.pipe->reader);
    if (open->is_still(path)) return open;
    context.pipe->rest = 0;
  }
  const CallScope opening(context.interrupt, input.timeout);
  return std::make_unique<FdReader>(path, input.timeout, context.interrupt.stop());
}

}  // namespace

RawSource::RawSource(const InputOptions& input, const SourceContext& context)
    : input_(input),
      context_(context),
      name_(redact(input.url)),
      importer_(context.pool, context.stats, input.color),
      reader_(open_reader(input, context)),
      skip_(context.pipe != nullptr ? std::exchange(context.pipe->rest, 0) : 0),
      layout_(packed_layout(input_.raw.value())),
      clock_(*input_.raw, input_.duration, context_.timeline),
      frame_(make_frame()) {
  refuse_options(input_);
  if (reader_->positional() && layout_.bytes >= kLeastReadAhead) {
    ahead_ = std::make_unique<ReadAhead>(*reader_, context_.pool, context_.interrupt,
                                         ReadAhead::Settings{.frame_bytes = layout_.bytes,
                                                             .tail_padding = kTailPadding,
                                                             .loop = input_.loop,
                                                             .timeout = input_.timeout,
                                                             .read_at = {}});
  }
  info_.live = is_live(input);
  info_.decoder = "rawvideo";
  info_.frame_rate = to_av(input_.raw->rate);
  info_.time_base = clock_.time_base();
  clock_.begin_segment();
}

ReadResult RawSource::read(SourceItem& item) {
  for (;;) {
    if (!buffer_ && !ahead_) {
      // A new buffer is registered with the GPU, and its driver may keep us waiting.
      const CallScope allocating(context_.interrupt, input_.timeout);
      buffer_ = context_.pool.get(layout_.bytes + kTailPadding);
      filled_ = 0;
    }
    try {
      if (!fill()) return ReadResult::kStopped;
    } catch (const IoError& error) {
      if (filled_ > 0) context_.stats.count(DecodeFault::kTruncated);
      if (error.code() == IoFault::kTimeout) leave_pipe();
      throw;
    }
    if (filled_ < layout_.bytes) {
      if (filled_ > 0) context_.stats.count(DecodeFault::kTruncated);
      filled_ = 0;
      skip_ = 0;
      if (!begin_again()) return ReadResult::kEnd;
      continue;
    }

    const auto now = std::chrono::steady_clock::now();
    const std::optional<RawClock::Stamp> stamp = clock_.stamp(now, now);
    if (!stamp) return ReadResult::kEnd;
    refer_to_raw(layout_, buffer_.get()->data, *frame_);
    frame_->buf[0] = buffer_.release();
    item.frame = importer_.import(*frame_);
    av_buffer_unref(&frame_->buf[0]);
    item.frame.pts = stamp->pts;
    context_.stats.trace().mark(TraceKind::kPacket,
                                av_rescale_q(stamp->pts, info_.time_base, AV_TIME_BASE_Q));
    item.frame.duration = stamp->duration;
    item.frame.decoded_at = now;
    item.kind = SourceItem::Kind::kFrame;
    item.stream = StreamKind::kVideo;
    item.packet = nullptr;
    return ReadResult::kItem;
  }
}

/// Reads until the frame is whole or the data ends; false when stopped.
bool RawSource::fill() {
  const BusyMeter::Scope waiting(context_.stats.source_wait, context_.stats.trace(),
                                 TraceKind::kRead);
  return ahead_ ? take_read_ahead() : read_here();
}

bool RawSource::take_read_ahead() {
  const CallScope reading(context_.interrupt, input_.timeout);
  const ReadAhead::Status status = ahead_->next(buffer_, filled_);
  context_.stats.input_bytes.fetch_add(filled_, std::memory_order_relaxed);
  if (status == ReadAhead::Status::kFailed) {
    const int error = ahead_->error();
    throw error == EAGAIN ? reader_->timeout_error() : reader_->read_error(error);
  }
  return status != ReadAhead::Status::kStopped;
}

bool RawSource::read_here() {
  std::uint8_t* const data = buffer_.get()->data;
  while (filled_ < layout_.bytes) {
    const bool skipping = skip_ > 0;
    const std::size_t wanted = skipping ? std::min(skip_, layout_.bytes) : layout_.bytes - filled_;
    const CallScope reading(context_.interrupt, input_.timeout);
    const FdReader::Result result = reader_->read(data + filled_, wanted);
    if (result.status == FdReader::Status::kStopped) return false;
    if (result.status == FdReader::Status::kEnd) break;
    // Another writer begins with a whole frame; what the last one owed is not to come any more.
    const bool new_writer = (skipping || filled_ == 0) && reader_->has_been_joined();
    if (new_writer) skip_ = 0;
    (skip_ > 0 ? skip_ -= result.bytes : filled_ += result.bytes);
    context_.stats.input_bytes.fetch_add(result.bytes, std::memory_order_relaxed);
  }
  return true;
}

/// Leaves a pipe, still open, for the next source. If the writer has stalled in the middle of a
/// frame, the next source has to skip the rest of that frame, unless another writer comes.
void RawSource::leave_pipe() {
  if (filled_ > 0) skip_ = layout_.bytes - filled_;
  if (context_.pipe == nullptr || reader_->regular()) return;
  *context_.pipe = {.reader = std::move(reader_), .rest = skip_};
}

/// The data has ended: true when the file is read again from its start.
bool RawSource::begin_again() {
  if (!input_.loop || !reader_->regular()) {
    reader_->await_writer();
    leave_pipe();
    if (!info_.live) return false;
    throw IoError(IoFault::kEof, name_ + " ended; a live source should not");
  }
  if (clock_.frames() == 0) {
    throw IoError(IoFault::kEof, name_ + " cannot be looped: it holds not one whole frame of " +
                                     std::to_string(layout_.bytes) +
                                     " bytes; check input.size and input.pixel_format");
  }
  if (ahead_) {
    ahead_->rewind();
  } else {
    reader_->rewind();
  }
  clock_.begin_segment();
  return true;
}

}  // namespace framelane
