#include "pipeline/stage/cuda/cuda_context.hpp"

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>

#include "tests/cuda_runtime/fixture.hpp"

namespace framelane {
namespace {

using std::chrono::milliseconds;

class CudaContextTest : public CudaTest {
 protected:
  /// Books a stretch of work, in milliseconds since start_; returns its length.
  std::chrono::nanoseconds account(Engine engine, int from, int to) {
    return context_->account(engine, start_ + milliseconds(from), start_ + milliseconds(to), lane_,
                             kFrame);
  }
  /// The sum of the engine's slices in the lane's trace.
  std::chrono::nanoseconds traced(Engine engine) const {
    std::chrono::nanoseconds sum{0};
    recorder_->visit(start_, [&](const FlightRecorder::Record& record) {
      EXPECT_EQ(record.frame, kFrame);
      if (record.kind == trace_kind(engine)) sum += record.duration;
    });
    return sum;
  }
  void SetUp() override {
    CudaTest::SetUp();
    if (!HasFatalFailure()) context_.emplace(0);
  }
  void TearDown() override {
    context_.reset();
    CudaTest::TearDown();
  }

  static constexpr std::int64_t kFrame = 40'000;
  const DeviceClock::Clock::time_point start_ = DeviceClock::Clock::now() - std::chrono::seconds(1);
  std::optional<CudaContext> context_;
  const std::shared_ptr<FlightRecorder> recorder_ = std::make_shared<FlightRecorder>(10'000);
  LaneStats lane_{.trace = TraceTrack(recorder_, "gate", "lane 0")};
};

TEST_F(CudaContextTest, WorkBeginsWhenItsEngineHasEndedTheLast) {
  for (const Engine engine : {Engine::kH2d, Engine::kKernel, Engine::kD2h}) {
    EXPECT_EQ(account(engine, 0, 10), milliseconds(10));
    EXPECT_EQ(account(engine, 5, 20), milliseconds(10));
    EXPECT_EQ(account(engine, 30, 35), milliseconds(5));
    EXPECT_EQ(lane_.busy[engine].total(), milliseconds(25));
    EXPECT_EQ(context_->busy()[engine].total(), milliseconds(25));
    EXPECT_EQ(traced(engine), milliseconds(25));
  }
}

TEST_F(CudaContextTest, ACopyThatIsBookedAfterALaterOneHasALengthAndCountsNoTimeTwice) {
  EXPECT_EQ(account(Engine::kH2d, 5, 20), milliseconds(15));
  EXPECT_EQ(account(Engine::kH2d, 6, 10), milliseconds(4));
  EXPECT_EQ(lane_.busy[Engine::kH2d].total(), milliseconds(15));
  EXPECT_EQ(context_->busy()[Engine::kH2d].total(), milliseconds(15));
  EXPECT_EQ(traced(Engine::kH2d), milliseconds(15));
}

}  // namespace
}  // namespace framelane
