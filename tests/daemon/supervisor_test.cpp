#include "daemon/supervisor.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <chrono>
#include <cstddef>
#include <fstream>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "tests/daemon/fake_clock.hpp"
#include "tests/daemon/missing_source.hpp"
#include "tests/daemon/one_device.hpp"
#include "tests/daemon/stuck_device.hpp"
#include "tests/pipeline/base/wait.hpp"
#include "tests/pipeline/stage/device_wrapper.hpp"

namespace framelane {
namespace {

/// The CPU. A stop is requested while the first feed is being started on it.
class StoppingDevice : public DeviceWrapper {
 public:
  StoppingDevice() : DeviceWrapper(make_cpu_device()) {}
  /// Before the first feed starts.
  void stops(Supervisor& supervisor) { supervisor_ = &supervisor; }
  /// How many feeds have been started. Once the supervisor is done.
  int starts() const { return starts_; }
  std::unique_ptr<Stage> make_stage(FeedStats& stats, std::optional<int> slices) override {
    ++starts_;
    supervisor_->request_stop();
    return device_->make_stage(stats, slices);
  }

 private:
  Supervisor* supervisor_ = nullptr;
  int starts_ = 0;
};

TEST(SupervisorTest, AStopWhileFeedsAreStartedStartsNoFurtherOnes) {
  const auto device = std::make_shared<StoppingDevice>();
  std::vector<FeedOptions> feeds(3, testing::feed_without_source());
  feeds[1].name = "yard";
  feeds[2].name = "roof";
  Supervisor supervisor(std::move(feeds), testing::one_device(device), {});
  device->stops(supervisor);
  supervisor.start();
  ASSERT_TRUE(supervisor.wait_done(std::chrono::minutes(1)));
  EXPECT_EQ(device->starts(), 1);
  EXPECT_TRUE(supervisor.all_succeeded());
}

// The sanitizers bring a heap of their own.
#if defined(__GLIBC__) && !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)

std::size_t resident_bytes() {
  std::size_t size = 0;
  std::size_t resident = 0;
  std::ifstream("/proc/self/statm") >> size >> resident;
  return resident * static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
}

TEST(SupervisorTest, FreedMemoryIsGivenBackToTheSystem) {
  constexpr std::size_t kBlock = 16 << 10;
  constexpr std::size_t kBlocks = 4096;
  FakeClock clock;
  Supervisor supervisor({}, testing::one_device(std::make_shared<StuckDevice>()),
                        {.now = clock.function()});
  supervisor.start();
  ASSERT_TRUE(testing::comes_true([&] { return supervisor.ready(); }));
  std::vector<std::vector<char>> blocks(kBlocks, std::vector<char>(kBlock));
  for (std::size_t i = 0; i < kBlocks; ++i) {
    if (i % 64 != 0) std::vector<char>().swap(blocks[i]);  // what is left keeps the heap long
  }
  const std::size_t before = resident_bytes();
  clock.advance(Supervisor::kTrimEvery);
  EXPECT_TRUE(
      testing::comes_true([&] { return resident_bytes() + kBlock * kBlocks / 2 < before; }));
}

#endif

}  // namespace
}  // namespace framelane
