#pragma once

#include <gtest/gtest.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "pipeline/base/av_option.hpp"
#include "pipeline/base/labels.hpp"
#include "pipeline/encode/encode_options.hpp"
#include "pipeline/feed/feed.hpp"
#include "pipeline/feed/feed_deadlines.hpp"
#include "pipeline/feed/feed_options.hpp"
#include "pipeline/measure/feed_stats.hpp"
#include "pipeline/stage/device.hpp"
#include "tests/pipeline/source/media_files.hpp"

namespace framelane::testing {

using namespace std::chrono_literals;

inline const std::string kClip = clip("street_h264.mp4");
inline constexpr std::uint64_t kClipFrames = 42;

/// Runs feeds over real files and waits for them.
class FeedTest : public ::testing::Test {
 protected:
  FeedTest();
  ~FeedTest() override;

  EncodeOptions& add_encode(const std::string& name, CodecCandidate codec);
  EncodeOptions& add_encode(const std::string& name, const std::string& codec,
                            AvOptions codec_options = {});
  void add_copy(const std::string& name);
  void add_output(const std::string& name, const std::string& from, const std::string& url);
  /// The input is a camera with sound: a file that is read at its own rate, without end.
  void use_camera_with_sound();
  std::string file(const std::string& name) const { return folder_ / name; }

  void start();
  /// Has the running feed go on with these options.
  bool change(const FeedOptions& options);
  Feed::Outcome wait();
  Feed::Outcome run();
  /// Waits until that many frames have left the first encode.
  bool wait_out(std::uint64_t frames);
  /// Waits until that many packets of the first encode's sound are out.
  bool wait_sound_out(std::uint64_t packets);

  /// And every packet of sound that is transcoded.
  void expect_every_frame_accounted_for();
  std::uint64_t dropped(DropReason reason, std::size_t encode = 0) const;
  /// How many jobs the stage has converted.
  std::uint64_t conversions() const;

  TempFolder folder_;
  std::shared_ptr<Device> device_ = make_cpu_device();
  FeedOptions options_;
  FeedDeadlines deadlines_;
  std::shared_ptr<SnapshotTap> tap_;  // null: there is none
  std::shared_ptr<FeedStats> stats_;
  std::unique_ptr<Feed> feed_;
};

}  // namespace framelane::testing
