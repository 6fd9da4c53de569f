#pragma once

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <utility>
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
  SourceFixture();
  ~SourceFixture() override;

  SourceContext context();
  std::unique_ptr<Source> open(const std::string& url);

  /// Encodes a second of a test picture with these arguments of ffmpeg. Returns the file's path.
  std::string generate(const std::string& name, const std::string& arguments);

  /// Reads until the end or until `max_frames` frames have come.
  Reading read(Source& source, std::size_t max_frames = SIZE_MAX, bool with_pixels = true);
  Reading read(const std::string& url);

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
  std::uint64_t repairs() const;

  TempFolder folder;
  FeedStats stats{"feed", {}, {}, 1};
  LineClock line_clock;
  Timeline timeline{stats, line_clock};
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

bool strictly_increasing(const std::vector<std::int64_t>& values);

}  // namespace framelane::testing
