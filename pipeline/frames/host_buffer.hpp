#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "pipeline/frames/host_registration.hpp"

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
  std::uint8_t* data_;
  std::size_t size_;
  std::optional<HostRegistration> registration_;
};

}  // namespace framelane
