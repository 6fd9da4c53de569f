#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <memory>
#include <string>

#include "daemon/commands.hpp"
#include "tests/daemon/one_device.hpp"
#include "tests/pipeline/stage/device_wrapper.hpp"

namespace framelane {
namespace {

class LostDevice : public DeviceWrapper {
 public:
  LostDevice() : DeviceWrapper(make_cpu_device()) {}
  bool lost() const override { return true; }
};

/// Stands for what a lost GPU holds up when the process ends.
void hang_in_destruction() {
  std::atexit([] {
    for (;;) pause();
  });
}

TEST(ExitTest, ALostGpuIsNotWaitedFor) {
  const DeviceSet devices({}, {std::make_shared<LostDevice>()}, make_cpu_device());
  EXPECT_EXIT(
      {
        hang_in_destruction();
        exit_past_hangs(3, &devices);
      },
      ::testing::ExitedWithCode(3), "");
}

TEST(ExitTest, WithoutAHangTheProcessEndsInOrder) {
  // In a process of its own: in this one, another test may have left a thread behind.
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(
      {
        const bool returns =
            exit_past_hangs(3, testing::one_device(make_cpu_device()).get()) == 3 &&
            exit_past_hangs(0) == 0;
        std::exit(returns ? 42 : 1);
      },
      ::testing::ExitedWithCode(42), "");
}

}  // namespace
}  // namespace framelane
