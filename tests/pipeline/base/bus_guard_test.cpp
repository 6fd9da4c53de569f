#include "pipeline/base/bus_guard.hpp"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <deque>
#include <thread>
#include <vector>

#include "pipeline/base/failure.hpp"

namespace framelane {
namespace {

constexpr std::size_t kPage = 4096;
constexpr std::size_t kBytes = 8 * kPage;
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool kSanitized = true;
#else
constexpr bool kSanitized = false;
#endif

/// Shared memory of a producer, full of ones, and its mapping.
class BusGuardTest : public ::testing::Test {
 protected:
  BusGuardTest() : fd_(::memfd_create("producer", MFD_CLOEXEC)) {
    const std::vector<std::uint8_t> ones(kBytes, 1);
    EXPECT_EQ(::write(fd_, ones.data(), ones.size()), static_cast<ssize_t>(kBytes));
    data_ =
        static_cast<const std::uint8_t*>(::mmap(nullptr, kBytes, PROT_READ, MAP_SHARED, fd_, 0));
  }
  ~BusGuardTest() override {
    ::munmap(const_cast<std::uint8_t*>(data_), kBytes);
    ::close(fd_);
  }
  void truncate(std::size_t bytes) const {
    ASSERT_EQ(::ftruncate(fd_, static_cast<off_t>(bytes)), 0);
  }
  std::ptrdiff_t ones() const { return std::count(data_, data_ + kBytes, 1); }

  const int fd_;
  const std::uint8_t* data_;
};

TEST_F(BusGuardTest, WhatIsTakenAwayReadsAsZeros) {
  const BusGuard guard(data_, kBytes);
  EXPECT_EQ(ones(), static_cast<std::ptrdiff_t>(kBytes));
  EXPECT_FALSE(guard.spoiled());
  truncate(3 * kPage);
  EXPECT_EQ(ones(), static_cast<std::ptrdiff_t>(3 * kPage));
  EXPECT_TRUE(guard.spoiled());
}

TEST_F(BusGuardTest, ThreadsThatReadAtOnceAllGoOn) {
  const BusGuard guard(data_, kBytes);
  truncate(0);
  std::vector<std::thread> threads;
  std::vector<std::ptrdiff_t> seen(8, -1);
  for (std::ptrdiff_t& count : seen) threads.emplace_back([&count, this] { count = ones(); });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(seen, std::vector<std::ptrdiff_t>(8, 0));
}

TEST_F(BusGuardTest, OneRangeDoesNotSpoilAnother) {
  const std::vector<std::uint8_t> other(kBytes);
  const BusGuard of_other(other.data(), kBytes);
  const BusGuard guard(data_, kBytes);
  truncate(0);
  EXPECT_EQ(ones(), 0);
  EXPECT_FALSE(of_other.spoiled());
  EXPECT_TRUE(guard.spoiled());
}

TEST_F(BusGuardTest, MoreRangesThanFitAreRefused) {
  std::deque<BusGuard> guards;
  for (int i = 0; i < BusGuard::kMost; ++i) guards.emplace_back(data_, kBytes);
  EXPECT_THROW(BusGuard(data_, kBytes), FeedError);
  guards.pop_back();
  EXPECT_NO_THROW(BusGuard(data_, kBytes));
}

TEST_F(BusGuardTest, InAScopeWhatIsTakenAwayOfAnyMappingReadsAsZeros) {
  truncate(3 * kPage);
  const BusGuardScope scope;
  EXPECT_FALSE(scope.spoiled());
  {
    const BusGuardScope inner;
    EXPECT_EQ(ones(), static_cast<std::ptrdiff_t>(3 * kPage));
    EXPECT_TRUE(inner.spoiled());
  }
  EXPECT_TRUE(scope.spoiled());
}

TEST_F(BusGuardTest, AScopeIsNotSpoiledByOtherThreadsAndByGuardedRanges) {
  const BusGuardScope scope;
  const BusGuard guard(data_, kBytes / 2);
  truncate(0);
  EXPECT_EQ(std::count(data_, data_ + kBytes / 2, 1), 0);
  std::thread([this] {
    const BusGuardScope other;
    EXPECT_EQ(ones(), 0);
    EXPECT_TRUE(other.spoiled());
  }).join();
  EXPECT_TRUE(guard.spoiled());
  EXPECT_FALSE(scope.spoiled());
}

using BusGuardDeathTest = BusGuardTest;

TEST_F(BusGuardDeathTest, OutsideGuardedRangesTheProcessDiesAsBefore) {
  // A sanitizer has a handler of its own, which ends the process in its way.
  const auto dies = [](int status) {
    return ::testing::KilledBySignal(SIGBUS)(status) || (kSanitized && status != 0);
  };
  EXPECT_EXIT(
      {
        { const BusGuard guard(data_, kBytes); }
        { const BusGuardScope scope; }
        truncate(0);
        ones();
        _exit(0);
      },
      dies, "");
  EXPECT_EXIT(
      {
        const BusGuardScope scope;
        truncate(0);
        std::thread([this] { ones(); }).join();
        _exit(0);
      },
      dies, "");
}

}  // namespace
}  // namespace framelane
