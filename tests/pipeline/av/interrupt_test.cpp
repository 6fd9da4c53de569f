#include "pipeline/av/interrupt.hpp"

#include <gtest/gtest.h>

namespace framelane {
namespace {

using namespace std::chrono_literals;

bool interrupted(Interrupt& interrupt) {
  const AVIOInterruptCB callback = interrupt.callback();
  return callback.callback(callback.opaque) != 0;
}

TEST(InterruptTest, UnarmedLetsCallsBlock) {
  Interrupt interrupt{std::stop_token{}};
  EXPECT_FALSE(interrupted(interrupt));
}

TEST(InterruptTest, PassedDeadlineInterruptsAndSaysSo) {
  Interrupt interrupt{std::stop_token{}};
  interrupt.arm(0ms);
  EXPECT_TRUE(interrupted(interrupt));
  EXPECT_EQ(interrupt.cause(), Interrupt::Cause::kTimeout);
}

TEST(InterruptTest, StopWinsOverADeadlineThatIsFarAway) {
  std::stop_source stop;
  Interrupt interrupt(stop.get_token());
  interrupt.arm(1h);
  EXPECT_FALSE(interrupted(interrupt));
  stop.request_stop();
  EXPECT_TRUE(interrupted(interrupt));
  EXPECT_EQ(interrupt.cause(), Interrupt::Cause::kStopped);
}

TEST(InterruptTest, AFarewellEndsAtItsDeadlineAlone) {
  std::stop_source stop;
  Interrupt interrupt(stop.get_token());
  stop.request_stop();
  interrupt.arm_farewell(1h);
  EXPECT_FALSE(interrupted(interrupt));
  interrupt.arm_farewell(0ms);
  EXPECT_TRUE(interrupted(interrupt));
  interrupt.arm(1h);
  EXPECT_TRUE(interrupted(interrupt));
}

TEST(InterruptTest, ArmingForgetsTheLastCause) {
  Interrupt interrupt{std::stop_token{}};
  interrupt.arm(0ms);
  interrupted(interrupt);
  interrupt.arm(1h);
  EXPECT_EQ(interrupt.cause(), Interrupt::Cause::kNone);
}

TEST(InterruptTest, OnlyACallThatIsStillUnderWayIsOverdue) {
  Interrupt interrupt{std::stop_token{}};
  EXPECT_FALSE(interrupt.overdue());
  {
    const CallScope call(interrupt, 0ms);
    EXPECT_TRUE(interrupt.overdue());
    interrupt.arm(1h);
    EXPECT_FALSE(interrupt.overdue());
    interrupt.arm(0ms);
  }
  EXPECT_FALSE(interrupt.overdue());
}

}  // namespace
}  // namespace framelane
