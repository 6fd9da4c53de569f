#pragma once

extern "C" {
#include <libavutil/log.h>
}

#include <gtest/gtest.h>
#include <spdlog/spdlog.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "pipeline/base/av_option.hpp"
#include "pipeline/base/labels.hpp"
#include "pipeline/encode/encode_options.hpp"
#include "pipeline/feed/feed.hpp"
#include "pipeline/feed/feed_deadlines.hpp"
#include "pipeline/feed/feed_options.hpp"
#include "pipeline/measure/feed_stats.hpp"
#include "pipeline/output/output_options.hpp"
#include "pipeline/stage/device.hpp"
#include "tests/pipeline/source/media_files.hpp"

namespace framelane::testing {

using namespace std::chrono_literals;

inline const std::string kClip = FRAMELANE_TEST_DATA "/street_h264.mp4";
inline constexpr std::uint64_t kClipFrames = 42;

/// Runs feeds over real files and waits for them.
class FeedTest : public ::testing::Test {
 protected:
  FeedTest() {
    spdlog::set_level(spdlog::level::off);
    av_log_set_level(AV_LOG_FATAL);
    options_.name = "gate";
    options_.once = true;
    options_.input.url = kClip;
  }

  EncodeOptions& add_encode(const std::string& name, const std::string& codec,
                            AvOptions codec_options = {}) {
    EncodeOptions encode;
    encode.name = name;
    encode.codecs.push_back({codec, std::move(codec_options)});
    options_.encodes.push_back(std::move(encode));
    return options_.encodes.back();
  }
  void add_copy(const std::string& name) {
    EncodeOptions encode;
    encode.name = name;
    encode.copy_video = true;
    options_.encodes.push_back(std::move(encode));
  }
  void add_output(const std::string& name, const std::string& from, const std::string& url) {
    OutputOptions output;
    output.name = name;
    output.from = from;
    output.url = url;
    options_.outputs.push_back(std::move(output));
  }
  std::string file(const std::string& name) const { return folder_ / name; }

  void start() {
    std::vector<FeedStats::EncodeSpec> encodes;
    for (const EncodeOptions& encode : options_.encodes) {
      encodes.push_back({encode.name, encode.copy_video});
    }
    std::vector<std::string> outputs;
    for (const OutputOptions& output : options_.outputs) outputs.push_back(output.name);
    stats_ = std::make_shared<FeedStats>(options_.name, encodes, outputs, options_.lanes);
    feed_ = Feed::start(
        options_, stats_, device_, [] {}, deadlines_);
  }
  Feed::Outcome wait() {
    EXPECT_TRUE(feed_->join_until(std::chrono::steady_clock::now() + 60s));
    return feed_->outcome().value_or(
        Feed::Outcome{Feed::Outcome::Kind::kFailed, FeedFault::kInternal, "it did not end"});
  }
  Feed::Outcome run() {
    start();
    return wait();
  }
  /// Waits until that many frames have left the first encode.
  bool wait_out(std::uint64_t frames) {
    const auto deadline = std::chrono::steady_clock::now() + 60s;
    while (stats_->ledger().encodes[0].out < frames) {
      if (std::chrono::steady_clock::now() > deadline || feed_->outcome()) return false;
      std::this_thread::yield();
    }
    return true;
  }

  void expect_every_frame_accounted_for() {
    const FeedStats::Ledger ledger = stats_->ledger();
    for (std::size_t i = 0; i < ledger.encodes.size(); ++i) {
      if (options_.encodes[i].copy_video) continue;
      const EncodeCounts& counts = ledger.encodes[i];
      std::uint64_t ended = counts.out;
      for (std::uint64_t dropped : counts.dropped) ended += dropped;
      EXPECT_EQ(counts.in, ledger.frames_in);
      EXPECT_EQ(counts.in, ended);
      EXPECT_EQ(counts.in_flight, 0);
    }
    for (const auto& jobs : stats_->ring_jobs) EXPECT_EQ(jobs, 0u);
  }
  std::uint64_t dropped(DropReason reason, std::size_t encode = 0) const {
    return stats_->ledger().encodes[encode].dropped[index_of(reason)];
  }

  /// How many jobs the stage has converted.
  std::uint64_t conversions() const {
    return stats_->steps[index_of(StageStep::kKernel)].snapshot().count;
  }

  TempFolder folder_;
  std::shared_ptr<Device> device_ = make_cpu_device();
  FeedOptions options_;
  FeedDeadlines deadlines_;
  std::shared_ptr<FeedStats> stats_;
  std::unique_ptr<Feed> feed_;
};

}  // namespace framelane::testing
