#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "bench/suites/result.hpp"
#include "pipeline/device.hpp"

namespace framelane::bench {

/// What a suite runs on, and for how long.
struct Session {
  int rounds = 5;
  double seconds = 30;  ///< of measuring, for all rounds and contenders of a suite together
  int width = 0;        ///< of pictures; 0: each suite's own
  int height = 0;
  std::size_t bytes = 64 << 20;            ///< of data that is not frames
  std::shared_ptr<Device> cpu;             ///< never null
  std::shared_ptr<Device> gpu;             ///< null: none is used
  std::string no_gpu;                      ///< then: why
  const std::atomic<int>* stop = nullptr;  ///< not 0: end as soon as may be
  /// Measures a suite in a process of its own, with a variable ("NAME=VALUE") in its environment,
  /// for what is settled when a process starts; gives the rows and problems. Throws where that
  /// process says nothing. None: there is no such way.
  std::function<Result(const char* suite, const char* variable)> in_other_process;
  bool show_progress = false;  ///< on standard error

  bool stopped() const { return stop != nullptr && *stop != 0; }
};

/// One way to do a suite's work.
struct Contender {
  Row row;
  /// Once before every turn, not measured: spoils what the last turn has left behind.
  std::function<void()> prepare;
  /// Does the work once; returns one sample, in the row's unit.
  std::function<double()> work;
  /// Once after every turn, not measured: empty, or what is wrong and where. None: there is nothing
  /// to compare.
  std::function<std::string()> check;
};

/// Milliseconds that a call takes.
double milliseconds(const std::function<void()>& call);

/// Lets the contenders take turns, round by round, so that a machine which is slower for a while is
/// so for all. Each has an equal share of the time, and does its work at least once a turn. A first
/// round is not measured: it warms up and checks. A contender that is wrong once is a problem of
/// the result and gets no further turn. A stop ends the round; what was measured stays. Adds a row
/// per contender. Throws what the contenders throw.
void take_turns(const Session& session, const std::vector<Contender>& contenders, Result& result);

/// Where `got` first differs from `expected`: "byte 17 is 5 instead of 7, and 3 more differ"; empty
/// where it does not.
std::string first_difference(const std::uint8_t* expected, const std::uint8_t* got,
                             std::size_t bytes);

}  // namespace framelane::bench
