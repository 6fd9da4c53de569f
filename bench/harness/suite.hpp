#pragma once

#include <span>
#include <string_view>

#include "bench/harness/result.hpp"
#include "bench/harness/turns.hpp"

namespace framelane::bench {

struct Suite {
  std::string_view name;
  std::string_view title;
  /// Measures, and adds to `result` what was measured, left out and wrong. Without a GPU it
  /// measures what the CPU can do. May throw; what it has measured until then is in `result`.
  void (*run)(const Session& session, Result& result);
};

std::span<const Suite> suites();
/// Null: there is none of this name.
const Suite* find_suite(std::string_view name);

/// Runs a suite. An exception becomes a problem of the result.
Result run_suite(const Suite& suite, const Session& session);

void run_convert(const Session& session, Result& result);
void run_kernels(const Session& session, Result& result);
void run_overlap(const Session& session, Result& result);
void run_peers(const Session& session, Result& result);
void run_reduce(const Session& session, Result& result);
void run_stage(const Session& session, Result& result);
void run_vecadd(const Session& session, Result& result);

}  // namespace framelane::bench
