#include "pipeline/output/place_lock.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <filesystem>
#include <random>
#include <string_view>

#include "pipeline/base/failure.hpp"
#include "pipeline/base/redact.hpp"
#include "pipeline/output/io_error.hpp"

namespace framelane {
namespace {

/// What the owner writes: its name, and what tells it from a process of the same name, as in two
/// containers with one host name.
std::string own_lines() {
  static const std::string token = [] {
    std::random_device random;
    return std::to_string(random()) + "-" + std::to_string(random());
  }();
  std::array<char, 256> host{};
  gethostname(host.data(), host.size() - 1);
  return std::string("process ") + std::to_string(getpid()) + " on " + host.data() + "\n" + token +
         "\n";
}

/// -1: see errno. A file that another user has left can be locked, if not written.
int open_lock(const std::string& path) {
  int fd = open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644);
  if (fd >= 0 || errno != EACCES) return fd;
  fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) errno = EACCES;
  return fd;
}

bool is_writable(int fd) { return (fcntl(fd, F_GETFL) & O_ACCMODE) == O_RDWR; }

/// 0, or EWOULDBLOCK if somebody else has it, or an error of a file system without locks.
int lock(int fd) {
  if (flock(fd, LOCK_EX | LOCK_NB) == 0) return 0;
  // NFS gives no exclusive lock to a descriptor that cannot write. That it gives a shared one says
  // that nobody else has the file.
  if (errno == EBADF && flock(fd, LOCK_SH | LOCK_NB) == 0) return 0;
  return errno;
}

/// Who has locked the file, as an error says it.
std::string described_owner(int fd) {
  std::array<char, 512> text{};
  const ssize_t size = pread(fd, text.data(), text.size(), 0);
  const std::string_view lines(text.data(), size > 0 ? static_cast<std::size_t>(size) : 0);
  const std::string owner(lines.substr(0, lines.find('\n')));
  if (lines == own_lines()) {
    return "another output of this process writes it, or one whose call has not returned yet";
  }
  return (owner.empty() ? "another process" : owner) +
         " writes it; stop that one, or write to another place";
}

}  // namespace

bool is_at(int fd, const std::string& path) {
  struct stat file {};
  struct stat named {};
  return fstat(fd, &file) == 0 && stat(path.c_str(), &named) == 0 && file.st_dev == named.st_dev &&
         file.st_ino == named.st_ino;
}

PlaceLock::PlaceLock(const std::string& path) {
  const std::filesystem::path file(path);
  path_ = (file.parent_path() / ("." + file.filename().string() + ".lock")).string();
  for (;;) {
    fd_ = open_lock(path_);
    if (fd_ < 0) throw_cannot("create", path_, errno);
    const int error = lock(fd_);
    if (error == EWOULDBLOCK) {
      const std::string owner = described_owner(fd_);
      close(std::exchange(fd_, -1));
      throw IoError(IoFault::kIo, "cannot write " + redact(path) + ": " + owner);
    }
    if (holds()) {
      // A file that another user has left would go on naming that user's process: a new one is made
      // in its place. Where that cannot be (a sticky folder) the lock holds all the same.
      if (error != 0 || is_writable(fd_) || unlink(path_.c_str()) != 0) break;
    }  // else its last owner removed it just now
    close(std::exchange(fd_, -1));
  }
  const std::string lines = own_lines();
  // They are for people: without them the lock holds as well.
  if (ftruncate(fd_, 0) != 0 || pwrite(fd_, lines.data(), lines.size(), 0) < 0) return;
}

PlaceLock::~PlaceLock() {
  if (fd_ < 0) return;
  if (holds()) unlink(path_.c_str());
  close(fd_);
}

}  // namespace framelane
