#include "pipeline/source/shared_area.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "pipeline/base/failure.hpp"
#include "pipeline/source/source_failure.hpp"

namespace framelane {
namespace {

int open_area(const std::string& name) {
  const int fd = ::shm_open(name.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK, 0);
  if (fd >= 0) return fd;
  const int error = errno;
  std::string remedy;
  if (error == ENOENT) {
    remedy = "; the producer has removed it, or is in a container with a /dev/shm of its own";
  } else if (error == EACCES) {
    remedy =
        "; give its owner's group and this process one group in common, and the producer a "
        "mode that lets the group read (perms=432 of shmsink)";
  }
  throw IoError(io_fault_from_errno(error), "cannot open the producer's shared memory " + name +
                                                ": " + std::strerror(error) + remedy);
}

}  // namespace

SharedArea::Mapping::Mapping(const std::string& name, std::size_t bytes, uid_t owner)
    : file(open_area(name)) {
  struct stat status {};
  if (::fstat(file.get(), &status) != 0) throw io_error(errno, "cannot look at " + name);
  if (!S_ISREG(status.st_mode)) throw IoError(IoFault::kIo, name + " is no shared memory");
  if (owner != 0 && status.st_uid != owner) {
    throw IoError(IoFault::kIo, "the shared memory " + name + " belongs to user " +
                                    std::to_string(status.st_uid) + ", and the producer is user " +
                                    std::to_string(owner) + ": it may only give its own");
  }
  if (bytes == 0 || status.st_size < 0 || bytes > static_cast<std::size_t>(status.st_size)) {
    throw IoError(IoFault::kIo, "the producer says that its shared memory " + name + " has " +
                                    std::to_string(bytes) + " bytes, and it has " +
                                    std::to_string(status.st_size) + ": restart the producer");
  }
  const auto page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  size = (bytes + page - 1) / page * page;
  // First all of it as pages of zeros, so that what lies behind the area is ours.
  void* const whole = ::mmap(nullptr, size + kReadableBehind, PROT_READ,
                             MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (whole == MAP_FAILED) {
    throw FeedError(FeedFault::kMemory, "no address space for shared memory of " +
                                            std::to_string(size) +
                                            " bytes: " + std::strerror(errno) +
                                            "; raise the limit (LimitAS=, ulimit -v), or have the "
                                            "producer use fewer slots");
  }
  data = static_cast<std::uint8_t*>(whole);
  if (::mmap(data, size, PROT_READ, MAP_SHARED | MAP_FIXED, file.get(), 0) == MAP_FAILED) {
    const int error = errno;
    ::munmap(data, size + kReadableBehind);
    throw io_error(error, "cannot map the producer's shared memory " + name);
  }
}

SharedArea::Mapping::~Mapping() { unmap_host_memory(data, size + kReadableBehind, unregistered); }

bool SharedArea::locked() const {
  if (::flock(mapping_.file.get(), LOCK_SH | LOCK_NB) != 0) return true;  // or it cannot be seen
  (void)::flock(mapping_.file.get(), LOCK_UN);
  return false;
}

SharedArea::SharedArea(const std::string& name, std::size_t bytes, uid_t owner)
    : name_(name),
      bytes_(bytes),
      mapping_(name, bytes, owner),
      guard_(mapping_.data, mapping_.size),
      registration_(mapping_.data, mapping_.size, HostAccess::kRead) {}

}  // namespace framelane
