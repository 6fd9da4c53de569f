#include "pipeline/source/demuxer.hpp"

extern "C" {
#include <libavutil/mathematics.h>
}

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <limits>
#include <new>
#include <utility>

#include "pipeline/av/av_error.hpp"
#include "pipeline/av/av_log_capture.hpp"
#include "pipeline/base/backoff.hpp"
#include "pipeline/base/failure.hpp"
#include "pipeline/base/redact.hpp"
#include "pipeline/base/url.hpp"
#include "pipeline/source/access_unit.hpp"
#include "pipeline/source/container_traits.hpp"
#include "pipeline/source/source.hpp"

namespace framelane {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;

constexpr int kReaderBuffer = 256 * 1024;
/// How long closing may take, on a stop too. It says goodbye to the peer (a camera holds its RTSP
/// session until it gets a TEARDOWN), and the peer may be dead.
constexpr milliseconds kFarewell{300};
/// How often a device that has nothing yet is asked again.
constexpr milliseconds kDevicePoll{5};

/// Copies the data of a packet that lies in memory of a V4L2 device: that memory goes with the
/// device, and packets may stay for longer.
void copy_data(AVPacket& packet) {
  const PacketPtr copy = make_packet();
  if (av_new_packet(copy.get(), packet.size) < 0 || av_packet_copy_props(copy.get(), &packet) < 0) {
    throw std::bad_alloc();
  }
  std::memcpy(copy->data, packet.data, static_cast<std::size_t>(packet.size));
  av_packet_unref(&packet);
  av_packet_move_ref(&packet, copy.get());
}

}  // namespace

void Demuxer::FormatDeleter::operator()(AVFormatContext* context) const {
  interrupt.arm_farewell(kFarewell);
  avformat_close_input(&context);
  interrupt.disarm();
}

void Demuxer::IoDeleter::operator()(AVIOContext* io) const {
  av_freep(&io->buffer);
  avio_context_free(&io);
}

Demuxer::Demuxer(const InputOptions& input, bool want_audio, FeedStats& stats, Interrupt& interrupt,
                 PersistentPipe* pipe)
    : stats_(stats),
      timeout_(input.timeout),
      live_(is_live(input)),
      name_(redact(input.url)),
      host_(url_host(input.url)),
      options_(input.options),
      guard_(input),
      interrupt_(interrupt) {
  open(input, pipe);
  choose_streams(input.format, live_, want_audio);
  const bool paced = input.pace == InputOptions::Pace::kRealtime;
  reads_clock_ = untimed_ && (live_ || arrives_) && !paced && audio_ < 0;
  comes_live_ = live_ && !paced && !reads_clock_;
}

