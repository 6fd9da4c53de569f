#include "pipeline/frames/host_buffer.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstring>
#include <mutex>
#include <shared_mutex>
#include <string>

#include "pipeline/base/failure.hpp"

namespace framelane {
namespace {

std::atomic<std::size_t> g_bytes{0};

// The registrar, and a list of all buffers. Plain pointers that no destructor clears: buffers that
// an abandoned thread holds still exist when the process ends.
//
// A GPU that hangs blocks a call of the registrar, so buffers call it without g_list_mutex. They
// share g_registrar_mutex meanwhile, so that the registrar stays; a change of the registrar locks
// it exclusively. Lock order: g_registrar_mutex, then g_list_mutex.
std::shared_mutex g_registrar_mutex;
HostRegistrar* g_registrar = nullptr;
std::mutex g_list_mutex;
HostBuffer* g_first = nullptr;

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
  const std::shared_lock registrar(g_registrar_mutex);
  if (g_registrar != nullptr) {
    try {
      g_registrar->add(data_, size_);
    } catch (...) {
      munmap(data_, size_);
      throw;
    }
  }
  const std::lock_guard list(g_list_mutex);
  next_ = g_first;
  if (g_first != nullptr) g_first->previous_ = this;
  g_first = this;
  g_bytes += size_;
}

HostBuffer::~HostBuffer() {
  {
    const std::shared_lock registrar(g_registrar_mutex);
    {
      const std::lock_guard list(g_list_mutex);
      (previous_ != nullptr ? previous_->next_ : g_first) = next_;
      if (next_ != nullptr) next_->previous_ = previous_;
    }
    if (g_registrar != nullptr) g_registrar->remove(data_);
  }
  munmap(data_, size_);
  g_bytes -= size_;
}

void set_host_registrar(HostRegistrar* registrar) {
  const std::lock_guard alone(g_registrar_mutex);  // no buffer comes or goes meanwhile, either
  if (g_registrar != nullptr) {
    for (HostBuffer* buffer = g_first; buffer != nullptr; buffer = buffer->next_) {
      g_registrar->remove(buffer->data_);
    }
    g_registrar = nullptr;
  }
  if (registrar == nullptr) return;
  for (HostBuffer* buffer = g_first; buffer != nullptr; buffer = buffer->next_) {
    try {
      registrar->add(buffer->data_, buffer->size_);
    } catch (...) {
      for (HostBuffer* added = g_first; added != buffer; added = added->next_) {
        registrar->remove(added->data_);
      }
      throw;
    }
  }
  g_registrar = registrar;
}

std::size_t host_buffer_bytes() { return g_bytes; }

}  // namespace framelane
