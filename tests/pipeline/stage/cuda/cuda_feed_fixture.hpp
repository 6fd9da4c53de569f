#pragma once

extern "C" {
#include <libavutil/log.h>
}

#include <gtest/gtest.h>
#include <spdlog/spdlog.h>

#include <cstdint>
#include <functional>
#include <future>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "pipeline/base/abandoned_threads.hpp"
#include "pipeline/feed/feed.hpp"
#include "pipeline/feed/feed_deadlines.hpp"
#include "tests/pipeline/source/media_files.hpp"
#include "tests/pipeline/stage/cuda/stage_fixture.hpp"

namespace framelane::testing {

inline constexpr std::uint64_t kClipFrames = 42;
inline constexpr std::size_t kClipWidth = 160;
inline constexpr std::size_t kClipHeight = 120;

/// A clip so small that the stand-in converts it in time, even with a sanitizer on a busy machine.
const std::string& small_clip();

/// Expects that every frame has come out of every encode, and that nothing is in flight.
void expect_all_out(const FeedStats& stats, std::uint64_t frames);

/// A GPU and one feed of kClipFrames frames with three encodes: two that convert and one that
/// bypasses the stage.
template <typename Fixture>
class CudaFeedFixture : public Fixture {
 protected:
  void SetUp() override {
    spdlog::set_level(spdlog::level::off);
    av_log_set_level(AV_LOG_FATAL);
    Fixture::SetUp();
    if (this->IsSkipped() || this->HasFatalFailure()) return;
    options_.name = "gate";
    options_.once = true;
    options_.input.url = small_clip();
    options_.input.decoder = InputOptions::DecoderKind::kSoftware;
    add_encode("full", Range::kFull);
    add_encode("nv12", {}).format = PixelFormat::kNv12;
    add_encode("bypass", {});
    if (this->gpu() > 0) stand_in::set_device_count(this->gpu() + 1);
    device_ = CudaDevice::open(this->gpu(), cpu_);
  }
  virtual int gpu() const { return 0; }
  void TearDown() override {
    feed_.reset();
    device_.reset();
    if (this->IsSkipped()) return;
    if (stand_in::present()) {
      EXPECT_EQ(stand_in::spinning_waits(), 0) << "threads that did not sleep";
    }
    Fixture::TearDown();
  }

  EncodeOptions& add_encode(const std::string& name, std::optional<Range> range) {
    EncodeOptions encode;
    encode.name = name;
    encode.codecs.push_back({"libx264", {{"preset", "ultrafast"}}});
    encode.color.range = range;
    options_.encodes.push_back(std::move(encode));
    OutputOptions output;
    output.name = output.from = name;
    output.url = "null:";
    options_.outputs.push_back(std::move(output));
    return options_.encodes.back();
  }
  void start() {
    stats_ = std::make_shared<FeedStats>(
        options_.name,
        std::vector<FeedStats::EncodeSpec>{{"full", false}, {"nv12", false}, {"bypass", false}},
        std::vector<std::string>{"full", "nv12", "bypass"}, options_.lanes);
    feed_ = Feed::start(
        options_, stats_, device_, [] {}, deadlines_);
  }
  Feed::Outcome wait() {
    EXPECT_TRUE(feed_->join_until(soon()));
    return feed_->outcome().value_or(
        Feed::Outcome{Feed::Outcome::Kind::kFailed, FeedFault::kInternal, "it did not end"});
  }
  /// Ends the hang of a GPU that still hangs after the feed has gone.
  void let_go() {
    stand_in::release();
    EXPECT_TRUE(comes_true([&] { return !device_->context()->has_abandoned_jobs(); }));
    stand_in::forget_registrations();  // of what the feed has freed meanwhile
  }
  /// Queues work that hangs as if it were another feed's. It does not delay this feed's jobs, but
  /// freeing memory waits for all work.
  void hang_beside() {
    device_->context()->make_current();
    stand_in::hold(device_->context()->decode_stream().get());
    CudaEvent(CudaEvent::Kind::kOrder).record(device_->context()->decode_stream());
  }
  /// Asks for the outcome again and again, as the supervisor does: stuck calls are noticed only
  /// when somebody asks.
  Feed::Outcome outcome_while_watched() {
    std::optional<Feed::Outcome> outcome;
    EXPECT_TRUE(comes_true([&] { return (outcome = feed_->outcome()).has_value(); }));
    return outcome.value_or(Feed::Outcome{Feed::Outcome::Kind::kEnded, {}, "it did not end"});
  }
  /// Expects that destroying the feed abandons its run in time. Then calls `mend`, which must end
  /// the GPU's hang, and expects that the run ends too.
  void expect_abandoned(const std::function<void()>& mend) {
    const std::uint64_t abandoned = threads_abandoned();
    auto gone = std::async(std::launch::async, [this] { feed_.reset(); });
    EXPECT_EQ(gone.wait_for(20s), std::future_status::ready);
    EXPECT_GT(threads_abandoned(), abandoned);
    mend();
    gone.wait();
    EXPECT_TRUE(comes_true([this] { return stats_.use_count() == 1; }));
    EXPECT_EQ(stats_->abandoned_runs, 0);
  }
  void expect_all_out(std::uint64_t frames) { testing::expect_all_out(*stats_, frames); }

  const std::shared_ptr<Device> cpu_ = std::make_shared<CpuDevice>(2);
  FeedOptions options_;
  FeedDeadlines deadlines_;
  std::shared_ptr<FeedStats> stats_;
  std::shared_ptr<CudaDevice> device_;
  std::unique_ptr<Feed> feed_;
};

}  // namespace framelane::testing
