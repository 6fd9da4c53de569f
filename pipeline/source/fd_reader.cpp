#include "pipeline/source/fd_reader.hpp"

#include <fcntl.h>
#include <fmt/core.h>
#include <poll.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <fstream>
#include <optional>
#include <string>
#include <utility>

#include "pipeline/base/failure.hpp"
#include "pipeline/base/redact.hpp"
#include "pipeline/base/url.hpp"
#include "pipeline/source/source_failure.hpp"

namespace framelane {
namespace {

/// How soon to read again when poll() calls a descriptor ready that has no data.
constexpr std::chrono::milliseconds kRetry{20};

int open_input(const std::string& path) {
  const int fd = ::open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC);
  if (fd >= 0) return fd;
  const int error = errno;
  const std::string what = "cannot open " + redact(path);
  if (const auto shortage = descriptor_shortage_text(error)) {
    throw IoError(IoFault::kIo, what + ": " + *shortage);
  }
  const std::string remedy = denial_remedy(error, path);
  const IoError failure = io_error(error, what);
  throw IoError(failure.code(), failure.what() + (remedy.empty() ? "; check input.url" : remedy));
}

bool is_fifo(int fd) {
  struct stat status {};
  return ::fstat(fd, &status) == 0 && S_ISFIFO(status.st_mode);
}

/// Watches who opens a FIFO; -1 if it is none, or if that cannot be watched.
int watch_opens(int fifo) {
  if (fifo == STDIN_FILENO || !is_fifo(fifo)) return -1;
  const int watch = ::inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
  // By its descriptor, since its path may name another one by now.
  const std::string path = "/proc/self/fd/" + std::to_string(fifo);
  if (watch >= 0 && ::inotify_add_watch(watch, path.c_str(), IN_OPEN) < 0) {
    ::close(watch);
    return -1;
  }
  return watch;
}

void enlarge_pipe(int fd) {
  int bytes = 1 << 20;
  std::ifstream("/proc/sys/fs/pipe-max-size") >> bytes;
  // Refused when the user's pipes hold too much already. The pipe then stays as it is.
  (void)::fcntl(fd, F_SETPIPE_SZ, bytes);
}

}  // namespace

FdReader::FdReader(const std::string& path, std::chrono::milliseconds timeout, std::stop_token stop)
    : name_(path == "-" ? "standard input" : redact(path)),
      timeout_(timeout),
      stop_(std::move(stop)),
      file_(path == "-" ? -1 : open_input(path)),
      input_(path == "-" ? STDIN_FILENO : file_.get()),
      wake_(stop_),
      opens_(watch_opens(input_)) {
  struct stat status {};
  if (::fstat(input_, &status) != 0) throw io_error(errno, "cannot look at " + name_);
  if (S_ISDIR(status.st_mode)) {
    throw IoError(IoFault::kIo, name_ + " is a folder; input.url must name a file or a FIFO");
  }
  regular_ = S_ISREG(status.st_mode);
  positional_ = regular_ && path != "-" && ::lseek(input_, 0, SEEK_CUR) == 0;
  if (S_ISFIFO(status.st_mode)) {
    enlarge_pipe(input_);
    awaits_writer_ = fifo_ = path != "-";
  }
}

FdReader::~FdReader() = default;

FdReader::Result FdReader::read(std::uint8_t* data, std::size_t size) {
  const Clock::time_point deadline = Clock::now() + timeout_;
  for (;;) {
    bool hung_up = false;
    if (!regular_) {
      if (!wait(deadline, hung_up)) return {Status::kStopped, 0};
    } else if (stop_.stop_requested()) {
      return {Status::kStopped, 0};
    }
    const ssize_t count = hung_up ? 0 : ::read(input_, data, size);
    if (count > 0) {
      awaits_writer_ = false;
      return {Status::kData, static_cast<std::size_t>(count)};
    }
    if (count < 0) {
      if (errno == EINTR) continue;
      if (errno != EAGAIN) throw read_error(errno);
      if (Clock::now() >= deadline) throw timeout_error();
    } else if (!awaits_writer_) {
      return {Status::kEnd, 0};
    }
    pause();
  }
}

/// Waits a moment, or until a stop. Leaves the input out of poll(), which would return at once,
/// again and again, for a hang-up or an error.
void FdReader::pause() const {
  pollfd wake{wake_.fd(), POLLIN, 0};
  (void)::poll(&wake, 1, static_cast<int>(kRetry.count()));
}

IoError FdReader::read_error(int error) const { return io_error(error, "cannot read " + name_); }

IoError FdReader::timeout_error() const {
  return IoError(IoFault::kTimeout,
                 fmt::format("{} {} for {:g} s; check what writes to it, or raise input.timeout",
                             awaits_writer_ ? "nobody has written to" : "no data from", name_,
                             std::chrono::duration<double>(timeout_).count()));
}

/// Waits until reading cannot block; false when stopped. `hung_up`: there is no writer and no data.
bool FdReader::wait(Clock::time_point deadline, bool& hung_up) {
  for (;;) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - Clock::now()).count();
    const int patience = static_cast<int>(std::clamp<std::int64_t>(left, 0, 1 << 30));
    std::array<pollfd, 2> fds{{{input_, POLLIN, 0}, {wake_.fd(), POLLIN, 0}}};
    const int ready = ::poll(fds.data(), fds.size(), patience);
    if (stop_.stop_requested()) return false;
    if (ready < 0 && errno != EINTR) throw io_error(errno, "cannot wait for " + name_);
    const bool hang_up = (fds[0].revents & POLLHUP) != 0;
    if (ready > 0 && (fds[0].revents & (POLLIN | POLLERR | POLLNVAL)) != 0) return true;
    if (ready > 0 && hang_up && !(awaits_writer_ && left <= 0)) {
      hung_up = true;
      return true;
    }
    if (left <= 0) throw timeout_error();
  }
}

bool FdReader::has_been_joined() {
  bool joined = false;
  std::array<char, 4096> events{};
  while (opens_.get() >= 0 && ::read(opens_.get(), events.data(), events.size()) > 0) joined = true;
  return joined;
}

bool FdReader::is_still(const std::string& path) const {
  struct stat ours {};
  struct stat named {};
  const int found = path == "-" ? ::fstat(STDIN_FILENO, &named) : ::stat(path.c_str(), &named);
  return found == 0 && ::fstat(input_, &ours) == 0 && ours.st_dev == named.st_dev &&
         ours.st_ino == named.st_ino;
}

bool names_fifo(const std::string& url) {
  const std::optional<std::string> path = local_path(url);
  struct stat status {};
  return path && ::stat(path->c_str(), &status) == 0 && S_ISFIFO(status.st_mode);
}

ssize_t FdReader::read_at(std::uint8_t* data, std::size_t size, std::uint64_t offset) const {
  return ::pread(input_, data, size, static_cast<off_t>(offset));
}

std::uint64_t FdReader::size() const {
  struct stat status {};
  return ::fstat(input_, &status) == 0 ? static_cast<std::uint64_t>(status.st_size) : 0;
}

void FdReader::rewind() {
  if (::lseek(input_, 0, SEEK_SET) != 0) throw io_error(errno, "cannot rewind " + name_);
}

}  // namespace framelane
