#include "pipeline/output/output_session.hpp"

extern "C" {
#include <libavutil/mathematics.h>
}

#include <algorithm>
#include <utility>

#include "pipeline/base/failure.hpp"
#include "pipeline/packets/interleaver.hpp"

namespace framelane {

OutputSession::OutputSession(const OutputOptions& options, const Container& container,
                             std::optional<PartFile> file, PartFileRecovery& recovery,
                             const MuxerTarget& target, const MediaPacket& keyframe,
                             std::stop_token stop, std::stop_token abandoned)
    : container_(container),
      file_(std::move(file)),
      recovery_(recovery),
      format_(keyframe.format),
      start_us_(packet_time_us(keyframe)),
      end_us_(start_us_),
      // Timestamps go on from one part of a playlist to the next; everything else begins at zero.
      offset_us_(container.kind == OutputKind::kPlaylist ? 0 : start_us_),
      flushed_at_(std::chrono::steady_clock::now()) {
  try {
    muxer_ = std::make_unique<Muxer>(options, container, target, *format_, std::move(stop),
                                     std::move(abandoned));
  } catch (...) {
    leave_file({});
    throw;
  }
}

OutputSession::~OutputSession() {
  const CutPoints points = muxer_->cut_points();
  muxer_.reset();  // closes the file before it is cut and examined
  leave_file(points);
}

void OutputSession::leave_file(const CutPoints& points) {
  if (!file_) return;
  file_->cut_back(points);
  recovery_.salvage(*file_, container_);
}

bool OutputSession::takes(const MediaPacket& audio) const {
  if (!muxer_->has_audio() || !audio.format->audio) return false;
  if (audio.format != format_ && !same_stream(*audio.format->audio, *format_->audio)) return false;
  return packet_time_us(audio) >= start_us_;
}

std::chrono::microseconds OutputSession::age_at(const MediaPacket& packet) const {
  return std::chrono::microseconds(packet_time_us(packet) - start_us_);
}

std::chrono::microseconds OutputSession::length() const {
  return std::chrono::microseconds(end_us_ - start_us_);
}

bool OutputSession::write(MediaPacket& packet) {
  const bool video = packet.stream == StreamKind::kVideo;
  const AVRational time_base =
      video ? packet.format->video.time_base : packet.format->audio->time_base;
  const std::int64_t dts = packet.packet->dts;
  const std::int64_t end_us =
      packet_time_us(packet) + av_rescale_q(packet.packet->duration, time_base, AV_TIME_BASE_Q);
  std::int64_t& last_dts = last_dts_[video ? 0 : 1];
  const bool rises = dts == AV_NOPTS_VALUE || last_dts == AV_NOPTS_VALUE || dts > last_dts;
  if (!rises || !muxer_->write(*packet.packet, packet.stream, time_base, offset_us_)) {
    if (++refused_ < kMaxRefusedInARow) return false;
    throw IoError(IoFault::kIo,
                  "the container refused " + std::to_string(refused_) + " packets in a row");
  }
  refused_ = 0;
  last_dts = dts;
  end_us_ = std::max(end_us_, end_us);
  return true;
}

void OutputSession::flush_when_due() {
  const auto now = std::chrono::steady_clock::now();
  if (!file_ || now - flushed_at_ < kFlushEvery) return;
  flushed_at_ = now;
  muxer_->flush();
}

std::string OutputSession::finish(bool end_of_list, bool durable) {
  muxer_->finish(end_of_list);
  if (!file_) return {};
  std::string name = file_->complete(durable);
  file_.reset();
  return name;
}

}  // namespace framelane
