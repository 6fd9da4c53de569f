#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

namespace framelane::bench {

/// Another program that works step by step: it reads a byte from its standard input before each
/// step, writes kStepDone to descriptor 3 (/dev/fd/3) after it, and at the end writes what it has
/// found there. Its standard output goes nowhere, its standard error is this process's own, and a
/// Ctrl-C reaches both. One thread; SIGPIPE must be ignored.
class ChildProcess {
 public:
  static constexpr char kStepDone = '.';

  /// `variables` ("NAME=VALUE") are added to its environment. Throws std::runtime_error when it
  /// cannot be started.
  ChildProcess(const std::string& program, const std::vector<std::string>& arguments,
               const std::vector<std::string>& variables);
  /// Waits for its end.
  ~ChildProcess();
  ChildProcess(const ChildProcess&) = delete;
  ChildProcess& operator=(const ChildProcess&) = delete;

  /// Lets it do one step; returns when it has, or will do no more.
  void step();
  /// No more steps: waits for its end and gives what it has written. Throws std::runtime_error when
  /// that is nothing. Once.
  std::string finish();
  /// After its end, as a shell has it: 128 and more is a signal.
  int exit_status() const { return exit_status_; }

 private:
  /// Bytes of descriptor 3, one at least unless it has ended.
  std::string read_some(std::size_t most) const;
  void end();

  std::string what_;
  pid_t child_ = 0;
  int exit_status_ = 0;
  int to_child_ = -1, from_child_ = -1;
  std::string text_;  // what came instead of the end of a step
};

}  // namespace framelane::bench