void Demuxer::open(const InputOptions& input, PersistentPipe* pipe) {
  const InputTarget target = target_of(input);
  set_time_limits(target);

  AVFormatContext* context = avformat_alloc_context();
  if (context == nullptr) throw std::bad_alloc();
  format_.reset(context);
  context->interrupt_callback = interrupt_.callback();
  context->flags |= AVFMT_FLAG_GENPTS;
  v4l2_ = is_v4l2(target);
  if (v4l2_) context->flags |= AVFMT_FLAG_NONBLOCK;  // a blocked read could not be interrupted
  const std::optional<std::string> path = local_path(target.url);
  bool fifo = false;
  const AVInputFormat* format = nullptr;
  {
    const CallScope call(interrupt_, timeout_);  // a dead file server may not answer
    format = find_demuxer(target);
    fifo = path && (*path == "-" || names_fifo(target.url));
  }
  if (fifo) {
    open_reader(*path, pipe);
    context->pb = io_.get();
    const bool has_rate =
        std::ranges::any_of(input.options, [](const AvOption& o) { return o.key == "framerate"; });
    arrives_ = !reader_->regular() && !has_rate;
  }
  const AvLogCapture log;
  const CallCheck check = guard_.check_calls();
  interrupt_.arm(timeout_);
  guard_.attach(*context, options_);
  (void)format_.release();  // a failed open frees it
  int error = avformat_open_input(&context, target.url.c_str(), format, options_.ptr());
  format_.reset(context);
  std::string refusal;
  if (error >= 0) refusal = guard_.excess_of(*format_);
  if (error >= 0 && refusal.empty()) error = examine(target);
  const bool late = interrupt_.overdue();
  interrupt_.disarm();
  const bool undisturbed = !reader_failure_ && interrupt_.cause() == Interrupt::Cause::kNone;
  if (refusal.empty()) {
    refusal = error < 0 ? guard_.refusal_in(error, {AvLogCapture::first(), log.reason("")})
                        : guard_.refusal_of(*format_, AvLogCapture::first());
  }
  if (!refusal.empty() && !interrupt_.stopped()) fail_refused(refusal);
  if (error >= 0 && undisturbed) return;
  rethrow_own_causes();
  // RTSP's own timeout, which may come first on a busy machine, ends in "Invalid data found", too.
  if (late && error == AVERROR_INVALIDDATA) fail_silent();
  if (target.format == "lavfi" && !shortage_of(error)) {
    throw FeedError(FeedFault::kConfiguration,
                    "the filter graph of " + name_ + " cannot be built (" +
                        redact(log.reason(av_error_text(error))) + "); correct input.url");
  }
  fail_open(error, redact(log.reason(av_error_text(error))));
}

void Demuxer::set_time_limits(const InputTarget& target) {
  // A protocol's own timeout gives a more precise error than an interrupted call.
  const std::string timeout_us = std::to_string(microseconds(timeout_).count());
  const std::string scheme = url_scheme(target.url);
  if (scheme.starts_with("rtsp") || scheme == "satip") {
    options_.set_default("timeout", timeout_us);
  } else if (!host_.empty()) {
    options_.set_default("rw_timeout", timeout_us);
  }
  if (live_) options_.set_default("analyzeduration", std::to_string(patience().count()));
}

microseconds Demuxer::patience() const {
  return std::min<microseconds>(timeout_ / 2, std::chrono::seconds(5));
}

int Demuxer::examine(const InputTarget& target) {
  AVFormatContext& context = *format_;
  const std::string scheme = url_scheme(target.url);
  const bool http = scheme == "http" || scheme == "https";
  interrupt_.arm(timeout_);
  bool endless = is_endless(context, http);
  if (endless && context.max_analyze_duration == 0) {
    context.max_analyze_duration = patience().count();
  }
  untimed_ = is_untimed(*context.iformat);
  // Frames that are read to find the rate, or (FFmpeg 7) a first timestamp, would all seem to
  // arrive at once.
  if ((live_ || endless || arrives_) && untimed_) context.fps_probe_size = context.max_ts_probe = 0;
  const int error = guard_.find_streams(context);
  // FLV tells its duration only with its packets. For a playlist FFmpeg now has a guess, from the
  // size of its text.
  if (!is_playlist(*context.iformat)) endless = is_endless(context, http);
  live_ = live_ || endless;
  const bool local = local_path(target.url).has_value() || target.format == "lavfi";
  if (times_are_continuous(*context.iformat)) {
    if (local || !live_) gaps_ = Timeline::Gaps::kAll;
  } else if (!live_) {
    gaps_ = Timeline::Gaps::kPlausible;
  }
  return error;
}

void Demuxer::open_reader(const std::string& path, PersistentPipe* pipe) {
  if (pipe != nullptr) reader_ = std::exchange(pipe->reader, nullptr);
  if (reader_ == nullptr || !reader_->is_still(path)) {
    reader_ = std::make_unique<FdReader>(path, timeout_, interrupt_.stop());
  }
  auto* buffer = static_cast<unsigned char*>(av_malloc(kReaderBuffer));
  if (buffer == nullptr) throw std::bad_alloc();
  io_.reset(avio_alloc_context(buffer, kReaderBuffer, 0, this, &Demuxer::read_callback, nullptr,
                               nullptr));
  if (!io_) {
    av_free(buffer);
    throw std::bad_alloc();
  }
}

