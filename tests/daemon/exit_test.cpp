#include <gtest/gtest.h>

#include <cstdlib>
#include <memory>
#include <string>

#include "daemon/commands.hpp"
#include "tests/pipeline/stage/device_wrapper.hpp"

namespace framelane {
namespace {

class LostGpu : public DeviceWrapper {
 public:
  LostGpu() : DeviceWrapper(make_cpu_device()) {}
  bool lost() const override { return true; }
};

/// Stands for what a lost GPU holds up when the process ends.
void hang_in_destruction() {
  std::atexit([] {
    for (;;) {
    }
  });
}

TEST(ExitTest, ALostGpuIsNotWaitedFor) {
  const LostGpu gpu;
  EXPECT_EXIT(
      {
        hang_in_destruction();
        exit_past_hangs(3, &gpu);
      },
      ::testing::ExitedWithCode(3), "");
}

TEST(ExitTest, WithoutAHangTheProcessEndsInOrder) {
  const std::shared_ptr<Device> cpu = make_cpu_device();
  EXPECT_EQ(exit_past_hangs(3, cpu.get()), 3);
  EXPECT_EQ(exit_past_hangs(0), 0);
}

}  // namespace
}  // namespace framelane
