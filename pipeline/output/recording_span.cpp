#include "pipeline/output/recording_span.hpp"

extern "C" {
#include <libavutil/mathematics.h>
}

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <new>
#include <optional>
#include <span>
#include <system_error>

#include "pipeline/av/av_error.hpp"
#include "pipeline/av/av_ptr.hpp"
#include "pipeline/av/dictionary.hpp"
#include "pipeline/base/failure.hpp"
#include "pipeline/base/redact.hpp"
#include "pipeline/base/utc_time.hpp"
#include "pipeline/output/muxer_defaults.hpp"

namespace framelane {
namespace {

using std::chrono::microseconds;
using std::chrono::system_clock;

std::int64_t us_between(system_clock::time_point from, system_clock::time_point to) {
  return std::chrono::duration_cast<microseconds>(to - from).count();
}

/// Packets of sound before the first picture of a recording.
constexpr std::size_t kMostEarly = 1000;

/// A recording, as messages name it.
std::string named(const Recording& recording) {
  return redact(recording.file) + " (" + utc_time(recording.times.begin) + " to " +
         utc_time(recording.times.end) + ")";
}

Container mp4() {
  Container container;
  container.kind = OutputKind::kFile;
  container.muxer = av_guess_format("mp4", nullptr, nullptr);
  return container;
}

}  // namespace

/// A recording that is being read; `packet` is its first picture at first.
struct RecordingSpan::Open {
  Open(FileDescriptor descriptor, const Container& container, const Recording& what,
       ReadingEnds ends)
      : recording(what),
        file(std::move(descriptor), container, RecordingFile::For::kPackets, std::move(ends)) {
    file.find_streams();
    if (!read_picture(&early))
      throw RecordingsRefused("not_in_mp4", named(what) +
                                                " has no timestamps, which an MP4 needs; download "
                                                "the files instead");
    origin = packet->pts;
    const std::span streams(file.context().streams, file.context().nb_streams);
    const auto found = std::ranges::find_if(streams, [](const AVStream* stream) {
      return stream->codecpar->codec_type == AVMEDIA_TYPE_AUDIO;
    });
    if (found != streams.end() && *found != main) sound = *found;
  }

  /// False at the end. What comes before the picture is added to `others`.
  bool read_picture(std::vector<PacketPtr>* others = nullptr) {
    while (file.read(*packet)) {
      main = file.main_stream();
      if (packet->stream_index == main->index && packet->pts != AV_NOPTS_VALUE) return true;
      if (others == nullptr || others->size() >= kMostEarly) continue;
      others->push_back(make_packet());
      av_packet_move_ref(others->back().get(), packet.get());
    }
    return false;
  }
  bool is_keyframe() const { return (packet->flags & AV_PKT_FLAG_KEY) != 0; }
  /// When the packet in hand is to be decoded, as far as that is known.
  std::int64_t decoded() const { return packet->dts != AV_NOPTS_VALUE ? packet->dts : packet->pts; }
  /// When something of the stream is, from the first picture on.
  std::int64_t us_from_origin(std::int64_t time, const AVStream& stream) const {
    return av_rescale_q(time, stream.time_base, AV_TIME_BASE_Q) -
           av_rescale_q(origin, main->time_base, AV_TIME_BASE_Q);
  }

