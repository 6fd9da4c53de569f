#include "pipeline/source/raw_source.hpp"

extern "C" {
#include <libavutil/common.h>
#include <libavutil/imgutils.h>
#include <libavutil/mathematics.h>
#include <libavutil/pixdesc.h>
}

#include <algorithm>
#include <array>
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
                  "raw video is read from a file, a FIFO or standard input (-), not from " +
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

FeedError wrong(const std::string& what) { return FeedError(FeedFault::kConfiguration, what); }

}  // namespace

RawSource::RawSource(const InputOptions& input, const SourceContext& context)
    : input_(input),
      context_(context),
      name_(redact(input.url)),
      importer_(context.pool, context.stats, input.color),
      reader_(open_reader(input, context)),
      skip_(context.pipe != nullptr ? std::exchange(context.pipe->rest, 0) : 0),
      frame_(make_frame()),
      packet_(make_packet()) {
  const RawVideoOptions& raw = input_.raw.value();
  for (const AvOption& option : input_.options) {
    if (option.inherited) continue;
    throw wrong("nothing takes the option " + option.key +
                ": raw video is not read through FFmpeg; remove input.options." + option.key);
  }
  if (raw.rate.num <= 0 || raw.rate.den <= 0) throw wrong("input.rate must be positive");
  lay_out(raw);
  if (reader_->positional() && frame_bytes_ >= kLeastReadAhead) {
    ahead_ = std::make_unique<ReadAhead>(*reader_, context_.pool, context_.interrupt,
                                         ReadAhead::Settings{.frame_bytes = frame_bytes_,
                                                             .tail_padding = kTailPadding,
                                                             .loop = input_.loop,
                                                             .timeout = input_.timeout,
                                                             .read_at = {}});
  }
  info_.live = is_live(input);
  info_.decoder = "rawvideo";
  info_.frame_rate = to_av(raw.rate);
  info_.time_base = reads_clock() ? AV_TIME_BASE_Q : av_inv_q(info_.frame_rate);
  begin_segment();
}

void RawSource::lay_out(const RawVideoOptions& raw) {
  const AVPixelFormat format = av_get_pix_fmt(raw.pixel_format.c_str());
  const AVPixFmtDescriptor* descriptor = av_pix_fmt_desc_get(format);
  if (descriptor == nullptr) {
    throw wrong("FFmpeg has no pixel format named " + raw.pixel_format +
                "; correct input.pixel_format");
  }
  constexpr auto kUnfit = AV_PIX_FMT_FLAG_PAL | AV_PIX_FMT_FLAG_HWACCEL | AV_PIX_FMT_FLAG_BITSTREAM;
  if ((descriptor->flags & kUnfit) != 0) {
    throw wrong("raw video of the pixel format " + raw.pixel_format +
                " cannot be read: its planes do not hold whole samples; convert it, and set "
                "input.pixel_format to what it has become");
  }
  if (av_image_check_size(static_cast<unsigned>(std::max(raw.width, 0)),
                          static_cast<unsigned>(std::max(raw.height, 0)), 0, nullptr) < 0 ||
      av_image_fill_linesizes(frame_->linesize, format, raw.width) < 0) {
    throw wrong(
        "frames of " + std::to_string(raw.width) + "x" + std::to_string(raw.height) + " " +
        raw.pixel_format +
        " cannot be read: they are empty, or more than FFmpeg's encoders take (16255x16255 or the "
        "like); correct input.size and input.pixel_format");
  }
  if (raw.pitch != 0 && raw.pitch != frame_->linesize[0]) {
    const int packed = frame_->linesize[0];
    if (raw.pitch < packed) {
      throw wrong("input.pitch is " + std::to_string(raw.pitch) + " bytes, less than the " +
                  std::to_string(packed) + " of one row");
    }
    // The other planes have pitches in proportion: half of it where rows have half the samples.
    for (int plane = 1; plane < 4; ++plane) {
      if (frame_->linesize[plane] == 0) continue;
      const int shift = plane < 3 ? descriptor->log2_chroma_w : 0;
      const int pairs = descriptor->flags & AV_PIX_FMT_FLAG_PLANAR && frame_->linesize[2] == 0;
      frame_->linesize[plane] = AV_CEIL_RSHIFT(raw.pitch, shift) * (pairs != 0 ? 2 : 1);
    }
    frame_->linesize[0] = raw.pitch;
  }
  std::array<std::ptrdiff_t, 4> pitches{};
  std::array<std::size_t, 4> bytes{};
  for (int plane = 0; plane < 4; ++plane) pitches[plane] = frame_->linesize[plane];
  if (av_image_fill_plane_sizes(bytes.data(), format, raw.height, pitches.data()) < 0) {
    throw wrong("frames of this size and pitch are too large; correct input.size and input.pitch");
  }
  for (int plane = 0; plane < 4; ++plane) {
    offsets_[plane] = frame_bytes_;
    frame_bytes_ += bytes[plane];
  }
  frame_->format = format;
  frame_->width = raw.width;
  frame_->height = raw.height;
}