int Demuxer::read_callback(void* self, std::uint8_t* data, int size) {
  auto& demuxer = *static_cast<Demuxer*>(self);
  if (demuxer.reader_failure_) return AVERROR_EXIT;
  try {
    const FdReader::Result result = demuxer.reader_->read(data, static_cast<std::size_t>(size));
    switch (result.status) {
      case FdReader::Status::kData:
        // One packet may take many reads, and each may take as long as the timeout.
        demuxer.interrupt_.arm(demuxer.timeout_);
        return static_cast<int>(result.bytes);
      case FdReader::Status::kEnd:
        return AVERROR_EOF;
      case FdReader::Status::kStopped:
        break;
    }
  } catch (const IoError&) {  // must not pass through C
    demuxer.reader_failure_ = std::current_exception();
  }
  return AVERROR_EXIT;
}

void Demuxer::choose_streams(const std::string& format, bool live, bool want_audio) {
  const auto best = [this](AVMediaType type, int related) {
    return av_find_best_stream(format_.get(), type, -1, related, nullptr, 0);
  };
  video_ = best(AVMEDIA_TYPE_VIDEO, -1);
  // The cover picture of a sound file is no video. Neither is a text file, which FFmpeg would draw.
  const bool picture = video_ >= 0 && (video().disposition & AV_DISPOSITION_ATTACHED_PIC) != 0;
  const bool text = video_ >= 0 && format.empty() && video().codecpar->codec_id == AV_CODEC_ID_ANSI;
  if (text) {
    throw IoError(IoFault::kDecode,
                  name_ + " is not a video framelane can read (it is text); check input.url");
  }
  if (video_ < 0 || picture) {
    const std::string message = name_ + " has no video stream; check input.url";
    if (live) throw IoError(IoFault::kDecode, message);
    throw FeedError(FeedFault::kConfiguration, message);
  }
  audio_ = want_audio ? std::max(-1, best(AVMEDIA_TYPE_AUDIO, video_)) : -1;
  for (int i = 0; i < static_cast<int>(format_->nb_streams); ++i) {
    if (i != video_ && i != audio_) format_->streams[i]->discard = AVDISCARD_ALL;
  }
}

bool Demuxer::playlist() const { return is_playlist(*format_->iformat); }

AVRational Demuxer::frame_rate() const {
  return plausible_rate(av_guess_frame_rate(format_.get(), format_->streams[video_], nullptr));
}

Timeline::StreamClock Demuxer::clock_of(StreamKind kind) const {
  const AVStream& stream = kind == StreamKind::kVideo ? video() : *audio();
  return {.time_base = time_base(kind),
          .frame_rate = kind == StreamKind::kVideo ? frame_rate() : AVRational{0, 1},
          .wrap_bits = reads_clock_ ? 64 : stream.pts_wrap_bits,
          .reorder_delay = stream.codecpar->video_delay,
          .ours = reads_clock_,
          .live = comes_live_,
          .gaps = gaps_};
}

std::optional<microseconds> Demuxer::start() const {
  if (reads_clock_) return std::nullopt;
  std::optional<microseconds> earliest;
  for (const AVStream* stream : {&video(), audio()}) {
    if (stream == nullptr || stream->start_time == AV_NOPTS_VALUE) continue;
    const microseconds start(av_rescale_q(stream->start_time, stream->time_base, AV_TIME_BASE_Q));
    earliest = std::min(earliest.value_or(start), start);
  }
  return earliest;
}

