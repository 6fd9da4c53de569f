#pragma once

#include <condition_variable>
#include <mutex>

#include "pipeline/frames/host_buffer.hpp"

namespace framelane::testing {

/// Acts as a GPU that hangs from hold() to release(): calls that register or unregister memory
/// wait. While an object of this class exists, it is the process's registrar.
class HeldRegistrar : public HostRegistrar {
 public:
  HeldRegistrar() { set_host_registrar(this); }
  ~HeldRegistrar() override {
    release();
    set_host_registrar(nullptr);
  }

  void hold() {
    const std::lock_guard lock(mutex_);
    held_ = true;
  }
  void release() {
    const std::lock_guard lock(mutex_);
    held_ = false;
    changed_.notify_all();
  }
  int waiting() {
    const std::lock_guard lock(mutex_);
    return waiting_;
  }

 private:
  void add(std::uint8_t*, std::size_t) override { pass(); }
  void remove(std::uint8_t*) noexcept override { pass(); }
  void pass() {
    std::unique_lock lock(mutex_);
    ++waiting_;
    changed_.wait(lock, [this] { return !held_; });
    --waiting_;
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  bool held_ = false;
  int waiting_ = 0;
};

}  // namespace framelane::testing