void RawSource::begin_segment() {
  context_.timeline.begin_segment();
  context_.timeline.set_stream(
      StreamKind::kVideo,
      {.time_base = info_.time_base, .frame_rate = info_.frame_rate, .ours = reads_clock()});
  count_ = 0;
}

ReadResult RawSource::read(SourceItem& item) {
  for (;;) {
    if (!buffer_ && !ahead_) {
      // A new buffer is registered with the GPU, and its driver may keep us waiting.
      const CallScope allocating(context_.interrupt, input_.timeout);
      buffer_ = context_.pool.get(frame_bytes_ + kTailPadding);
      filled_ = 0;
    }
    try {
      if (!fill()) return ReadResult::kStopped;
    } catch (const IoError& error) {
      if (filled_ > 0) context_.stats.count(DecodeFault::kTruncated);
      if (error.code() == IoFault::kTimeout) leave_pipe();
      throw;
    }
    if (filled_ < frame_bytes_) {
      if (filled_ > 0) context_.stats.count(DecodeFault::kTruncated);
      filled_ = 0;
      skip_ = 0;
      if (!begin_again()) return ReadResult::kEnd;
      continue;
    }

    const auto now = std::chrono::steady_clock::now();
    const std::int64_t pts = stamp(now);
    const std::int64_t pts_us = av_rescale_q(pts, info_.time_base, AV_TIME_BASE_Q);
    if (input_.duration && !end_us_) end_us_ = av_sat_add64(pts_us, input_.duration->count());
    if (end_us_ && pts_us >= *end_us_) return ReadResult::kEnd;

    std::uint8_t* const data = buffer_.get()->data;
    for (int plane = 0; plane < 4; ++plane) {
      frame_->data[plane] = frame_->linesize[plane] != 0 ? data + offsets_[plane] : nullptr;
    }
    frame_->buf[0] = buffer_.release();
    item.frame = importer_.import(*frame_);
    av_buffer_unref(&frame_->buf[0]);
    item.frame.pts = pts;
    item.frame.duration = packet_->duration;
    item.frame.decoded_at = now;
    item.kind = SourceItem::Kind::kFrame;
    item.stream = StreamKind::kVideo;
    item.packet = nullptr;
    return ReadResult::kItem;
  }
}

/// Reads until the frame is whole or the data ends; false when stopped.
bool RawSource::fill() {
  const BusyMeter::Scope waiting(context_.stats.source_wait);
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
  while (filled_ < frame_bytes_) {
    const bool skipping = skip_ > 0;
    const std::size_t wanted = skipping ? std::min(skip_, frame_bytes_) : frame_bytes_ - filled_;
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
  if (filled_ > 0) skip_ = frame_bytes_ - filled_;
  if (context_.pipe == nullptr || reader_->regular()) return;
  *context_.pipe = {.reader = std::move(reader_), .rest = skip_};
}

std::int64_t RawSource::stamp(std::chrono::steady_clock::time_point now) {
  std::int64_t time = count_++;
  packet_->duration = 1;
  if (reads_clock()) {
    using Microseconds = std::chrono::duration<std::int64_t, std::micro>;
    const auto us = std::chrono::duration_cast<Microseconds>(now.time_since_epoch()).count();
    time = last_arrival_ = std::max(us, last_arrival_ + 1);
    packet_->duration = 0;
  }
  packet_->pts = packet_->dts = time;
  context_.timeline.stamp(StreamKind::kVideo, *packet_, now);
  return packet_->pts;
}

/// The data has ended: true when the file is read again from its start.
bool RawSource::begin_again() {
  if (!input_.loop || !reader_->regular()) {
    reader_->await_writer();
    leave_pipe();
    if (!info_.live) return false;
    throw IoError(IoFault::kEof, name_ + " ended; a live source should not");
  }
  if (count_ == 0) {
    throw IoError(IoFault::kEof, name_ + " cannot be looped: it holds not one whole frame of " +
                                     std::to_string(frame_bytes_) +
                                     " bytes; check input.size and input.pixel_format");
  }
  if (ahead_) {
    ahead_->rewind();
  } else {
    reader_->rewind();
  }
  begin_segment();
  return true;
}

}  // namespace framelane
