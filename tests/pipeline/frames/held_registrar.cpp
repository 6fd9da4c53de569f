#include "tests/pipeline/frames/held_registrar.hpp"

namespace framelane::testing {

HeldRegistrar::HeldRegistrar() { set_host_registrar(this); }

HeldRegistrar::~HeldRegistrar() {
  release();
  set_host_registrar(nullptr);
}

void HeldRegistrar::hold() {
  const std::lock_guard lock(mutex_);
  held_ = true;
}

void HeldRegistrar::release() {
  const std::lock_guard lock(mutex_);
  held_ = false;
  changed_.notify_all();
}

int HeldRegistrar::waiting() {
  const std::lock_guard lock(mutex_);
  return waiting_;
}

int HeldRegistrar::added() {
  const std::lock_guard lock(mutex_);
  return added_;
}

void HeldRegistrar::add(const std::uint8_t*, std::size_t, HostAccess) {
  pass();
  const std::lock_guard lock(mutex_);
  ++added_;
}

bool HeldRegistrar::remove(const std::uint8_t*) noexcept {
  pass();
  return true;
}

void HeldRegistrar::pass() {
  std::unique_lock lock(mutex_);
  ++waiting_;
  changed_.wait(lock, [this] { return !held_; });
  --waiting_;
}

}  // namespace framelane::testing
