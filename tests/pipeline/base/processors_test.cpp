// Not built for ThreadSanitizer: what it tests has one thread.
#include "pipeline/base/processors.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

extern "C" {
#include <libavutil/cpu.h>
}

namespace framelane {
namespace {

TEST(ProcessorsTest, AQuotaIsRoundedUpToWholeProcessors) {
  EXPECT_EQ(processors_of_quota("200000 100000\n"), 2);
  EXPECT_EQ(processors_of_quota("150000 100000"), 2);
  EXPECT_EQ(processors_of_quota("50000 100000"), 1);
  EXPECT_EQ(processors_of_quota("1000 1000000"), 1);
}

TEST(ProcessorsTest, WithoutAQuotaThereIsNoLimit) {
  for (const char* text : {"max 100000\n", "", "200000", "0 100000", "100000 0", "nonsense"}) {
    EXPECT_FALSE(processors_of_quota(text)) << text;
  }
}

TEST(MachineMemoryTest, ALimitIsInBytes) {
  EXPECT_EQ(bytes_of_limit("536870912\n"), std::size_t{512} << 20);
  EXPECT_EQ(bytes_of_limit("0"), 0u);
}

TEST(MachineMemoryTest, WithoutALimitThereIsNone) {
  for (const char* text : {"max\n", "", "512M", "-1", "nonsense"}) {
    EXPECT_FALSE(bytes_of_limit(text)) << text;
  }
}

TEST(MachineMemoryTest, ThereIsSomeAndNoMoreThanTheMachineHas) {
  EXPECT_GT(machine_memory(), std::size_t{16} << 20);
  EXPECT_LE(machine_memory(), static_cast<std::size_t>(sysconf(_SC_PHYS_PAGES)) *
                                  static_cast<std::size_t>(sysconf(_SC_PAGESIZE)));
}

TEST(ProcessorsTest, ThereIsOneAtLeastAndNoMoreThanMayBeUsed) {
  EXPECT_GE(processors(), 1);
  EXPECT_LE(processors(), av_cpu_count());
}

TEST(ProcessorsTest, ALiveFeedsCodecsGetFewThreads) {
  EXPECT_GE(codec_threads(true), 1);
  EXPECT_LE(codec_threads(true), 4);
  EXPECT_GE(codec_threads(false), 0);
}

}  // namespace
}  // namespace framelane
