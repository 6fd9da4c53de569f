#pragma once

#include <cstddef>
#include <cstdint>

namespace framelane {

/// Page-aligned memory for frames, mapped and prefaulted when made, with huge pages advised where
/// they fit. It belongs to us and not to a GPU context, so that frames survive the loss of a GPU;
/// while there is a HostRegistrar it is registered there. Any thread. Throws FeedError(kMemory),
/// saying how much was asked for, when the system or the registrar has no more.
class HostBuffer {
 public:
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
  HostBuffer* previous_ = nullptr;  // a list of all there are
  HostBuffer* next_ = nullptr;
};

/// Makes host memory known to a GPU, which then copies at full speed from and to it. Called from
/// any number of threads at once; a call may take as long as the GPU lets it, and holds up no
/// other.
class HostRegistrar {
 public:
  virtual ~HostRegistrar() = default;
  /// Throws FeedError(kMemory) when the memory cannot be locked.
  virtual void add(std::uint8_t* data, std::size_t bytes) = 0;
  /// Memory that was added goes away next.
  virtual void remove(std::uint8_t* data) noexcept = 0;
};

/// From now on every HostBuffer, those that exist included, is added to `registrar` and removed
/// from it before it is unmapped. Null: those that exist are removed from the one there was. Waits
/// for calls of the one there was to end. Throws what `add` throws, with nothing left registered.
void set_host_registrar(HostRegistrar* registrar);

/// Bytes this process holds in HostBuffers (framelane_host_pinned_bytes).
std::size_t host_buffer_bytes();

}  // namespace framelane
