#pragma once

#include <memory>

#include "bench/harness/turns.hpp"
#include "pipeline/stage/cpu_stage.hpp"

namespace framelane::bench {

/// A session of two rounds on small frames, without a GPU. In each round each contender does one
/// piece of work.
inline Session cpu_session() {
  Session session;
  session.rounds = 2;
  session.seconds = 0;
  session.width = 37;
  session.height = 23;
  session.bytes = 4000;
  session.cpu = std::make_shared<CpuDevice>(1);
  session.no_gpu = "no GPU in this test";
  return session;
}

}  // namespace framelane::bench
