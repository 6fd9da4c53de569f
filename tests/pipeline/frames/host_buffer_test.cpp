#include "pipeline/frames/host_buffer.hpp"

#include <gtest/gtest.h>
#include <sys/mman.h>

#include <chrono>
#include <future>
#include <map>
#include <optional>
#include <thread>

#include "pipeline/base/failure.hpp"
#include "tests/pipeline/frames/held_registrar.hpp"

namespace framelane {
namespace {

/// Remembers what is registered. Refuses all additions after the given number.
class Ledger : public HostRegistrar {
 public:
  void add(const std::uint8_t* data, std::size_t bytes, HostAccess) override {
    if (room_ == 0) throw FeedError(FeedFault::kMemory, "cannot be locked");
    --room_;
    EXPECT_TRUE(registered_.emplace(data, bytes).second) << "registered twice";
  }
  bool remove(const std::uint8_t* data) noexcept override {
    EXPECT_EQ(registered_.erase(data), 1u) << "was not registered";
    return !keeps_;
  }

  std::map<const std::uint8_t*, std::size_t> registered_;
  int room_ = 1000;
  bool keeps_ = false;  // what is removed stays registered all the same
};

/// Tests look only for their own buffers, because memory that a decoder of an earlier test still
/// holds is registered as well.
class HostRegistrarTest : public ::testing::Test {
 protected:
  ~HostRegistrarTest() override { set_host_registrar(nullptr); }
  bool knows(const HostBuffer& buffer) const {
    const auto found = ledger_.registered_.find(buffer.data());
    return found != ledger_.registered_.end() && found->second == buffer.size();
  }
  Ledger ledger_;
};

TEST_F(HostRegistrarTest, BuffersAreRegisteredWhileTheyLive) {
  const HostBuffer before(4096);
  set_host_registrar(&ledger_);
  EXPECT_TRUE(knows(before));
  std::optional<HostBuffer> later(std::in_place, 8192);
  EXPECT_TRUE(knows(*later));
  std::uint8_t* const data = later->data();
  later.reset();
  EXPECT_EQ(ledger_.registered_.count(data), 0u);
  EXPECT_TRUE(knows(before));
}

TEST_F(HostRegistrarTest, WithoutARegistrarNothingIsLeftRegistered) {
  const HostBuffer first(4096);
  const HostBuffer second(4096);
  set_host_registrar(&ledger_);
  set_host_registrar(nullptr);
  EXPECT_TRUE(ledger_.registered_.empty());
}

TEST_F(HostRegistrarTest, ABufferThatCannotBeLockedIsRefused) {
  set_host_registrar(&ledger_);
  ledger_.room_ = 0;
  const std::size_t before = host_memory_bytes();
  EXPECT_THROW(HostBuffer(4096), FeedError);
  EXPECT_EQ(host_memory_bytes(), before);
}

/// True if nothing is mapped there.
bool is_free(std::uint8_t* data) {
  void* const found =
      ::mmap(data, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
  if (found == MAP_FAILED) return false;
  ::munmap(found, 4096);
  return found == data;
}

TEST_F(HostRegistrarTest, TheAddressesOfMemoryThatStaysRegisteredAreNotUsedAgain) {
  set_host_registrar(&ledger_);
  std::optional<HostBuffer> buffer(std::in_place, 4096);
  std::uint8_t* const data = buffer->data();
  buffer.reset();
  EXPECT_TRUE(is_free(data));
  ledger_.keeps_ = true;
  buffer.emplace(4096);
  std::uint8_t* const kept = buffer->data();
  buffer.reset();
  EXPECT_FALSE(is_free(kept));
  ::munmap(kept, 4096);
}

TEST_F(HostRegistrarTest, ARegistrarThatCannotTakeAllTakesNone) {
  const HostBuffer first(4096);
  const HostBuffer second(4096);
  ledger_.room_ = 1;
  EXPECT_THROW(set_host_registrar(&ledger_), FeedError);
  EXPECT_TRUE(ledger_.registered_.empty());
  const HostBuffer third(4096);
  EXPECT_TRUE(ledger_.registered_.empty());
}

TEST(HeldRegistrarTest, ABufferThatTheGpuHoldsUpHoldsUpNoOther) {
  testing::HeldRegistrar gpu;
  std::optional<HostBuffer> held(std::in_place, 4096);
  gpu.hold();
  auto freed = std::async(std::launch::async, [&held] { held.reset(); });
  while (gpu.waiting() == 0) std::this_thread::yield();
  // The first call waits in the GPU. It must not keep others from calling it.
  auto made = std::async(std::launch::async, [] { HostBuffer(4096); });
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  while (gpu.waiting() < 2 && std::chrono::steady_clock::now() < deadline) {
    std::this_thread::yield();
  }
  EXPECT_EQ(gpu.waiting(), 2);
  gpu.release();
}

}  // namespace
}  // namespace framelane
