#pragma once

#include <chrono>

#include "pipeline/base/clock_reading.hpp"
#include "pipeline/base/line_clock.hpp"
#include "pipeline/packets/packet_queue.hpp"

namespace framelane {

/// When the picture of a video packet is shown, on the feed's line of time.
std::chrono::microseconds shown_at(const MediaPacket& video);

/// When it was taken, as the wall clock counts at `now`. If its source does not tell time: when the
/// packet was queued.
std::chrono::system_clock::time_point taken_at(const MediaPacket& video, const LineClock& line,
                                               const ClockReading& now = ClockReading::now());

/// Has the packet tell it to the muxer, as side data.
void tell_taken_at(AVPacket& packet, std::chrono::system_clock::time_point time);

}  // namespace framelane
