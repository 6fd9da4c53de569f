#include "daemon/supervisor.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstddef>
#include <fstream>
#include <memory>
#include <vector>

#include "tests/daemon/fake_clock.hpp"
#include "tests/daemon/stuck_device.hpp"
#include "tests/pipeline/base/wait.hpp"

namespace framelane {
namespace {

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
  Supervisor supervisor({}, std::make_shared<StuckDevice>(), {.now = clock.function()});
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
