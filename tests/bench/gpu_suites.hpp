// What the tests of the suites on a GPU share.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <string_view>
#include <utility>

#include "bench/harness/suite.hpp"
#include "pipeline/stage/cpu_stage.hpp"
#include "pipeline/stage/gpu.hpp"
#include "tests/cuda_runtime/fixture.hpp"

namespace framelane::bench {

/// A session of one round on small frames, in which each contender does one piece of work.
inline Session gpu_session() {
  setenv(kCudaConnections, "32", 1);  // whatever the tests were started with
  static const std::shared_ptr<Device> cpu = std::make_shared<CpuDevice>(1);
  Session session;
  session.rounds = 1;
  session.seconds = 0;
  session.width = 37;  // a multiple of nothing; fewer rows than there are streams
  session.height = 23;
  session.bytes = 300'000;
  session.cpu = cpu;
  GpuResult gpu = open_gpu(0, cpu);
  EXPECT_NE(gpu.device, nullptr) << gpu.why;
  session.gpu = std::move(gpu.device);
  if (stand_in::present()) session.npp = FRAMELANE_FAKE_NPP;
  return session;
}

inline Result run(const char* suite, const Session& session) {
  return run_suite(*find_suite(suite), session);
}

inline int count(const Result& result, std::string_view name) {
  return static_cast<int>(
      std::ranges::count_if(result.rows, [&](const Row& row) { return row.is(name); }));
}

inline void expect_measured_and_right(const Result& result, std::string_view name) {
  EXPECT_GT(count(result, name), 0) << name;
  for (const Row& row : result.rows) {
    if (!row.is(name)) continue;
    EXPECT_EQ(row.samples.size(), 1u) << name;
    EXPECT_EQ(row.checked, Checked::kRight) << name;
  }
}

}  // namespace framelane::bench
