// Longer than 400 lines: all that one class asks of FFmpeg's muxers.
#include "pipeline/output/muxer.hpp"

extern "C" {
#include <libavutil/mathematics.h>
#include <libavutil/opt.h>
}

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <new>
#include <sstream>
#include <string_view>
#include <utility>

#include "pipeline/av/av_error.hpp"
#include "pipeline/av/av_log_capture.hpp"
#include "pipeline/av/dictionary.hpp"
#include "pipeline/base/backoff.hpp"
#include "pipeline/base/failure.hpp"
#include "pipeline/base/redact.hpp"
#include "pipeline/base/utc_time.hpp"
#include "pipeline/output/hls_options.hpp"
#include "pipeline/output/io_error.hpp"
#include "pipeline/output/muxer_defaults.hpp"

namespace framelane {
namespace {

/// True if opening failed because of what the configuration asks for, so that no retry can help.
bool is_refusal(int error, const Container& container) {
  // "Invalid data" from a local muxer is about the codec; from a peer it may be about its answer.
  return (container.local && error == AVERROR_INVALIDDATA) || error == AVERROR(EINVAL) ||
         error == AVERROR_OPTION_NOT_FOUND || error == AVERROR_PROTOCOL_NOT_FOUND ||
         error == AVERROR_PATCHWELCOME || error == AVERROR(ENOSYS) ||
         error == AVERROR_MUXER_NOT_FOUND;
}

/// True if the codec's headers have to be put before the keyframes. They are not in the packets of
/// our encoders, nor in those of a source whose container keeps them apart.
bool lacks_headers(const AVOutputFormat& muxer, const AVCodecParameters& video) {
  if ((muxer.flags & AVFMT_GLOBALHEADER) || video.extradata_size < 4) return false;
  switch (video.codec_id) {
    case AV_CODEC_ID_MPEG4:
      return true;
    case AV_CODEC_ID_H264:
    case AV_CODEC_ID_HEVC: {
      // The muxers of MPEG-TS do it themselves, and so do all if the headers have MP4's form.
      const bool start_codes = video.extradata[0] == 0;
      const std::string_view name = muxer.name;
      return start_codes && name != "mpegts" && name != "rtp_mpegts";
    }
    default:
      return false;
  }
}

/// The text for an error of opening. FFmpeg's log line says more than the text of most of its own
/// codes; the text of the system's codes is enough, except for EIO.
std::string reason_of(int error, const AvLogCapture& log) {
  if (is_shortage(error)) return shortage_text(av_error_text(error));
  constexpr int kLargestErrno = 4095;
  const bool from_system = error >= -kLargestErrno && error != AVERROR(EIO);
  return from_system ? av_error_text(error) : redact(log.reason(av_error_text(error)));
}

bool is_fifo(const Container& container) {
  std::error_code error;
  return container.local && std::filesystem::is_fifo(container.url, error);
}

}  // namespace

Muxer::Muxer(const OutputOptions& options, const Container& container, const std::string& url,
             const MediaFormat& format, std::optional<WallTime> begins, MuxerStops stops)
    : container_(container),
      url_(redact(url)),
      name_(options.name),
      timeout_(options.timeout),
      bounded_(!container.local || is_fifo(container)),
      stops_(std::move(stops)),
      interrupt_(stops_.abandoned) {
  if (avformat_alloc_output_context2(&context_, container.muxer, nullptr, url.c_str()) < 0) {
    throw std::bad_alloc();
  }
  try {
    context_->interrupt_callback = interrupt_.callback();
    context_->opaque = this;
    open_default_ = context_->io_open;
    context_->io_open = &Muxer::open_part;
    context_->io_close2 = &Muxer::close_part;
    // A peer waits for every packet; a file is written in blocks, and at every flush().
    if (container.kind == OutputKind::kStream) context_->flush_packets = 1;
    if (options.only != StreamKind::kAudio) {
      add_stream(format.video);
      if (lacks_headers(*container.muxer, *format.video.parameters)) put_headers_in_band();
    }
    if (options.only != StreamKind::kVideo && format.audio &&
        holds_audio(container, format.audio->parameters->codec_id)) {
      audio_index_ = static_cast<int>(context_->nb_streams);
      add_stream(*format.audio);
    }
    // A stop shortens the deadline and does not end calls at once: a trailer is still to be
    // written.
    if (bounded_) {
      on_stop_.emplace(stops_.stop, [this] { interrupt_.arm(time_limit()); });
      on_drain_.emplace(stops_.drain, [this] { interrupt_.arm(time_limit()); });
    }
    if (begins) tell_time(*begins);
    write_header(options, url);
  } catch (...) {
    close();
    throw;
  }
}

Muxer::~Muxer() { close(); }

/// MP4 has whole seconds, and a ProducerReferenceTimeBox with the rest before each fragment.
void Muxer::tell_time(WallTime begins) {
  av_dict_set(&context_->metadata, "creation_time", utc_time(begins).c_str(), 0);
  const void* const options = &container_.muxer->priv_class;
  carries_times_ = container_.muxer->priv_class != nullptr &&
                   av_opt_find(const_cast<void*>(options), "write_prft", nullptr, 0,
                               AV_OPT_SEARCH_FAKE_OBJ) != nullptr;
}

void Muxer::add_stream(const StreamFormat& format) {
  AVStream* stream = avformat_new_stream(context_, nullptr);
  if (!stream || avcodec_parameters_copy(stream->codecpar, format.parameters.get()) < 0) {
    throw std::bad_alloc();
  }
  stream->time_base = format.time_base;
  stream->avg_frame_rate = format.frame_rate;
  stream->sample_aspect_ratio = stream->codecpar->sample_aspect_ratio;
  // A tag from another container may have no meaning, or another one, in this one.
  AVCodecParameters& parameters = *stream->codecpar;
  const AVCodecTag* const* tags = context_->oformat->codec_tag;
  if (tags && av_codec_get_id(tags, parameters.codec_tag) != parameters.codec_id) {
    parameters.codec_tag = 0;
  }
  // FFmpeg prefers hev1, which Apple's players refuse.
  constexpr std::uint32_t kHvc1 = MKTAG('h', 'v', 'c', '1');
  if (parameters.codec_id == AV_CODEC_ID_HEVC && tags &&
      av_codec_get_id(tags, kHvc1) == AV_CODEC_ID_HEVC) {
    parameters.codec_tag = kHvc1;
  }
}

void Muxer::put_headers_in_band() {
  const AVBitStreamFilter* filter = av_bsf_get_by_name("dump_extra");
  if (!filter) return;  // this FFmpeg was built without it
  if (av_bsf_alloc(filter, &headers_in_band_) < 0 ||
      avcodec_parameters_copy(headers_in_band_->par_in, context_->streams[0]->codecpar) < 0 ||
      av_bsf_init(headers_in_band_) < 0) {
    throw std::bad_alloc();
  }
}

void Muxer::write_header(const OutputOptions& options, const std::string& target) {
  const AvOptions own = container_.kind == OutputKind::kPlaylist
                            ? without_hls_options(options.options)
                            : options.options;
  Dictionary dictionary(own);
  set_muxer_defaults(dictionary, container_, *context_->streams[0]->codecpar);
  if (carries_times_) dictionary.set_default("write_prft", "wallclock");
  const bool opens = !(context_->oformat->flags & AVFMT_NOFILE);
  std::string url = target;
  if (opens && is_fifo(container_)) {
    open_fifo(target);
    url = "pipe:" + std::to_string(fifo_);
  }
  const AvLogCapture log;
  arm();
  const auto check_opening = [&](int error, const char* doing) {
    const bool interrupted = interrupt_.cause() != Interrupt::Cause::kNone;
    if (error < 0 && !interrupted && is_refusal(error, container_)) {
      throw FeedError(FeedFault::kConfiguration, "output " + name_ + ": cannot " + doing + " " +
                                                     url_ + " as " + container_.muxer->name + " (" +
                                                     redact(log.reason(av_error_text(error))) +
                                                     "); check its url, format and options");
    }
    check(error, doing, &log);
  };
  if (opens) {
    check_opening(avio_open2(&context_->pb, url.c_str(), AVIO_FLAG_WRITE,
                             &context_->interrupt_callback, dictionary.ptr()),
                  "open");
  }
  check_opening(avformat_write_header(context_, dictionary.ptr()), "open");
  on_drain_.reset();
  opening_ = false;
  open_ = true;
  interrupt_.disarm();
  packets_.emplace(container_, *context_);
  note_cut_point(0);
  if (const auto key = dictionary.unconsumed(own)) {
    throw FeedError(FeedFault::kConfiguration,
                    "output " + name_ + ": neither the container " + container_.muxer->name +
                        " nor its protocol has an option \"" + *key + "\"; remove or correct it");
  }
  check(part_error_, "open", &log);
}

/// Opens the FIFO non-blocking, so that FFmpeg asks the interrupt while it waits for the reader.
/// FFmpeg's own open() waits for a reader, and nothing can end that.
void Muxer::open_fifo(const std::string& path) {
  arm();
  for (;;) {
    fifo_ = ::open(path.c_str(), O_WRONLY | O_NONBLOCK | O_CLOEXEC);
    if (fifo_ >= 0) return;
    if (errno != ENXIO) check(AVERROR(errno), "open");
    constexpr std::chrono::milliseconds kLook{10};
    if (interrupt_.overdue() || !sleep_for(kLook, stops_.stop)) {
      throw IoError(IoFault::kRefused, "nobody reads the FIFO " + url_);
    }
  }
}

bool Muxer::write(AVPacket& packet, StreamKind stream, AVRational time_base, std::int64_t offset_us,
                  std::int64_t shift_us) {
  const std::int64_t offset = av_rescale_q(offset_us, AV_TIME_BASE_Q, time_base);
  if (packet.pts != AV_NOPTS_VALUE) packet.pts -= offset;
  if (packet.dts != AV_NOPTS_VALUE) packet.dts -= offset;
  packet.stream_index = stream == StreamKind::kVideo ? 0 : audio_index_;
  const AVRational written_base = context_->streams[packet.stream_index]->time_base;
  av_packet_rescale_ts(&packet, time_base, written_base);
  const std::int64_t shift = av_rescale_q(shift_us, AV_TIME_BASE_Q, written_base);
  if (packet.pts != AV_NOPTS_VALUE) packet.pts += shift;
  if (packet.dts != AV_NOPTS_VALUE) packet.dts += shift;
  packet.pos = -1;
  if (headers_in_band_ && stream == StreamKind::kVideo &&
      (av_bsf_send_packet(headers_in_band_, &packet) < 0 ||
       av_bsf_receive_packet(headers_in_band_, &packet) < 0)) {
    throw std::bad_alloc();  // it fails for no other reason
  }

  arm();
  const auto size = static_cast<std::uint64_t>(packet.size);
  const std::int64_t position = context_->pb ? avio_tell(context_->pb) : 0;
  // Packets are interleaved already, so libavformat need not do it.
  const int error = av_write_frame(context_, &packet);
  interrupt_.disarm();
  const bool io_failed = part_error_ < 0 || (context_->pb && context_->pb->error < 0) ||
                         interrupt_.cause() != Interrupt::Cause::kNone;
  if (!io_failed && (error == AVERROR(EINVAL) || error == AVERROR_INVALIDDATA)) return false;
  check(part_error_, "write to");
  check(error, "write to");
  if (!context_->pb) bytes_ += size;
  const bool wrote = context_->pb && avio_tell(context_->pb) > position;
  note_cut_point(packets_->add(stream, size, wrote));
  return true;
}

void Muxer::flush() {
  if (!context_->pb) return;
  arm();
  avio_flush(context_->pb);
  interrupt_.disarm();
  check(context_->pb->error, "write to");
}

void Muxer::end_fragment() {
  arm();
  const int error = av_write_frame(context_, nullptr);
  interrupt_.disarm();
  check(part_error_, "write to");
  check(error, "write to");
}

void Muxer::close_file() {
  if (!context_->pb) return;
  arm();
  avio_flush(context_->pb);
  note_position();
  int error = context_->pb->error;
  const int closed = avio_closep(&context_->pb);
  interrupt_.disarm();
  position_ = 0;
  // What follows would rename and replace files that another thread may write by now.
  if (interrupt_.stopped()) error = AVERROR_EXIT;
  check(error < 0 ? error : closed, "complete");
}

void Muxer::open_file(const std::string& url) {
  url_ = redact(url);
  arm();
  const int error = avio_open2(&context_->pb, url.c_str(), AVIO_FLAG_WRITE,
                               &context_->interrupt_callback, nullptr);
  interrupt_.disarm();
  check(error, "open");
  // A segment of MPEG-TS begins with the tables that say what is in it.
  av_opt_set(context_->priv_data, "mpegts_flags", "+resend_headers", 0);
}

void Muxer::finish() {
  if (container_.kind == OutputKind::kPlaylist) {
    open_ = false;  // its segments have no trailer
    return;
  }
  arm();
  open_ = false;
  const int written = av_write_trailer(context_);
  int closed = 0;
  if (context_->pb) {
    avio_flush(context_->pb);
    note_position();
    const int error = context_->pb->error;
    closed = avio_closep(&context_->pb);
    if (error < 0) closed = error;
  }
  interrupt_.disarm();
  check(part_error_, "complete");
  check(closed, "complete");
  check(written, "complete");
  cut_points_.complete();
}

std::uint64_t Muxer::take_bytes() {
  note_position();
  return std::exchange(bytes_, 0);
}

void Muxer::note_position() {
  if (!context_->pb) return;
  // Trailers seek back: the highest position says how much was written.
  const std::int64_t position = avio_tell(context_->pb);
  if (position <= position_) return;
  bytes_ += static_cast<std::uint64_t>(position - position_);
  position_ = position;
}

/// Muxers collect what belongs together (a cluster, a fragment) elsewhere, and hand it to the file
/// as a whole.
void Muxer::note_cut_point(std::uint64_t packets) {
  if (context_->pb) cut_points_.add({avio_tell(context_->pb), packets}, context_->pb->pos);
}

std::chrono::milliseconds Muxer::time_limit() const {
  if (stops_.stop.stop_requested()) return std::min(timeout_, kStopGrace);
  return opening_ && stops_.drain.stop_requested() ? std::min(timeout_, kDrainGrace) : timeout_;
}

void Muxer::arm() {
  if (!bounded_) return;
  interrupt_.arm(timeout_);
  // A stop that came just before the line above has armed a shorter deadline in vain.
  if (const auto limit = time_limit(); limit != timeout_) interrupt_.arm(limit);
}

void Muxer::check(int error, const char* doing, const AvLogCapture* log) {
  if (error >= 0) return;
  const std::string what = std::string("cannot ") + doing + " " + url_ + ": ";
  switch (interrupt_.cause()) {
    case Interrupt::Cause::kTimeout: {
      std::ostringstream seconds;
      seconds << std::chrono::duration<double>(time_limit()).count();
      throw IoError(IoFault::kTimeout, what + "no progress for " + seconds.str() + " s");
    }
    case Interrupt::Cause::kStopped:
    case Interrupt::Cause::kNone:
      break;
  }
  const std::string text = what + (error == AVERROR(ENOMEM) ? *shortage_of(error)
                                   : log                    ? reason_of(error, *log)
                                                            : av_error_text(error));
  if (container_.local) throw_file_error(error, text);
  throw_io_error(error, text);
}

void Muxer::close() {
  // What FFmpeg still writes here must not wait for a peer.
  on_stop_.reset();
  on_drain_.reset();
  if (bounded_) interrupt_.arm(std::chrono::milliseconds(0));
  if (open_ && (context_->oformat->flags & AVFMT_NOFILE) != 0) {
    // Muxers that open files and connections by themselves (dash, rtsp) free them only when they
    // write the trailer. It may touch no file now, nor wait for a peer.
    refuses_files_ = true;
    av_write_trailer(context_);
  }
  if (context_ && context_->pb) avio_closep(&context_->pb);
  avformat_free_context(std::exchange(context_, nullptr));
  av_bsf_free(&headers_in_band_);
  if (fifo_ >= 0) ::close(std::exchange(fifo_, -1));
}

int Muxer::open_part(AVFormatContext* context, AVIOContext** io, const char* url, int flags,
                     AVDictionary** options) {
  const auto& muxer = *static_cast<Muxer*>(context->opaque);
  if (muxer.refuses_files_) return AVERROR(EIO);
  if (muxer.interrupt_.stopped()) return AVERROR_EXIT;
  return muxer.open_default_(context, io, url, flags, options);
}

int Muxer::close_part(AVFormatContext* context, AVIOContext* io) {
  auto& muxer = *static_cast<Muxer*>(context->opaque);
  avio_flush(io);
  if (io->error < 0) muxer.part_error_ = io->error;
  const int closed = avio_close(io);
  if (closed < 0 && muxer.part_error_ >= 0) muxer.part_error_ = closed;
  return closed;
}

}  // namespace framelane
