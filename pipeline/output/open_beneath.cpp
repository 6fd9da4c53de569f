#include "pipeline/output/open_beneath.hpp"

#include <fcntl.h>
#include <sys/stat.h>

#include <cerrno>
#include <iterator>

namespace framelane {
namespace {

FileDescriptor no_file(int error) {
  errno = error;
  return FileDescriptor();
}

}  // namespace

FileDescriptor open_beneath(const std::filesystem::path& folder, const std::string& name) {
  FileDescriptor at(
      ::open(folder.empty() ? "." : folder.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  const std::filesystem::path path(name);
  for (auto part = path.begin(); part != path.end() && at.get() >= 0; ++part) {
    if (*part == "." || *part == ".." || part->empty() || *part == "/") return no_file(ENOENT);
    const bool last = std::next(part) == path.end();
    // O_NONBLOCK: it may be a FIFO by now.
    const int flags = last ? O_RDONLY | O_NONBLOCK : O_PATH | O_DIRECTORY;
    at = FileDescriptor(::openat(at.get(), part->c_str(), flags | O_NOFOLLOW | O_CLOEXEC));
  }
  if (at.get() < 0) return at;
  struct stat status {};
  if (fstat(at.get(), &status) != 0) return no_file(errno);
  if (!S_ISREG(status.st_mode)) return no_file(ENOENT);
  return at;
}

}  // namespace framelane
