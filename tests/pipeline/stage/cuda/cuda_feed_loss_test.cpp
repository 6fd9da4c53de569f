// Whole feeds over a GPU that fails, hangs or has no room: every frame is accounted for.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <optional>
#include <regex>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "tests/pipeline/stage/cuda/cuda_feed_fixture.hpp"
#include "tests/pipeline/stage/cuda/masked_feed.hpp"
#include "tests/temp_folder.hpp"

namespace framelane::testing {
namespace {

using CudaFeedLossTest = CudaFeedFixture<StandInTest>;

/// The feed runs on the second of two GPUs.
class SecondGpuTest : public CudaFeedLossTest {
  int gpu() const override { return 1; }
};

TEST_F(SecondGpuTest, EveryCallIsMadeForTheDeviceWhoseStreamsAndEventsItTakes) {
  start();
  EXPECT_EQ(wait().kind, Feed::Outcome::Kind::kEnded);
  expect_all_out(kClipFrames);
  EXPECT_EQ(stats_->status().device, "cuda:1");
  feed_.reset();
  device_.reset();
  EXPECT_EQ(stand_in::live(), stand_in::Live{});
  EXPECT_EQ(stand_in::misplaced_calls(), 0);
}

TEST_F(SecondGpuTest, AHungOneIsAskedAndLeftInTheSameWay) {
  options_.input.loop = true;
  options_.input.duration = 12s;
  start();
  ASSERT_TRUE(comes_true([&] { return stats_->ledger().encodes[0].out >= 10; }));
  stand_in::hold();
  wait();
  EXPECT_TRUE(device_->lost());
  expect_all_out(120);
  let_go();
  feed_.reset();
  device_.reset();
  EXPECT_EQ(stand_in::misplaced_calls(), 0);
}

TEST_F(CudaFeedLossTest, AFeedWhoseGpuIsLostGoesOnOnTheCpu) {
  options_.input.loop = true;
  options_.input.duration = 12s;  // 120 frames
  const TempFolder folder;
  for (OutputOptions& output : options_.outputs) output.url = folder / (output.name + ".mp4");
  start();
  ASSERT_TRUE(comes_true([&] { return stats_->ledger().encodes[0].out >= 30; }));
  stand_in::lose_device(cudaErrorIllegalAddress);
  const Feed::Outcome outcome = wait();
  EXPECT_EQ(outcome.kind, Feed::Outcome::Kind::kEnded) << outcome.reason;
  expect_all_out(120);
  EXPECT_EQ(stats_->status().device, "cpu");
  EXPECT_TRUE(device_->lost());
  // The same encoders, which make a keyframe every 250 frames, and the same files.
  for (const OutputOptions& output : options_.outputs) {
    const std::vector<std::int64_t> keys = probe(output.url, "frame=key_frame");
    EXPECT_EQ(keys.size(), 120u) << output.name;
    EXPECT_EQ(std::ranges::count(keys, 1), 1) << output.name;
    EXPECT_FALSE(std::filesystem::exists(folder / (output.name + ".2.mp4")));
  }
}

/// A named pipe that holds a whole file, and does not end before close().
class OpenPipe {
 public:
  OpenPipe(const std::string& path, const std::string& file) {
    std::ifstream stream(file, std::ios::binary);
    const std::string bytes{std::istreambuf_iterator<char>(stream), {}};
    // Opened for both, which waits for no reader.
    if (::mkfifo(path.c_str(), 0600) != 0 || (fd_ = ::open(path.c_str(), O_RDWR)) < 0 ||
        ::fcntl(fd_, F_SETPIPE_SZ, kSize) < static_cast<int>(bytes.size()) ||
        ::write(fd_, bytes.data(), bytes.size()) != static_cast<ssize_t>(bytes.size())) {
      throw std::runtime_error("no pipe holds " + file);
    }
  }
  ~OpenPipe() { close(); }
  OpenPipe(const OpenPipe&) = delete;
  OpenPipe& operator=(const OpenPipe&) = delete;
  void close() {
    if (fd_ >= 0) ::close(std::exchange(fd_, -1));
  }

