#include <gmock/gmock.h>

#include "bench/experiments/sum_kernels.hpp"
#include "bench/harness/gpu_part.hpp"
#include "kernels/luma_histogram.hpp"
#include "tests/bench/gpu_suites.hpp"

namespace framelane::bench {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class ReduceGpuTest : public CudaTest {};
class BrokenReduceGpuTest : public StandInTest {};

TEST_F(ReduceGpuTest, ReduceIsRightInEveryWay) {
  const Result result = run("reduce", gpu_session());
  EXPECT_THAT(result.problems, IsEmpty());
  EXPECT_EQ(result.rows[0].name, "CPU, reading alone");  // ceilings are first
  EXPECT_EQ(result.rows[1].name, "GPU, empty kernels");
  // Four on the CPU, six with a launch for each sum and one with one for all, and empty kernels;
  // CUB and graphs are of the program alone. Conversions: two on the CPU, and three on the GPU of
  // each of three pictures.
  EXPECT_EQ(result.rows.size(), 4u + 6 + 1 + 1 + 2 + 3 * 3);
  for (const Row& row : result.rows) {
    EXPECT_EQ(row.samples.size(), 1u) << row.name;
    EXPECT_EQ(row.checked, row.is("GPU, empty kernels") ? Checked::kNothing : Checked::kRight)
        << row.name;
  }
  EXPECT_THAT(result.verdict, Contains(HasSubstr("a launch for each sum: GPU, ")));
}

TEST_F(BrokenReduceGpuTest, AWrongByteFailsReduce) {
  const Session session = gpu_session();
  stand_in::spoil_downloads();
  const Result result = run("reduce", session);
  EXPECT_EQ(result.problems.size(), 7u + 3 * 3);  // every way over the GPU
  EXPECT_THAT(result.problems, Contains(HasSubstr("wrong result of GPU, warp shuffles: sum 999 ")));
}

TEST_F(BrokenReduceGpuTest, AWrongCountOfLumaFailsReduce) {
  Session session = gpu_session();
  session.width = 16;
  session.height = 8;
  stand_in::spoil_downloads(sizeof(LumaHistogram));  // the whole picture is smaller
  const Result result = run("reduce", session);
  const std::string why = ", picture gradient: its luma is counted wrongly";
  EXPECT_THAT(
      result.problems,
      AllOf(Contains("wrong result of GPU, BGRA to NV12 and luma in one kernel, size 16x8" + why),
            Contains("wrong result of GPU, BGRA to NV12, then luma, size 16x8" + why)));
  EXPECT_NE(result.measured("GPU, BGRA to NV12"), nullptr);
}

TEST_F(ReduceGpuTest, EveryWayAddsPicturesOfEveryLength) {
  const Session session = gpu_session();
  constexpr std::size_t kMost = 70'000;
  CudaContext& context = context_of(session);
  std::vector<float> values(kMost);
  for (std::size_t i = 0; i < kMost; ++i) values[i] = static_cast<float>(i * 7 % 61);
  const DeviceMemory memory(context.allocate(kMost * sizeof(float)));
  const DeviceMemory sum_memory(context.allocate(sizeof(float)));
  context.memory_stream().synchronize();
  const Streams streams(1);
  copy(memory.data(), values.data(), kMost * sizeof(float), cudaMemcpyHostToDevice,
       streams[0].get());
  auto* const sum = reinterpret_cast<float*>(sum_memory.data());
  for (const std::size_t count : {1, 2, 3, 4, 5, 31, 32, 33, 255, 256, 257, 1023, 1025, 70'000}) {
    for (const SumWay way : kSumWays) {
      cuda::check(cudaMemsetAsync(sum, 0, sizeof(float), streams[0].get()), "cudaMemsetAsync");
      cuda::check(enqueue_sum(way, reinterpret_cast<const float*>(memory.data()), count, sum,
                              streams[0].get()),
                  "cudaLaunchKernel");
      float got = -1;
      copy(&got, sum, sizeof got, cudaMemcpyDeviceToHost, streams[0].get());
      streams.synchronize(1);
      float expected = 0;
      for (std::size_t i = 0; i < count; ++i) expected += values[i];
      EXPECT_EQ(got, expected) << name_of(way) << ", " << count;
    }
  }
}

}  // namespace
}  // namespace framelane::bench