  const Recording recording;
  RecordingFile file;
  PacketPtr packet = make_packet();
  std::vector<PacketPtr> early;  // before the first picture
  const AVStream* main = nullptr;
  const AVStream* sound = nullptr;
  std::int64_t origin = 0;  // of the first picture
};

RecordingSpan::RecordingSpan(const OutputOptions& output, std::vector<Recording> recordings,
                             const TimeSpan& span, ReadingEnds ends)
    : output_(output), recordings_(std::move(recordings)), span_(span), ends_(std::move(ends)) {
  std::erase_if(recordings_, [&](const Recording& each) {
    return each.times.end <= span_.from || each.times.begin >= span_.to;
  });
  if (recordings_.empty()) {
    throw RecordingsRefused("no_recording", "nothing was recorded from " + utc_time(span_.from) +
                                                " to " + utc_time(span_.to));
  }
  // By their begins: they are sorted by their ends, and may overlap.
  const auto begin = [](const Recording& each) { return each.times.begin; };
  const auto first = std::ranges::min_element(recordings_, {}, begin);
  const Recording* change = nullptr;
  for (const Recording& each : recordings_) {
    if (each.times.format == first->times.format) continue;
    if (change == nullptr || each.times.begin < change->times.begin) change = &each;
  }
  if (change != nullptr) {
    const Recording* before = &*first;
    for (const Recording& each : recordings_) {
      if (each.times.begin >= before->times.begin && each.times.begin < change->times.begin) {
        before = &each;
      }
    }
    throw RecordingsRefused("format_changes",
                            "the codec, the size or the sound changes at " +
                                utc_time(change->times.begin) + ", from " + redact(before->file) +
                                " to " + redact(change->file) +
                                ", and one MP4 cannot hold both; ask for the time "
                                "before it and for the time from then on");
  }
  // Where two overlap, the later one is taken. If they begin with the same group of pictures, their
  // times may differ a little, and nothing is left of the other.
  constexpr std::chrono::seconds kSameGroup{1};
  for (std::size_t i = 0; i + 1 < recordings_.size();) {
    const Recording& one = recordings_[i];
    const Recording& next = recordings_[i + 1];
    const bool overlaps = one.times.end - next.times.begin > overlap_tolerance(one, next);
    if (next.times.begin > span_.from &&
        !(overlaps && next.times.begin - one.times.begin < kSameGroup)) {
      ++i;
    } else {
      recordings_.erase(recordings_.begin() + static_cast<std::ptrdiff_t>(i));
      i -= i > 0 ? 1 : 0;
    }
  }
  first_ = open(recordings_.front());
  add_streams(*first_);
  read_to_keyframe(*first_);
  begin_ = first_->recording.times.begin +
           microseconds(first_->us_from_origin(first_->packet->pts, *first_->main));
}

RecordingSpan::~RecordingSpan() {
  if (io_ != nullptr) av_freep(&io_->buffer);
  avio_context_free(&io_);
  avformat_free_context(muxer_);
}

std::unique_ptr<RecordingSpan::Open> RecordingSpan::open(const Recording& recording) const {
  FileDescriptor file = open_recording(output_, recording.file);
  if (file.get() < 0) {
    throw IoError(IoFault::kIo, redact(recording.file) +
                                    " cannot be read: " + std::generic_category().message(errno));
  }
  try {
    return std::make_unique<Open>(std::move(file), container_of(output_), recording, ends_);
  } catch (const IoError& error) {
    throw IoError(error.code(), named(recording) + ": " + error.what());
  }
}

void RecordingSpan::read_to_keyframe(Open& recording) const {
  const std::int64_t from_us = us_between(recording.recording.times.begin, span_.from);
  if (from_us <= 0) return;
  const AVRational base = recording.main->time_base;
  const std::int64_t from = recording.origin + av_rescale_q(from_us, AV_TIME_BASE_Q, base);
  // Not all containers find the keyframe itself: then once more, from further back.
  std::optional<std::int64_t> key;
  for (std::int64_t back_us = 0;; back_us = back_us * 4 + 2 * AV_TIME_BASE) {
    const bool from_start = back_us >= from_us;
    const auto seek = [&](std::int64_t to) {
      to -= av_rescale_q(back_us, AV_TIME_BASE_Q, base);
      from_start ? recording.file.rewind(recording.origin) : recording.file.seek(to);
    };
    if (!key) {
      seek(from);
      while (recording.read_picture() && recording.decoded() <= from) {
        if (recording.is_keyframe() && recording.packet->pts <= from) key = recording.packet->pts;
      }
    }
    if (key) {
      seek(*key);
      while (recording.read_picture() && recording.decoded() <= *key) {
        if (recording.is_keyframe() && recording.packet->pts == *key) return;
      }
    }
    if (from_start) {
      throw IoError(IoFault::kDecode, named(recording.recording) + ": no keyframe is found in it");
    }
  }
}

void RecordingSpan::add_streams(const Open& first) {
  const Container container = mp4();
  if (avformat_alloc_output_context2(&muxer_, container.muxer, nullptr, nullptr) < 0) {
    throw std::bad_alloc();
  }
  if (const AVCodecID codec = first.main->codecpar->codec_id; why_no_video(container, codec)) {
    throw RecordingsRefused("not_in_mp4", std::string("an MP4 cannot hold ") +
                                              avcodec_get_name(codec) + ", which is in " +
                                              named(first.recording) +
                                              "; download the files instead");
  }
  for (const AVStream* const from : {first.main, first.sound}) {
    if (from == nullptr) continue;
    const AVCodecParameters& codec = *from->codecpar;
    if (from == first.sound && !holds_audio(container, codec.codec_id)) {
      left_out_ = avcodec_get_name(codec.codec_id);
      continue;
    }
    AVStream* const stream = avformat_new_stream(muxer_, nullptr);
    if (stream == nullptr || avcodec_parameters_copy(stream->codecpar, &codec) < 0) {
      throw std::bad_alloc();
    }
    stream->time_base = from->time_base;
    stream->avg_frame_rate = from->avg_frame_rate;
    stream->sample_aspect_ratio = from->sample_aspect_ratio;
    // The tag of another container may have another meaning. Apple's players take no hev1.
    stream->codecpar->codec_tag =
        codec.codec_id == AV_CODEC_ID_HEVC ? MKTAG('h', 'v', 'c', '1') : 0;
    last_dts_.push_back(AV_NOPTS_VALUE);
  }
}

int RecordingSpan::write_bytes(void* self, WrittenByte* data, int size) {
  auto& span = *static_cast<RecordingSpan*>(self);
  try {
    (*span.sink_)({reinterpret_cast<const char*>(data), static_cast<std::size_t>(size)});
    return size;
  } catch (...) {  // libavformat is C
    span.sink_failure_ = std::current_exception();
    return AVERROR_EXIT;
  }
}

void RecordingSpan::fail(int error, const Recording& recording) const {
  if (sink_failure_) std::rethrow_exception(sink_failure_);
  throw RecordingsRefused("not_in_mp4", "an MP4 cannot hold " + named(recording) + ": " +
                                            av_error_text(error) + "; download the files instead");
}

void RecordingSpan::write_header() {
  constexpr int kBuffer = 128 * 1024;
  auto* const buffer = static_cast<unsigned char*>(av_malloc(kBuffer));
  if (buffer != nullptr) {
    io_ = avio_alloc_context(buffer, kBuffer, 1, this, nullptr, &write_bytes, nullptr);
    if (io_ == nullptr) av_free(buffer);
  }
  if (io_ == nullptr) throw std::bad_alloc();
  muxer_->pb = io_;
  muxer_->flags |= AVFMT_FLAG_CUSTOM_IO;
  av_dict_set(&muxer_->metadata, "creation_time", utc_time(begin_).c_str(), 0);
  Dictionary options;
  set_muxer_defaults(options, mp4(), *muxer_->streams[0]->codecpar);
  if (const int error = avformat_write_header(muxer_, options.ptr()); error < 0) {
    fail(error, recordings_.front());
  }
  // MPEG-TS has its AAC in another form. FFmpeg leaves that to us for an MP4 whose header comes
  // first; this one's (delay_moov) does not.
  muxer_->flags |= AVFMT_FLAG_AUTO_BSF;
}

void RecordingSpan::write(const Sink& sink) {
  sink_ = &sink;
  write_header();
  for (std::size_t i = 0; i < recordings_.size(); ++i) {
    const std::unique_ptr<Open> now = i == 0 ? std::move(first_) : open(recordings_[i]);
    // Not all times are exact to the picture: what would overlap goes on where the last one ended.
    std::int64_t first_us = us_between(begin_, recordings_[i].times.begin);
    if (i > 0) first_us = std::max(first_us, end_us_);
    std::int64_t end_us = us_between(begin_, span_.to);
    if (i + 1 < recordings_.size()) {
      const Recording& next = recordings_[i + 1];
      const auto common = recordings_[i].times.end - next.times.begin;
      if (common > overlap_tolerance(recordings_[i], next)) {
        end_us = std::min(end_us, us_between(begin_, next.times.begin));
      }
    }
    write_from(*now, first_us, end_us);
  }
  if (const int error = av_write_trailer(muxer_); error < 0) fail(error, recordings_.back());
  avio_flush(io_);
  if (sink_failure_) std::rethrow_exception(sink_failure_);
}

void RecordingSpan::write_from(Open& recording, std::int64_t first_us, std::int64_t end_us) {
  for (const PacketPtr& sound : recording.early) {
    write_sound(recording, *sound, first_us, end_us);
  }
  constexpr std::int64_t kRounding = 4000;  // microseconds, of times in two containers
  const AVStream& main = *recording.main;
  AVPacket& packet = *recording.packet;
  const std::int64_t first_pts = packet.pts;
  std::int64_t pictures = 0;
  do {
    if (packet.stream_index != main.index) {
      write_sound(recording, packet, first_us, end_us);
      continue;
    }
    if (packet.pts == AV_NOPTS_VALUE) continue;
    if (packet.dts == AV_NOPTS_VALUE) {
      // Matroska has no times to decode. Behind a seek FFmpeg does not know the first ones, which
      // are before the first picture by as many as the codec may reorder.
      const std::int64_t before = std::max<std::int64_t>(0, main.codecpar->video_delay - pictures);
      packet.dts = std::min(packet.pts, first_pts - before * packet.duration);
    }
    const std::int64_t dts_us = first_us + recording.us_from_origin(packet.dts, main);
    const std::int64_t pts_us = first_us + recording.us_from_origin(packet.pts, main);
    if (dts_us >= end_us || (recording.is_keyframe() && pts_us + kRounding >= end_us)) return;
    ++pictures;
    write_packet(recording, packet, 0, first_us);
  } while (recording.file.read(packet));
}

void RecordingSpan::write_sound(const Open& recording, AVPacket& packet, std::int64_t first_us,
                                std::int64_t end_us) {
  const bool wanted = muxer_->nb_streams > 1 && recording.sound != nullptr &&
                      packet.stream_index == recording.sound->index;
  if (!wanted || packet.dts == AV_NOPTS_VALUE) return;
  const std::int64_t dts_us = first_us + recording.us_from_origin(packet.dts, *recording.sound);
  if (dts_us >= 0 && dts_us < end_us) write_packet(recording, packet, 1, first_us);
}

void RecordingSpan::write_packet(const Open& recording, AVPacket& packet, std::size_t stream,
                                 std::int64_t first_us) {
  const AVRational base = muxer_->streams[stream]->time_base;
  const AVRational main_base = recording.main->time_base;
  av_packet_rescale_ts(&packet, (stream == 0 ? recording.main : recording.sound)->time_base, base);
  const std::int64_t shift = av_rescale_q(first_us, AV_TIME_BASE_Q, base) -
                             av_rescale_q(recording.origin, main_base, base);
  packet.dts += shift;
  packet.pts = packet.pts != AV_NOPTS_VALUE ? packet.pts + shift : packet.dts;
  std::int64_t& last = last_dts_[stream];
  if (last != AV_NOPTS_VALUE && packet.dts <= last) {
    if (stream != 0) return;  // sound that two recordings have
    packet.dts = last + 1;
    packet.pts = std::max(packet.pts, packet.dts);
  }
  last = packet.dts;
  packet.stream_index = static_cast<int>(stream);
  packet.pos = -1;
  if (stream == 0) {
    end_us_ = std::max(end_us_, av_rescale_q(packet.pts + packet.duration, base, AV_TIME_BASE_Q));
  }
  if (const int error = av_write_frame(muxer_, &packet); error < 0) {
    fail(error, recording.recording);
  }
}

}  // namespace framelane
