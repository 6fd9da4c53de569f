#pragma once

#include <atomic>
#include <chrono>
#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "bench/harness/result.hpp"
#include "kernels/scaling.hpp"
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
  /// Lets it do its next round and returns when it is done. The first round is not measured.
  virtual void round() = 0;
  /// After the last round: its rows and problems. Throws if that process gives no result.
  virtual Result result() = 0;
};

/// What a suite runs on, and for how long.
struct Session {
  int rounds = 5;
  double seconds = 30;  ///< of measuring, for all rounds and contenders of a suite together
  int width = 0;        ///< of pictures; 0: each suite's own
  int height = 0;
  std::vector<PictureSize> renditions;     ///< that `stage` makes of each picture; none: itself
  std::size_t bytes = 64 << 20;            ///< of data that is not frames
  std::size_t memory = 0;                  ///< of the machine, in bytes; 0: what it has
  std::shared_ptr<Device> cpu;             ///< never null
  std::shared_ptr<Device> gpu;             ///< null: none is used
  std::string no_gpu;                      ///< then: why
  std::string npp;                         ///< file of NPP's library; empty: the installed one
  const std::atomic<int>* stop = nullptr;  ///< not 0: end as soon as may be
  /// Starts a process that measures a suite for so many seconds, with variables ("NAME=VALUE") in
  /// its environment: some settings of CUDA are fixed when a process starts. Throws if it cannot be
  /// started. Empty: no other process can be used.
  std::function<std::unique_ptr<OtherProcess>(const char* suite, double seconds,
                                              const std::vector<std::string>& variables)>
      other_process;
  std::function<bool()> before_round;  ///< none, or false: measure no further
  std::function<void()> after_round;   ///< none, or what comes after each, the first included
  bool show_progress = false;          ///< on standard error

  bool stopped() const { return stop != nullptr && *stop != 0; }
};

/// There is not enough memory for a contender. what() is a line that says what to do.
struct NoRoom : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// Bytes of memory that this process may use.
std::size_t memory_of(const Session& session);
/// Throws NoRoom if so many bytes are more than three quarters of the memory. `option` is the
/// option that asks for less. Without this check the system might kill this process, or another
/// one.
void require_memory(const Session& session, std::size_t bytes, const char* option);

/// True if memory was lacking, for frames or on the GPU.
bool lacks_memory(const std::exception& error);
/// True if memory on the GPU was lacking; never without the CUDA backend.
bool gpu_lacks_memory(const std::exception& error);

/// One way to do a suite's work.
struct Contender {
  Row row;
  /// Called before every turn, not measured: overwrites the results of the last turn. May throw
  /// NoRoom.
  std::function<void()> prepare;
  /// Does the work once; returns one sample, in the row's unit.
  std::function<double()> work;
  /// Called after every turn, not measured. Returns an empty string, or what is wrong and where.
  /// Null: there is nothing to compare.
  std::function<std::string()> check;
  /// Called after every measured work: returns a sample for each of the row's `more`. Null: there
  /// are none.
  std::function<std::vector<double>()> more = {};
};

/// Milliseconds that a call takes.
double milliseconds(const std::function<void()>& call);

/// Lets the contenders take turns, round by round, so that a machine that is slow for a while is
/// slow for all of them. Each round begins with another contender. All have an equal share of the
/// time, and each does its work at least once a turn. The first round warms up and checks; it is
/// not measured. A contender that is wrong once, or for which there is no room, becomes a problem
/// of the result and gets no further turn. A stop ends the round; what was measured stays. Adds a
/// row for each contender. Throws what the contenders throw, except NoRoom.
void take_turns(const Session& session, const std::vector<Contender>& contenders, Result& result);
/// The same with turns of `turn` seconds, for one part of a suite.
void take_turns(const Session& session, double turn, const std::vector<Contender>& contenders,
                Result& result);
/// The seconds of a turn in a suite with so many contenders in all.
double turn_seconds(const Session& session, std::size_t contenders);

/// Where `got` first differs from `expected`: "byte 17 is 5 instead of 7, and 3 more differ"; empty
/// where it does not.
std::string first_difference(const std::uint8_t* expected, const std::uint8_t* got,
                             std::size_t bytes);

}  // namespace framelane::bench