 private:
  static constexpr int kSize = 1 << 20;

  int fd_ = -1;
};

class MaskedFeedLossTest : public CudaFeedLossTest {
 protected:
  static constexpr std::uint64_t kFrames = 60;

  /// Starts the feed, and waits until the GPU has converted some frames.
  void start_masked() {
    options_.input.loop = true;
    options_.input.duration = 6s;
    mask_left_half(options_, folder_);
    start();
    ASSERT_TRUE(comes_true([&] { return stats_->ledger().encodes[0].out >= 15; }));
  }
  void expect_all_out_and_masked() {
    const Feed::Outcome outcome = wait();
    EXPECT_EQ(outcome.kind, Feed::Outcome::Kind::kEnded) << outcome.reason;
    expect_all_out(kFrames);
    EXPECT_TRUE(device_->lost());
    EXPECT_EQ(stats_->status().device, "cpu");
    for (const OutputOptions& output : options_.outputs) expect_left_half_masked(output, kFrames);
  }

 private:
  const TempFolder folder_;
};

TEST_F(MaskedFeedLossTest, WhatIsMaskedShowsNowhereWhenTheGpuIsLost) {
  start_masked();
  stand_in::lose_device(cudaErrorIllegalAddress);
  expect_all_out_and_masked();
}

/// What the GPU was working on runs again on the CPU.
TEST_F(MaskedFeedLossTest, WhatIsMaskedShowsNowhereWhenTheGpuHangs) {
  start_masked();
  stand_in::hold();
  expect_all_out_and_masked();
  let_go();
}

TEST_F(CudaFeedLossTest, AFeedWithoutRoomIsRefusedWithTheAmounts) {
  stand_in::set_memory(1000);
  start();
  const Feed::Outcome outcome = wait();
  EXPECT_EQ(outcome.fault, FeedFault::kMemory);
  EXPECT_NE(outcome.reason.find("are needed for 3 lanes"), std::string::npos) << outcome.reason;
  EXPECT_FALSE(device_->lost());
}

/// FFmpeg's decoder asks for the memory, and its own error says no more than that there is none.
TEST_F(CudaFeedLossTest, AFeedWhoseFramesCannotBeLockedIsRefusedWithTheAmounts) {
  stand_in::fail_nth_call("cudaHostRegister", 1, cudaErrorMemoryAllocation);
  start();
  const Feed::Outcome outcome = wait();
  EXPECT_EQ(outcome.kind, Feed::Outcome::Kind::kFailed);
  EXPECT_EQ(outcome.fault, FeedFault::kMemory);
  EXPECT_TRUE(std::regex_search(
      outcome.reason, std::regex("^[0-9]+ MiB more cannot be locked for cuda:0, beside [0-9]+ MiB "
                                 "that are and with [0-9]+ MiB available: cudaHostRegister: ")))
      << outcome.reason;
  EXPECT_FALSE(device_->lost());
}

TEST_F(CudaFeedLossTest, CancelWaitsForWhatTheGpuHolds) {
  options_.input.loop = true;
  start();
  ASSERT_TRUE(comes_true([&] { return stats_->ledger().encodes[0].out >= 10; }));
  feed_->cancel(DropReason::kStop);
  EXPECT_EQ(wait().kind, Feed::Outcome::Kind::kStopped);
  feed_.reset();
  const FeedStats::Ledger ledger = stats_->ledger();
  for (const EncodeCounts& counts : ledger.encodes) {
    EXPECT_EQ(counts.in, counts.out + counts.dropped[index_of(DropReason::kStop)]);
  }
  EXPECT_FALSE(device_->lost());
}

TEST_F(CudaFeedLossTest, AFeedWhoseMemoryIsNotThereYetCanBeStopped) {
  stand_in::hold(stand_in::streams().at(2));
  options_.input.loop = true;
  start();
  ASSERT_TRUE(
      comes_true([&] { return (*stats_->ring_jobs())[index_of(RingState::kConverting)] > 0; }));
  feed_->cancel(DropReason::kStop);
  EXPECT_TRUE(feed_->join_until(std::chrono::steady_clock::now() + 8s));
  let_go();
}

TEST_F(CudaFeedLossTest, CancelOverAGpuThatHangsAbandonsNoThread) {
  options_.input.loop = true;
  start();
  ASSERT_TRUE(comes_true([&] { return stats_->ledger().encodes[0].out >= 10; }));
  stand_in::hold();
  // All of the ring's: one alone may have been converted before the GPU hung.
  ASSERT_TRUE(comes_true([&] {
    return (*stats_->ring_jobs())[index_of(RingState::kConverting)] ==
           static_cast<unsigned>(options_.ring);
  }));
  feed_->cancel(DropReason::kStop);
  // It is noticed in little more than two seconds. Looking only every ten would be too late.
  EXPECT_TRUE(feed_->join_until(std::chrono::steady_clock::now() + 8s));
  EXPECT_EQ(feed_->outcome().value().kind, Feed::Outcome::Kind::kStopped);
  EXPECT_TRUE(device_->lost());
  for (const EncodeCounts& counts : stats_->ledger().encodes) {
    EXPECT_EQ(counts.in, counts.out + counts.dropped[index_of(DropReason::kStop)]);
  }
  let_go();
  const std::uint64_t abandoned = threads_abandoned();
  feed_.reset();
  EXPECT_EQ(threads_abandoned(), abandoned);
}

TEST_F(CudaFeedLossTest, WhoDestroysAFeedDoesNotWaitForAGpuThatHangs) {
  hang_beside();
  deadlines_.after_cancel = 500ms;
  options_.input.loop = true;
  start();
  ASSERT_TRUE(comes_true([&] { return stats_->ledger().encodes[0].out >= 10; }));
  expect_abandoned([] { stand_in::release(); });
}

TEST_F(CudaFeedLossTest, AFeedWhoseMemoryAHungGpuKeepsHasEndedAllTheSame) {
  // A pipe whose writing end is open: the feed lets go of no memory before the GPU is lost.
  const TempFolder folder;
  const std::string clip = folder / "clip.mkv";
  ffmpeg("-i '" + small_clip() + "' -c copy '" + clip + "'");
  OpenPipe pipe(folder / "pipe", clip);
  options_.input.url = folder / "pipe";
  const std::uint64_t abandoned = threads_abandoned();
  hang_beside();
  // On a busy machine a thread that waits for nothing may still be late.
  deadlines_.after_cancel = deadlines_.after_deadline = 5s;
  start();
  ASSERT_TRUE(comes_true([&] { return stats_->ledger().encodes[0].out >= 10; }));
  device_->context()->lose("another feed's job does not come to an end",
                           CudaContext::Loss::kStuckCall);  // long before 10 s
  pipe.close();
  EXPECT_EQ(outcome_while_watched().kind, Feed::Outcome::Kind::kEnded);
  expect_all_out(kClipFrames);
  feed_.reset();
  EXPECT_EQ(threads_abandoned(), abandoned);  // the memory stays registered: nothing waits for that
  let_go();
}

TEST_F(CudaFeedLossTest, AFeedThatStartsOnAGpuThatHangsIsAbandoned) {
  const int records = stand_in::calls("cudaEventRecord");
  // Another feed's call does not return.
  auto gate = std::make_optional(device_->context()->enter_copy_gate());
  deadlines_.after_cancel = deadlines_.after_deadline = 500ms;
  start();
  ASSERT_TRUE(comes_true([&] { return stand_in::calls("cudaEventRecord") > records; }));
  device_->context()->lose("another feed's job does not come to an end",
                           CudaContext::Loss::kStuckCall);  // long before a minute
  const Feed::Outcome outcome = outcome_while_watched();
  EXPECT_EQ(outcome.kind, Feed::Outcome::Kind::kFailed);
  EXPECT_EQ(outcome.fault, FeedFault::kDevice);
  EXPECT_EQ(outcome.reason.find("a call on cuda:0 does not come to an end"), 0u) << outcome.reason;
  expect_abandoned([&gate] { gate.reset(); });
  let_go();
}

}  // namespace
}  // namespace framelane::testing
