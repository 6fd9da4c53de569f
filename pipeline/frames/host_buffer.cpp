#include "pipeline/frames/host_buffer.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <string>

#include "pipeline/base/failure.hpp"

namespace framelane {
namespace {

std::size_t round_up(std::size_t value, std::size_t step) {
  return (value + step - 1) / step * step;
}

}  // namespace

HostBuffer::HostBuffer(std::size_t bytes)
    : size_(round_up(bytes, static_cast<std::size_t>(sysconf(_SC_PAGESIZE)))) {
  void* memory = mmap(nullptr, size_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) {
    throw FeedError(FeedFault::kMemory, "no memory for a frame buffer of " + std::to_string(size_) +
                                            " bytes: " + std::strerror(errno));
  }
  data_ = static_cast<std::uint8_t*>(memory);
  madvise(data_, size_, MADV_HUGEPAGE);
  // Pages are faulted in here, so that no frame waits for one later. For kernels before 5.14, which
  // lack MADV_POPULATE_WRITE, they are touched one by one.
#ifdef MADV_POPULATE_WRITE
  if (madvise(data_, size_, MADV_POPULATE_WRITE) != 0)
#endif
  {
    std::memset(data_, 0, size_);
  }
  try {
    registration_.emplace(data_, size_, HostAccess::kReadWrite);
  } catch (...) {
    munmap(data_, size_);
    throw;
  }
}

HostBuffer::~HostBuffer() { unmap_host_memory(data_, size_, registration_->end()); }

}  // namespace framelane
