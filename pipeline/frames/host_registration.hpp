#pragma once

#include <cstddef>
#include <cstdint>

namespace framelane {

/// What a GPU may do with registered memory. kRead: memory of another process, mapped read-only.
enum class HostAccess { kReadWrite, kRead };

/// Registers host memory with a GPU, which then copies to and from it at full speed. Any number of
/// threads may call at once. A call may block for as long as the GPU does; it must not block the
/// others.
class HostRegistrar {
 public:
  virtual ~HostRegistrar() = default;
  /// Throws FeedError(kMemory) if the memory cannot be locked.
  virtual void add(const std::uint8_t* data, std::size_t bytes, HostAccess access) = 0;
  /// Called before memory that was added is unmapped. False if it stays registered, because the GPU
  /// does not answer.
  virtual bool remove(const std::uint8_t* data) noexcept = 0;
};

/// Keeps memory registered with the process's HostRegistrar while it lives, also with one that is
/// set later. Does not own the memory, which is unmapped after it (unmap_host_memory). Any thread.
class HostRegistration {
 public:
  /// Page-aligned memory. Throws FeedError(kMemory) if the registrar cannot take it.
  HostRegistration(const std::uint8_t* data, std::size_t bytes, HostAccess access);
  ~HostRegistration() { end(); }
  HostRegistration(const HostRegistration&) = delete;
  HostRegistration& operator=(const HostRegistration&) = delete;
  /// Ends the registration. False if the memory stays registered (HostRegistrar::remove). Once.
  bool end() noexcept;

 private:
  friend void set_host_registrar(HostRegistrar* registrar);

  const std::uint8_t* const data_;
  const std::size_t bytes_;
  const HostAccess access_;
  bool ended_ = false;
  HostRegistration* previous_ = nullptr;  // in the list of all registrations
  HostRegistration* next_ = nullptr;
};

/// Unmaps whole pages. `ended`: what HostRegistration::end has returned. If it is false, gives the
/// pages back and keeps their addresses, because CUDA would take other memory at these addresses
/// for what is registered, and copy from pages that are gone.
void unmap_host_memory(void* data, std::size_t bytes, bool ended) noexcept;

/// Registers all memory, existing and new, with `registrar`, after unregistering the existing from
/// the current one. Null only unregisters it. Waits until no call of the current registrar is under
/// way. Throws what `add` throws; nothing is registered then.
void set_host_registrar(HostRegistrar* registrar);

/// Bytes that HostRegistrations stand for: the frames' host memory, which is locked if there is a
/// GPU (framelane_host_pinned_bytes).
std::size_t host_memory_bytes();

}  // namespace framelane
