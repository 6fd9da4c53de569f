#include "pipeline/output/picture_time.hpp"

extern "C" {
#include <libavcodec/avcodec.h>
#include <libavutil/mathematics.h>
}

#include <cstring>
#include <new>

namespace framelane {

using std::chrono::microseconds;

microseconds shown_at(const MediaPacket& video) {
  const AVPacket& packet = *video.packet;
  const std::int64_t time = packet.pts != AV_NOPTS_VALUE ? packet.pts : packet.dts;
  if (time == AV_NOPTS_VALUE) return microseconds::zero();
  return microseconds(av_rescale_q(time, video.format->video.time_base, AV_TIME_BASE_Q));
}

std::chrono::system_clock::time_point taken_at(const MediaPacket& video, const LineClock& line,
                                               const ClockReading& now) {
  return now.wall_at(line.taken_at(shown_at(video)).value_or(video.queued_at));
}

void tell_taken_at(AVPacket& packet, std::chrono::system_clock::time_point time) {
  constexpr int kCaptured = 24;  // ISO/IEC 14496-12: the time of capture
  const AVProducerReferenceTime reference{
      .wallclock = std::chrono::duration_cast<microseconds>(time.time_since_epoch()).count(),
      .flags = kCaptured};
  std::uint8_t* const data = av_packet_new_side_data(&packet, AV_PKT_DATA_PRFT, sizeof reference);
  if (data == nullptr) throw std::bad_alloc();
  std::memcpy(data, &reference, sizeof reference);
}

}  // namespace framelane
