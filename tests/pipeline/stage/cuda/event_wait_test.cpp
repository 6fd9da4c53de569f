#include "pipeline/stage/cuda/event_wait.hpp"

#include <chrono>
#include <future>

#include "tests/cuda_runtime/fixture.hpp"
#include "tests/pipeline/base/wait.hpp"

namespace framelane::testing {
namespace {

using namespace std::chrono_literals;

using EventWaitTest = StandInTest;

TEST_F(EventWaitTest, EndsWhenTheEventComesAndSleepsUntilThen) {
  const CudaStream stream;
  const CudaEvent event(CudaEvent::Kind::kTime);
  EventWait waiting;
  for (int round = 0; round < 3; ++round) {
    stand_in::hold(stream.get());
    event.record(stream);
    const int before = stand_in::calls("cudaEventQuery");
    const auto begin = std::chrono::steady_clock::now();
    auto wait = std::async(std::launch::async, [&] {
      cudaSetDevice(0);
      waiting.wait(event);
    });
    EXPECT_TRUE(comes_true([&] { return stand_in::calls("cudaEventQuery") > before + 60; }));
    EXPECT_EQ(wait.wait_for(0s), std::future_status::timeout);
    // The sleeps get longer, up to 250 us.
    const int asked = stand_in::calls("cudaEventQuery") - before;
    EXPECT_LT(asked, 80 + (std::chrono::steady_clock::now() - begin) / 250us);
    stand_in::release(stream.get());
    wait.get();
    EXPECT_TRUE(event.has_come());
  }
}

TEST_F(EventWaitTest, ThrowsWhatTheGpuAnswers) {
  const CudaStream stream;
  const CudaEvent event(CudaEvent::Kind::kTime);
  stand_in::hold(stream.get());
  event.record(stream);
  stand_in::fail_nth_call("cudaEventQuery", 3, cudaErrorIllegalAddress);
  EXPECT_THROW(EventWait().wait(event), CudaError);
  stand_in::release(stream.get());
  stream.synchronize();
}

}  // namespace
}  // namespace framelane::testing
