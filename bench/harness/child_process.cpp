#include "bench/harness/child_process.hpp"

#include <fcntl.h>
#include <fmt/core.h>
#include <fmt/ranges.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <stdexcept>
#include <string_view>
#include <utility>

namespace framelane::bench {
namespace {

constexpr int kDescriptor = 3;

std::vector<char*> pointers_to(std::vector<std::string>& texts) {
  std::vector<char*> result;
  for (std::string& text : texts) result.push_back(text.data());
  result.push_back(nullptr);
  return result;
}

std::vector<std::string> environment_with(const std::vector<std::string>& variables) {
  std::vector<std::string> result = variables;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const bool replaced = std::ranges::any_of(variables, [entry](const std::string& variable) {
      return std::string_view(*entry).starts_with(
          std::string_view(variable).substr(0, variable.find('=') + 1));
    });
    if (!replaced) result.emplace_back(*entry);
  }
  return result;
}

/// Both ends, to read and to write, for no other process.
std::pair<int, int> make_pipe() {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) {
    throw std::runtime_error(fmt::format("no pipe: {}", std::strerror(errno)));
  }
  return {ends[0], ends[1]};
}

}  // namespace

ChildProcess::ChildProcess(const std::string& program, const std::vector<std::string>& arguments,
                           const std::vector<std::string>& variables)
    : what_(fmt::format("{} with {}", program, fmt::join(variables, ", "))) {
  std::vector<std::string> command{program};
  command.insert(command.end(), arguments.begin(), arguments.end());
  std::vector<std::string> environment = environment_with(variables);
  const auto [child_reads, we_write] = make_pipe();
  const auto [we_read, child_writes] = make_pipe();
  to_child_ = we_write;
  from_child_ = we_read;
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, child_reads, STDIN_FILENO);
  posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
  posix_spawn_file_actions_adddup2(&actions, child_writes, kDescriptor);
  const int error = posix_spawn(&child_, program.c_str(), &actions, nullptr,
                                pointers_to(command).data(), pointers_to(environment).data());
  posix_spawn_file_actions_destroy(&actions);
  for (const int the_childs : {child_reads, child_writes}) close(the_childs);
  if (error == 0) return;
  close(to_child_);
  close(from_child_);
  throw std::runtime_error(fmt::format("{} cannot be started: {}", program, std::strerror(error)));
}

ChildProcess::~ChildProcess() { end(); }

std::string ChildProcess::read_some(std::size_t most) const {
  std::string text(most, '\0');
  ssize_t count = 0;
  do {
    count = read(from_child_, text.data(), text.size());
  } while (count < 0 && errno == EINTR);
  text.resize(static_cast<std::size_t>(std::max<ssize_t>(count, 0)));
  return text;
}

void ChildProcess::step() {
  if (!text_.empty() || write(to_child_, "", 1) != 1) return;
  const std::string answer = read_some(1);
  if (answer != std::string(1, kStepDone)) text_ = answer;
}

std::string ChildProcess::finish() {
  close(std::exchange(to_child_, -1));
  for (std::string more; !(more = read_some(4096)).empty();) text_ += more;
  end();
  if (text_.empty()) throw std::runtime_error(what_ + " gave nothing");
  return std::move(text_);
}

void ChildProcess::end() {
  for (int* descriptor : {&to_child_, &from_child_}) {
    if (*descriptor >= 0) close(std::exchange(*descriptor, -1));
  }
  if (child_ == 0) return;
  int status = 0;
  while (waitpid(child_, &status, 0) < 0 && errno == EINTR) {
  }
  exit_status_ = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
  child_ = 0;
}

}  // namespace framelane::bench
