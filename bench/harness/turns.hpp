#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "bench/harness/result.hpp"
#include "pipeline/base/failure.hpp"
#include "pipeline/stage/device.hpp"

namespace framelane::bench {

using Clock = std::chrono::steady_clock;

inline double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

/// A suite that another process measures, round by round in turn with this one. One thread.
class OtherProcess {
 public:
  virtual ~OtherProcess() = default;
  /// Lets it do its next round, the first of which is not measured, and returns when it has.
  virtual void round() = 0;
  /// After the last round: its rows and problems. Throws where that process says nothing.
  virtual Result result() = 0;
};

/// What a suite runs on, and for how long.
struct Session {
  int rounds = 5;
  double seconds = 30;  ///< of measuring, for all rounds and contenders of a suite together
  int width = 0;        ///< of pictures; 0: each suite's own
  int height = 0;
  std::size_t bytes = 64 << 20;            ///< of data that is not frames
  std::size_t memory = 0;                  ///< of the machine, in bytes; 0: what it has
  std::shared_ptr<Device> cpu;             ///< never null
  std::shared_ptr<Device> gpu;             ///< null: none is used
  std::string no_gpu;                      ///< then: why
  std::string npp;                         ///< file of NPP's library; empty: the installed one
  const std::atomic<int>* stop = nullptr;  ///< not 0: end as soon as may be
  /// Starts a process for a suite that measures for so many seconds, with variables ("NAME=VALUE")
  /// in its environment, for what is settled when a process starts. Throws where it cannot be
  /// started. None: there is no such way.
  std::function<std::unique_ptr<OtherProcess>(const char* suite, double seconds,
                                              const std::vector<std::string>& variables)>
      other_process;
  std::function<bool()> before_round;  ///< none, or false: measure no further
  std::function<void()> after_round;   ///< none, or what comes after each, the first included
  bool show_progress = false;          ///< on standard error

  bool stopped() const { return stop != nullptr && *stop != 0; }
};

/// There is not enough memory for one of the contenders, as a line that says what to do.
struct NoRoom : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// Of the machine, in bytes, as far as this process may have it.
std::size_t memory_of(const Session& session);
/// Throws NoRoom where so many bytes, which are written at once, are more than the machine can well
/// give; `option` asks for less. Without that the system would end the process, or another one.
void require_memory(const Session& session, std::size_t bytes, const char* option);

/// Whether memory for frames is what was lacking.
inline bool has_no_memory(const std::exception& error) {
  const auto* feed = dynamic_cast<const FeedError*>(&error);
  return feed != nullptr && feed->code() == FeedFault::kMemory;
}

/// One way to do a suite's work.
struct Contender {
  Row row;
  /// Once before every turn, not measured: spoils what the last turn has left behind. May throw
  /// NoRoom.
  std::function<void()> prepare;
  /// Does the work once; returns one sample, in the row's unit.
  std::function<double()> work;
  /// Once after every turn, not measured: empty, or what is wrong and where. None: there is nothing
  /// to compare.
  std::function<std::string()> check;
  /// Once after every measured work: a sample for each of the row's `more`. None: it has none.
  std::function<std::vector<double>()> more = {};
};

/// Milliseconds that a call takes.
double milliseconds(const std::function<void()>& call);

/// Lets the contenders take turns, round by round, so that a machine which is slower for a while is
/// so for all; another begins each of them. Each has an equal share of the time, and does its work
/// at least once a turn. A first round is not measured: it warms up and checks. A contender that is
/// wrong once, or for which there is no room, is a problem of the result and gets no further turn.
/// A stop ends the round; what was measured stays. Adds a row per contender. Throws what else the
/// contenders throw.
void take_turns(const Session& session, const std::vector<Contender>& contenders, Result& result);
/// The same with turns of so many seconds: for the contenders of a part of a suite.
void take_turns(const Session& session, double turn, const std::vector<Contender>& contenders,
                Result& result);
/// How long a turn is where a suite has so many contenders in all.
double turn_seconds(const Session& session, std::size_t contenders);

/// Where `got` first differs from `expected`: "byte 17 is 5 instead of 7, and 3 more differ"; empty
/// where it does not.
std::string first_difference(const std::uint8_t* expected, const std::uint8_t* got,
                             std::size_t bytes);

}  // namespace framelane::bench
