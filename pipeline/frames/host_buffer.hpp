#pragma once

#include <cstddef>
#include <cstdint>

namespace framelane {

/// Page-aligned memory for frames, mapped and prefaulted by the constructor, in huge pages if the
/// kernel has them. It belongs to this process and not to a GPU context, so that frames survive the
/// loss of a GPU. It is registered with the HostRegistrar, if there is one. Any thread.
class HostBuffer {
 public:
  /// Throws FeedError(kMemory) if the system or the registrar has no more; the message says how
  /// much was asked for.
  explicit HostBuffer(std::size_t bytes);
  ~HostBuffer();
  HostBuffer(const HostBuffer&) = delete;
  HostBuffer& operator=(const HostBuffer&) = delete;

  std::uint8_t* data() const { return data_; }
  std::size_t size() const { return size_; }

 private:
  friend void set_host_registrar(class HostRegistrar* registrar);

  std::uint8_t* data_;
  std::size_t size_;
  HostBuffer* previous_ = nullptr;  // in the list of all buffers
  HostBuffer* next_ = nullptr;
};

/// Registers host memory with a GPU, which then copies to and from it at full speed. Any number of
/// threads may call at once. A call may block for as long as the GPU does; it must not block the
/// others.
class HostRegistrar {
 public:
  virtual ~HostRegistrar() = default;
  /// Throws FeedError(kMemory) if the memory cannot be locked.
  virtual void add(std::uint8_t* data, std::size_t bytes) = 0;
  /// Called before memory that was added is unmapped.
  virtual void remove(std::uint8_t* data) noexcept = 0;
};

/// Registers every HostBuffer, existing and new, with `registrar`, after unregistering the existing
/// ones from the current one. Null only unregisters them. Waits until no call of the current
/// registrar is under way. Throws what `add` throws; no buffer is registered then.
void set_host_registrar(HostRegistrar* registrar);

/// Bytes of all HostBuffers of this process (framelane_host_pinned_bytes).
std::size_t host_buffer_bytes();

}  // namespace framelane
