#include <gmock/gmock.h>

#include "tests/bench/gpu_suites.hpp"

namespace framelane::bench {
namespace {

using ::testing::Contains;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class PeersGpuTest : public CudaTest {};
class BrokenPeersGpuTest : public StandInTest {};

TEST_F(PeersGpuTest, PeersAreMeasuredAndOursIsRight) {
  const Session session = gpu_session();
  const Result result = run("peers", session);
  EXPECT_THAT(result.problems, IsEmpty());
  EXPECT_EQ(count(result, "framelane, GPU"), 22);
  EXPECT_EQ(count(result, "copy within the GPU"), 22);
  EXPECT_EQ(count(result, "framelane, one core"), 19);
  // To 4:2:0 with each of three sitings; graphs need NVIDIA's own runtime.
  EXPECT_EQ(count(result, "framelane, GPU, slowest of 6 colours"), 2 * 3);
  EXPECT_EQ(count(result, "a pixel a thread, GPU"), 2);
  for (const char* name :
       {"framelane, GPU", "framelane, GPU, 16 frames a launch", "framelane, GPU, 8 frames a launch",
        "framelane, GPU, slowest of 6 colours", "a pixel a thread, GPU"}) {
    expect_measured_and_right(result, name);
    EXPECT_EQ(result.measured(name)->median_of("off"), 0);
    EXPECT_GT(result.measured(name)->median_of("of the copy").value_or(0), 0);
  }
  if (session.npp.empty()) return;     // a real GPU's may not be installed
  EXPECT_EQ(count(result, "NPP"), 2);  // in the same size, and in a fourth of it
  const Row* npp = result.measured("NPP");
  ASSERT_NE(npp, nullptr);
  EXPECT_GT(npp->median_of("off").value_or(0), 10);
  EXPECT_LE(npp->median_of("off by").value_or(0), 3);
  EXPECT_EQ(npp->checked, Checked::kNothing);
}

TEST_F(BrokenPeersGpuTest, AWrongByteFailsPeers) {
  const Session session = gpu_session();
  stand_in::spoil_downloads();
  const Result result = run("peers", session);
  EXPECT_THAT(result.problems, Each(HasSubstr("wrong result of ")));
  EXPECT_THAT(
      result.problems,
      Contains(HasSubstr("wrong result of framelane, GPU, formats bgra to yuv420p, size 37x23: "
                         "plane 2, row 11, byte 18 is ")));
  for (const Row& row : result.rows) {
    const bool exact = row.name.starts_with("framelane, GPU") || row.is("a pixel a thread, GPU");
    EXPECT_EQ(row.checked == Checked::kWrong, exact) << row.full_name();
  }
  expect_measured_and_right(result, "framelane, one core");
}

TEST_F(BrokenPeersGpuTest, ANppThatFailsLeavesTheCpusPart) {
  const Session session = gpu_session();
  setenv("FRAMELANE_FAKE_NPP_STATUS", "-1000", 1);
  const Result result = run("peers", session);
  unsetenv("FRAMELANE_FAKE_NPP_STATUS");
  EXPECT_THAT(result.problems, ElementsAre("the GPU's part: NPP's status is -1000"));
  expect_measured_and_right(result, "framelane, one core");
}

TEST_F(BrokenPeersGpuTest, WithoutNppTheOthersAreMeasured) {
  Session session = gpu_session();
  session.npp = "/nonexistent/libnppicc.so";
  const Result result = run("peers", session);
  EXPECT_THAT(result.problems, IsEmpty());
  EXPECT_THAT(result.left_out, Contains("NPP: libnppicc is not installed here"));
  EXPECT_EQ(count(result, "NPP"), 0);
  expect_measured_and_right(result, "framelane, GPU");
}

}  // namespace
}  // namespace framelane::bench
