#pragma once

#include <cstddef>
#include <cstdint>

namespace framelane {

/// Page-aligned memory for frames, mapped and prefaulted when made, with huge pages advised where
/// they fit. It belongs to us and not to a GPU context, so that frames survive the loss of a GPU.
/// Throws FeedError(kMemory), saying how much was asked for, when the system has no more.
class HostBuffer {
 public:
  explicit HostBuffer(std::size_t bytes);
  ~HostBuffer();
  HostBuffer(const HostBuffer&) = delete;
  HostBuffer& operator=(const HostBuffer&) = delete;

  std::uint8_t* data() const { return data_; }
  std::size_t size() const { return size_; }

 private:
  std::uint8_t* data_;
  std::size_t size_;
};

/// Bytes this process holds in HostBuffers (framelane_host_pinned_bytes).
std::size_t host_buffer_bytes();

}  // namespace framelane
