#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

namespace framelane::bench {

/// Another program that works step by step. Before each step it reads a byte from its standard
/// input; after it, it writes kStepDone to descriptor 3 (/dev/fd/3); at the end it writes its
/// results to descriptor 3. Its standard output is discarded, its standard error is this process's
/// own, and Ctrl-C reaches both. One thread; SIGPIPE must be ignored.
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

  /// Lets it do one step. Returns when the step is done, or when the program has ended.
  void step();
  /// Ends its input, waits for its end and returns its results. Throws std::runtime_error if it
  /// wrote none. Call it once.
  std::string finish();
  /// After its end: its exit status, or 128 + signal, as in a shell.
  int exit_status() const { return exit_status_; }

 private:
  /// Reads up to `most` bytes from descriptor 3, at least one unless the program has ended.
  std::string read_some(std::size_t most) const;
  void end();

  std::string what_;
  pid_t child_ = 0;
  int exit_status_ = 0;
  int to_child_ = -1, from_child_ = -1;
  std::string text_;  // what came instead of the end of a step
};

}  // namespace framelane::bench
