#pragma once

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <mutex>

#include "pipeline/frames/host_registration.hpp"

namespace framelane::testing {

/// Acts as a GPU that hangs from hold() to release(): calls that register or unregister memory
/// wait. While an object of this class exists, it is the process's registrar.
class HeldRegistrar : public HostRegistrar {
 public:
  HeldRegistrar();
  ~HeldRegistrar() override;

  void hold();
  void release();
  int waiting();
  /// How many buffers have been registered.
  int added();

 private:
  void add(const std::uint8_t*, std::size_t, HostAccess) override;
  bool remove(const std::uint8_t*) noexcept override;
  void pass();

  std::mutex mutex_;
  std::condition_variable changed_;
  bool held_ = false;
  int waiting_ = 0;
  int added_ = 0;
};

}  // namespace framelane::testing