Demuxer::Flow Demuxer::read(AVPacket& packet) {
  const BusyMeter::Scope waiting(stats_.source_wait, stats_.trace(), TraceKind::kRead);
  const CallCheck check = guard_.check_calls();
  const auto begin = std::chrono::steady_clock::now();
  // A source that is silent is not waited for once more: it only gives what it still has.
  interrupt_.arm(silent_ ? milliseconds::zero() : timeout_);
  int error = 0;
  for (;;) {
    error = av_read_frame(format_.get(), &packet);
    if (error == AVERROR(EAGAIN)) {  // the device has no frame yet
      if (std::chrono::steady_clock::now() >= begin + timeout_) error = AVERROR(ETIMEDOUT);
      if (error == AVERROR(EAGAIN) && sleep_for(kDevicePoll, interrupt_.stop())) continue;
    }
    if (error < 0) break;
    if (!guard_.refusal().empty()) break;
    if (std::exchange(checked_streams_, format_->nb_streams) != format_->nb_streams) {
      const std::string excess = guard_.excess_of(*format_);
      if (!excess.empty()) fail_refused(excess);
    }
    if (packet.stream_index == video_ && is_without_picture(packet, *video().codecpar)) {
      av_packet_unref(&packet);
      continue;
    }
    if (packet.stream_index == video_ || packet.stream_index == audio_) {
      interrupt_.disarm();
      silent_ = silent_ || interrupt_.cause() == Interrupt::Cause::kTimeout || reader_failure_;
      guard_.packet_came();
      if (v4l2_) copy_data(packet);
      if (reads_clock_) stamp_arrival(packet);
      stats_.input_bytes.fetch_add(static_cast<std::uint64_t>(packet.size),
                                   std::memory_order_relaxed);
      // Only time in this call counts: the caller may be held up between two calls.
      without_video_ += std::chrono::steady_clock::now() - begin;
      if (packet.stream_index == video_) without_video_ = {};
      if (live_ && without_video_ >= timeout_) fail_silent("no video", ", only sound");
      return Flow::kPacket;
    }
    // A stream that appeared after choose_streams.
    format_->streams[packet.stream_index]->discard = AVDISCARD_ALL;
    av_packet_unref(&packet);
  }
  interrupt_.disarm();
  if (interrupt_.stopped()) return Flow::kStopped;
  if (!guard_.refusal().empty()) fail_refused(guard_.refusal());
  if (const std::string refusal = guard_.unreachable_by(error);
      error != AVERROR_EOF && !refusal.empty()) {
    fail_refused(refusal);
  }
  rethrow_own_causes();
  // Some demuxers report every failed read as the end.
  if (error == AVERROR_EOF && format_->pb != nullptr && format_->pb->error < 0) {
    error = format_->pb->error;
  }
  if (error == AVERROR_EOF) return Flow::kEnd;
  // The deadline passed in an earlier call, which still had a packet to hand out.
  if (error == AVERROR_EXIT) fail_silent();
  fail_read(error);
}

void Demuxer::stamp_arrival(AVPacket& packet) const {
  const auto now = std::chrono::steady_clock::now().time_since_epoch();
  packet.dts = std::chrono::duration_cast<microseconds>(now).count();
  // Packets that are reordered come in the order of their dts.
  packet.pts = video().codecpar->video_delay > 0 ? AV_NOPTS_VALUE : packet.dts;
  packet.duration = 0;
}

std::unique_ptr<FdReader> Demuxer::take_fifo() {
  if (reader_ == nullptr || !reader_->fifo()) return nullptr;
  reader_->await_writer();
  return std::move(reader_);
}

bool Demuxer::rewind() {
  if (io_ || (format_->iformat->flags & AVFMT_NOFILE) != 0) return false;
  const CallCheck check = guard_.check_calls();
  interrupt_.arm(timeout_);
  int error = 0;
  if ((format_->iformat->flags & AVFMT_TS_DISCONT) != 0) {
    // Transport streams have no index: a seek by time would search and miss the first pictures.
    error = av_seek_frame(format_.get(), -1, 0, AVSEEK_FLAG_BYTE);
  } else {
    const std::int64_t start = format_->start_time == AV_NOPTS_VALUE ? 0 : format_->start_time;
    error = avformat_seek_file(format_.get(), -1, std::numeric_limits<std::int64_t>::min(), start,
                               start, 0);
  }
  interrupt_.disarm();
  return error >= 0;
}

}  // namespace framelane
