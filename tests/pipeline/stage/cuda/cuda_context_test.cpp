#include "pipeline/stage/cuda/cuda_context.hpp"

#include <chrono>
#include <optional>

#include "tests/cuda_runtime/fixture.hpp"

namespace framelane {
namespace {

using std::chrono::milliseconds;

class CudaContextTest : public CudaTest {
 protected:
  /// Books a stretch of work, in milliseconds since start_; returns its length.
  std::chrono::nanoseconds account(Engine engine, int from, int to) {
    return context_->account(engine, start_ + milliseconds(from), start_ + milliseconds(to), lane_);
  }
  void SetUp() override {
    CudaTest::SetUp();
    if (!HasFatalFailure()) context_.emplace(0);
  }
  void TearDown() override {
    context_.reset();
    CudaTest::TearDown();
  }

  const DeviceClock::Clock::time_point start_ = DeviceClock::Clock::now() - std::chrono::seconds(1);
  std::optional<CudaContext> context_;
  EngineMeters lane_;
};

TEST_F(CudaContextTest, WorkBeginsWhenItsEngineHasEndedTheLast) {
  for (const Engine engine : {Engine::kH2d, Engine::kKernel, Engine::kD2h}) {
    EXPECT_EQ(account(engine, 0, 10), milliseconds(10));
    EXPECT_EQ(account(engine, 5, 20), milliseconds(10));
    EXPECT_EQ(account(engine, 30, 35), milliseconds(5));
    EXPECT_EQ(lane_[engine].total(), milliseconds(25));
    EXPECT_EQ(context_->busy()[engine].total(), milliseconds(25));
  }
}

TEST_F(CudaContextTest, ACopyThatIsBookedAfterALaterOneHasALengthAndCountsNoTimeTwice) {
  EXPECT_EQ(account(Engine::kH2d, 5, 20), milliseconds(15));
  EXPECT_EQ(account(Engine::kH2d, 6, 10), milliseconds(4));
  EXPECT_EQ(lane_[Engine::kH2d].total(), milliseconds(15));
  EXPECT_EQ(context_->busy()[Engine::kH2d].total(), milliseconds(15));
}

}  // namespace
}  // namespace framelane
