#include "pipeline/output/output_session.hpp"

extern "C" {
#include <libavutil/mathematics.h>
}

#include <algorithm>
#include <utility>

#include "pipeline/base/failure.hpp"
#include "pipeline/output/picture_time.hpp"
#include "pipeline/output/rotation.hpp"
#include "pipeline/packets/interleaver.hpp"

namespace framelane {
namespace {

/// What becomes zero. Timestamps go on from one part of a playlist to the next. A file begins with
/// its first picture, so that its name and a timestamp in it say when a picture was taken. Of
/// renditions no timestamp is below zero, for a muxer would move these, and each by its own time.
std::int64_t first_timestamp(const Container& container, const PlaylistWriter* playlist,
                             const MediaPacket& keyframe) {
  constexpr std::int64_t kBeforeZero =
      10'000'000;  // B-frames, and what an audio encoder puts first
  switch (container.kind) {
    case OutputKind::kPlaylist:
      return playlist->renditions() != nullptr ? -kBeforeZero : 0;
    case OutputKind::kFile:
      return shown_at(keyframe).count();
    default:
      return packet_time_us(keyframe);
  }
}

}  // namespace

OutputSession::OutputSession(const OutputOptions& options, const Container& container,
                             std::optional<PartFile> file, PartFileRecovery& recovery,
                             PlaylistWriter* playlist, const std::string& url,
                             const MediaPacket& keyframe, const LineClock& line_clock,
                             MuxerStops stops)
    : container_(container),
      file_(std::move(file)),
      recovery_(recovery),
      stop_(stops.stop),
      format_(keyframe.format),
      only_sound_(options.only == StreamKind::kAudio),
      start_us_(packet_time_us(keyframe)),
      reorder_us_(shown_at(keyframe).count() - start_us_),
      end_us_(start_us_),
      line_clock_(line_clock),
      offset_us_(first_timestamp(container, playlist, keyframe)),
      zero_us_(line_clock.zero_us()),
      followed_us_(start_us_),
      flushed_at_(std::chrono::steady_clock::now()),
      playlist_(playlist),
      segment_start_us_(start_us_),
      segment_time_(taken_at(keyframe, line_clock)),
      last_video_us_(start_us_),
      keyframe_us_(start_us_),
      header_pending_(container.fmp4_segments) {
  if (playlist_) segment_time_ = playlist_->time_of_segment(segment_time_);
  if (playlist_ && playlist_->renditions()) {
    slot_ = playlist_->renditions()->slot_at(shown_at(keyframe));
  }
  try {
    // What transcode makes of a file does not depend on when that is.
    const bool says_when = file_ && (zero_us_ || options.existing == Existing::kNumber);
    muxer_ = std::make_unique<Muxer>(options, container, url, *format_,
                                     says_when ? std::optional(segment_time_) : std::nullopt,
                                     std::move(stops));
  } catch (...) {
    leave_file({});
    if (playlist_) playlist_->discard_incomplete();
    throw;
  }
}

OutputSession::~OutputSession() { give_up(); }

std::uint64_t OutputSession::give_up() {
  if (!muxer_) return 0;
  const CutPoints points = muxer_->cut_points();
  muxer_.reset();  // closes the file before it is cut and examined
  if (file_) return written_ - leave_file(points);
  // Nothing else makes room on a full disk.
  const bool discarded = playlist_ != nullptr && playlist_->discard_incomplete();
  return discarded ? segment_packets_ : 0;
}

std::uint64_t OutputSession::leave_file(const CutPoints& points) {
  if (!file_) return 0;
  const std::uint64_t left = file_->cut_back(points).value_or(written_);
  switch (recovery_.salvage(*file_, container_, stop_)) {
    case PartFile::Fate::kNamed:
    case PartFile::Fate::kStays:
      return left;
    case PartFile::Fate::kRemoved:
    case PartFile::Fate::kDamaged:
      break;
  }
  return 0;
}

bool OutputSession::takes(const MediaPacket& audio) const {
  if (!muxer_->has_audio() || !audio.format->audio) return false;
  if (audio.format != format_ && !same_stream(*audio.format->audio, *format_->audio)) return false;
  return packet_time_us(audio) >= start_us_;
}

bool OutputSession::goes_on_with(const MediaPacket& video) const {
  const std::int64_t dts = video.packet->dts;
  return dts == AV_NOPTS_VALUE || last_dts_[0] == AV_NOPTS_VALUE || dts > last_dts_[0];
}

std::chrono::microseconds OutputSession::age_at(const MediaPacket& packet) const {
  return std::chrono::microseconds(packet_time_us(packet) - start_us_);
}

std::chrono::microseconds OutputSession::length() const {
  return std::chrono::microseconds(end_us_ - start_us_);
}

bool OutputSession::write(MediaPacket& packet) {
  const bool video = packet.stream == StreamKind::kVideo;
  if (playlist_ && video) cut_segment_if_due(packet);
  if (video && only_sound_) return true;
  if (file_ && video) follow_clock(packet_time_us(packet));
  if (video && muxer_->carries_times()) {
    tell_taken_at(*packet.packet, taken_at(packet, line_clock_));
  }
  const AVRational time_base =
      video ? packet.format->video.time_base : packet.format->audio->time_base;
  const std::int64_t dts = packet.packet->dts;
  const std::int64_t end_us =
      packet_time_us(packet) + av_rescale_q(packet.packet->duration, time_base, AV_TIME_BASE_Q);
  std::int64_t& last_dts = last_dts_[video ? 0 : 1];
  const bool rises = dts == AV_NOPTS_VALUE || last_dts == AV_NOPTS_VALUE || dts > last_dts;
  if (!rises || !muxer_->write(*packet.packet, packet.stream, time_base, offset_us_, shift_us_)) {
    if (++refused_ < kMaxRefusedInARow) return false;
    throw IoError(IoFault::kIo,
                  "the container refused " + std::to_string(refused_) + " packets in a row");
  }
  refused_ = 0;
  ++segment_packets_;
  ++written_;
  last_dts = dts;
  end_us_ = std::max(end_us_, end_us);
  return true;
}

/// The camera's clock may be faster or slower than ours. A file's timestamps are as far apart as
/// its pictures were taken by our clock, however long it gets: they follow zero of the line, which
/// moves slowly, and are never moved by more than a thousandth.
void OutputSession::follow_clock(std::int64_t now_us) {
  const auto zero = line_clock_.zero_us();
  if (!zero_us_ || !zero || now_us <= followed_us_) return;
  const std::int64_t most = (now_us - followed_us_) / 1000;
  shift_us_ += std::clamp(*zero - *zero_us_ - shift_us_, -most, most);
  followed_us_ = now_us;
}

bool OutputSession::leaves_slots(const MediaPacket& video) const {
  const RenditionGroup* const group = playlist_ ? playlist_->renditions() : nullptr;
  if (group == nullptr) return false;
  if (!is_keyframe(*video.packet, StreamKind::kVideo)) {
    const auto longest = playlist_->longest_segment();
    return longest && packet_time_us(video) - segment_start_us_ > longest->count();
  }
  const std::int64_t slot = group->slot_at(shown_at(video));
  if (slot == slot_) return false;
  // Segments that nothing came for, though the encoder went on, are gaps between the others.
  if (slot > slot_ && video.format == format_) return false;
  return slot != slot_ + 1 || !group->begins_slot(video);
}

bool OutputSession::waits_for_slot(const MediaPacket& video) const {
  const RenditionGroup* const group = playlist_ ? playlist_->renditions() : nullptr;
  if (group == nullptr || !is_keyframe(*video.packet, StreamKind::kVideo)) return false;
  return group->slot_at(shown_at(video)) != slot_ && !group->begins_slot(video);
}

void OutputSession::cut_segment_if_due(const MediaPacket& video) {
  const bool keyframe = is_keyframe(*video.packet, StreamKind::kVideo);
  const std::int64_t decoded_us = packet_time_us(video);
  // A segment begins with what it shows first. Behind a gap, the times to decode the first pictures
  // of a stream with B-frames still lie before the gap.
  const bool shows_when = keyframe && video.packet->pts != AV_NOPTS_VALUE;
  const std::int64_t now_us = shows_when ? shown_at(video).count() - reorder_us_ : decoded_us;
  if (const RenditionGroup* const group = playlist_->renditions()) {
    if (!keyframe) return;
    const std::int64_t last = std::exchange(slot_, group->slot_at(shown_at(video)));
    if (slot_ == last) return;
    // The last segment ends where its slot does, if no picture came in the next one.
    const std::int64_t missing = slot_ - last - 1;
    const auto since = shown_at(video) - (last + 1) * group->segment();
    end_segment(missing == 0 ? now_us : now_us - since.count());
    if (missing > 0) playlist_->skip_segments(static_cast<std::uint64_t>(missing));
    return begin_segment(video, now_us);
  }
  const std::int64_t age_us = now_us - segment_start_us_;
  // A picture behind a gap does not say how far the next one is. (A keyframe may well.)
  const std::int64_t past_us = decoded_us - std::exchange(last_video_us_, decoded_us);
  const std::int64_t step_us = std::min(past_us, std::exchange(last_step_us_, past_us));
  const bool full = age_us + kCutTolerance.count() >= playlist_->options().time.count();
  const auto longest = playlist_->longest_segment();
  // A segment ends without a keyframe where the next packet would come too late, and early where
  // the next keyframe would.
  // The first keyframe of an encoder may come at any time before the next multiple of gop.
  const std::int64_t next_us =
      keyframe ? std::max<std::int64_t>(now_us - std::exchange(keyframe_us_, now_us),
                                        playlist_->gop().count())
               : step_us;
  // With independent_segments a segment is cut between keyframes only after an outage.
  const bool waits = !keyframe && playlist_->options().independent_segments;
  const bool must = longest && age_us + (waits ? 0 : next_us) > longest->count() && age_us > 0;
  if (!(keyframe && full) && !must) return;
  const bool lost = longest && age_us > longest->count();  // the source was gone
  end_segment(lost ? end_us_ : now_us);
  begin_segment(video, now_us);
  gap_ = lost;
}

void OutputSession::begin_segment(const MediaPacket& video, std::int64_t now_us) {
  muxer_->open_file("file:" + playlist_->segment_path());
  segment_start_us_ = now_us;
  end_us_ = std::max(end_us_, now_us);
  segment_time_ = playlist_->time_of_segment(taken_at(video, line_clock_));
}

void OutputSession::end_segment(std::int64_t end_us) {
  if (std::exchange(header_pending_, false)) {
    muxer_->end_fragment();
    muxer_->close_file();
    playlist_->add_init();
    muxer_->open_file("file:" + playlist_->segment_path());
  }
  muxer_->end_fragment();
  muxer_->close_file();
  // Sound may pause: a file without a packet cannot be played.
  if (only_sound_ && segment_packets_ == 0) return playlist_->skip_segment();
  const std::chrono::microseconds length(std::max(end_us - segment_start_us_, std::int64_t{0}));
  const auto longest = playlist_->longest_segment();
  playlist_->add_segment(longest ? std::min(length, *longest) : length, gap_, segment_time_);
  segment_packets_ = 0;
}

void OutputSession::flush_when_due() {
  const auto now = std::chrono::steady_clock::now();
  if (!file_ || now - flushed_at_ < kFlushEvery) return;
  flushed_at_ = now;
  muxer_->flush();
}

std::string OutputSession::finish(bool end_of_list, bool durable) {
  if (playlist_ && segment_packets_ > 0) end_segment(end_us_);
  muxer_->finish();
  if (playlist_ && end_of_list) playlist_->end();
  if (!file_) return {};
  std::string name = file_->complete(durable);
  file_.reset();
  return name;
}

}  // namespace framelane
