#pragma once

extern "C" {
#include <libavutil/log.h>
}

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "pipeline/base/failure.hpp"
#include "pipeline/source/source.hpp"
#include "tests/pipeline/source/media_files.hpp"

namespace framelane::testing {

/// What came of reading a source.
struct Reading {
  ReadResult end = ReadResult::kEnd;
  std::size_t frames = 0;
  Bytes pixels;
  std::vector<std::int64_t> frame_pts;
  std::vector<std::int64_t> packet_dts;  // video
  std::vector<std::int64_t> packet_pts;  // video
  std::size_t audio_packets = 0;
  std::size_t pooled_frames = 0;  // frames whose pixels lie in the pool
  InputFrame last_frame;
};

class SourceFixture : public ::testing::Test {
 protected:
  SourceFixture() {
    input.timeout = std::chrono::seconds(10);
    av_log_set_level(AV_LOG_FATAL);  // tests read damaged streams, and FFmpeg would log it
  }

  SourceContext context() {
    return {.pool = pool,
            .stats = stats,
            .timeline = timeline,
            .interrupt = interrupt,
            .decode = decode,
            .want_audio = want_audio,
            .stage = stage,
            .ring = ring};
  }
  std::unique_ptr<Source> open(const std::string& url) {
    input.url = url;
    return open_source(input, context());
  }

  /// Reads until the end or until `max_frames` frames have come.
  Reading read(Source& source, std::size_t max_frames = SIZE_MAX, bool with_pixels = true) {
    Reading reading;
    SourceItem item;
    while (reading.frames < max_frames) {
      reading.end = source.read(item);
      if (reading.end != ReadResult::kItem) break;
      if (item.kind == SourceItem::Kind::kPacket) {
        if (item.stream == StreamKind::kAudio) {
          ++reading.audio_packets;
        } else {
          reading.packet_dts.push_back(item.packet->dts);
          reading.packet_pts.push_back(item.packet->pts);
        }
        continue;
      }
      ++reading.frames;
      reading.frame_pts.push_back(item.frame.pts);
      if (pool.owns(item.frame.image.planes[0].data)) ++reading.pooled_frames;
      if (with_pixels) append_pixels(item.frame.image, reading.pixels);
      reading.last_frame = std::move(item.frame);
    }
    return reading;
  }
  Reading read(const std::string& url) { return read(*open(url)); }

  /// The code of the error that opening or reading `url` throws; nothing when it throws none.
  template <typename Error>
  auto failure_of(const std::string& url) {
    try {
      read(url);
    } catch (const Error& error) {
      message = error.what();
      return std::optional(error.code());
    }
    return decltype(std::optional(std::declval<Error>().code())){};
  }

  std::uint64_t faults(DecodeFault fault) const { return stats.decode_faults[index_of(fault)]; }
  std::uint64_t copies(HostCopy reason) const { return stats.host_copies[index_of(reason)]; }
  std::uint64_t repairs() const {
    std::uint64_t sum = 0;
    for (const auto& count : stats.timestamp_repairs) sum += count;
    return sum;
  }

  TempFolder folder;
  FeedStats stats{"feed", {}, {}, 1};
  Timeline timeline{stats};
  FramePool pool;
  std::stop_source stop;
  Interrupt interrupt{stop.get_token()};
  InputOptions input;
  bool decode = true;
  bool want_audio = false;
  Stage* stage = nullptr;
  int ring = 8;
  std::string message;  // of the last failure_of
};

inline bool strictly_increasing(const std::vector<std::int64_t>& values) {
  for (std::size_t i = 1; i < values.size(); ++i) {
    if (values[i] <= values[i - 1]) return false;
  }
  return true;
}

}  // namespace framelane::testing
