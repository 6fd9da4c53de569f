#include "pipeline/host_buffer.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstring>
#include <string>

#include "pipeline/failure.hpp"

namespace framelane {
namespace {

std::atomic<std::size_t> g_bytes{0};

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
  // Faulting the pages in here keeps page faults out of the frame path. A kernel without
  // MADV_POPULATE_WRITE (before 5.14) gets them touched one by one.
#ifdef MADV_POPULATE_WRITE
  if (madvise(data_, size_, MADV_POPULATE_WRITE) != 0)
#endif
  {
    std::memset(data_, 0, size_);
  }
  g_bytes += size_;
}

HostBuffer::~HostBuffer() {
  munmap(data_, size_);
  g_bytes -= size_;
}

std::size_t host_buffer_bytes() { return g_bytes; }

}  // namespace framelane
