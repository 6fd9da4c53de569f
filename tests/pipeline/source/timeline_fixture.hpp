#pragma once

#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <optional>
#include <vector>

#include "pipeline/av/av_ptr.hpp"
#include "pipeline/source/timeline.hpp"

namespace framelane::testing {

/// A timeline of two streams that count milliseconds.
class TimelineFixture : public ::testing::Test {
 protected:
  TimelineFixture() { begin(kVideo); }

  using Times = std::vector<std::int64_t>;
  static constexpr AVRational kMilliseconds{1, 1000};
  static constexpr Timeline::StreamClock kVideo{kMilliseconds, {25, 1}, 64, 0};
  static constexpr Timeline::StreamClock kReordered{kMilliseconds, {25, 1}, 64, 2};

  void begin(const Timeline::StreamClock& clock,
             std::optional<std::chrono::microseconds> start = {}) {
    timeline.begin_segment(start);
    timeline.set_stream(StreamKind::kVideo, clock);
    timeline.set_stream(
        StreamKind::kAudio,
        {.time_base = kMilliseconds, .wrap_bits = clock.wrap_bits, .gaps = clock.gaps});
  }

  struct Stamp {
    std::int64_t dts;
    std::int64_t pts;
    friend bool operator==(const Stamp&, const Stamp&) = default;
  };
  Stamp stamp(StreamKind kind, Stamp in, std::int64_t duration = 40) {
    const PacketPtr packet = make_packet();
    packet->dts = in.dts;
    packet->pts = in.pts;
    packet->duration = duration;
    timeline.stamp(kind, *packet, Timeline::Clock::time_point(arrival));
    return {packet->dts, packet->pts};
  }
  std::int64_t video(std::int64_t time, std::int64_t duration = 40) {
    return stamp(StreamKind::kVideo, {time, time}, duration).dts;
  }
  std::int64_t audio(std::int64_t time) { return stamp(StreamKind::kAudio, {time, time}).dts; }
  Times videos(const Times& times) {
    Times result;
    for (const std::int64_t time : times) result.push_back(video(time));
    return result;
  }
  std::uint64_t repairs(TimestampRepair kind) const {
    return stats.timestamp_repairs[index_of(kind)];
  }
  std::uint64_t all_repairs() const {
    std::uint64_t sum = 0;
    for (const auto& count : stats.timestamp_repairs) sum += count;
    return sum;
  }

  FeedStats stats{"feed", {}, {}, 1};
  LineClock line_clock{std::chrono::seconds(5)};
  Timeline timeline{stats, line_clock};
  std::chrono::milliseconds arrival{0};  // of all packets, unless a test says otherwise
};

}  // namespace framelane::testing
