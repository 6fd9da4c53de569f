#include "pipeline/frames/host_registration.hpp"

#include <sys/mman.h>

#include <atomic>
#include <mutex>
#include <shared_mutex>
#include <utility>

namespace framelane {
namespace {

std::atomic<std::size_t> g_bytes{0};

// The registrar, and a list of all registrations. Plain pointers that no destructor clears: what an
// abandoned thread holds still exists when the process ends.
//
// A GPU that hangs blocks a call of the registrar, so it is called without g_list_mutex. Callers
// share g_registrar_mutex meanwhile, so that the registrar stays; a change of the registrar locks
// it exclusively. Lock order: g_registrar_mutex, then g_list_mutex.
std::shared_mutex g_registrar_mutex;
HostRegistrar* g_registrar = nullptr;
std::mutex g_list_mutex;
HostRegistration* g_first = nullptr;

}  // namespace

HostRegistration::HostRegistration(const std::uint8_t* data, std::size_t bytes, HostAccess access)
    : data_(data), bytes_(bytes), access_(access) {
  const std::shared_lock registrar(g_registrar_mutex);
  if (g_registrar != nullptr) g_registrar->add(data_, bytes_, access_);
  const std::lock_guard list(g_list_mutex);
  next_ = g_first;
  if (g_first != nullptr) g_first->previous_ = this;
  g_first = this;
  g_bytes += bytes_;
}

bool HostRegistration::end() noexcept {
  if (std::exchange(ended_, true)) return true;
  const std::shared_lock registrar(g_registrar_mutex);
  {
    const std::lock_guard list(g_list_mutex);
    (previous_ != nullptr ? previous_->next_ : g_first) = next_;
    if (next_ != nullptr) next_->previous_ = previous_;
    g_bytes -= bytes_;
  }
  return g_registrar == nullptr || g_registrar->remove(data_);
}

void unmap_host_memory(void* data, std::size_t bytes, bool ended) noexcept {
  if (ended) {
    ::munmap(data, bytes);
  } else {
    ::mmap(data, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
  }
}

void set_host_registrar(HostRegistrar* registrar) {
  const std::lock_guard alone(g_registrar_mutex);  // nothing comes or goes meanwhile, either
  if (g_registrar != nullptr) {
    for (HostRegistration* one = g_first; one != nullptr; one = one->next_) {
      g_registrar->remove(one->data_);
    }
    g_registrar = nullptr;
  }
  if (registrar == nullptr) return;
  for (HostRegistration* one = g_first; one != nullptr; one = one->next_) {
    try {
      registrar->add(one->data_, one->bytes_, one->access_);
    } catch (...) {
      for (HostRegistration* added = g_first; added != one; added = added->next_) {
        registrar->remove(added->data_);
      }
      throw;
    }
  }
  g_registrar = registrar;
}

std::size_t host_memory_bytes() { return g_bytes; }

}  // namespace framelane
