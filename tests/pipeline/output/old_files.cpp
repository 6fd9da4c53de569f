#include "tests/pipeline/output/old_files.hpp"

#include <gtest/gtest.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <system_error>

#include "tests/pipeline/source/media_files.hpp"

namespace framelane::testing {

MemoryFolder::MemoryFolder() { EXPECT_NE(mkdtemp(path_.data()), nullptr); }

MemoryFolder::~MemoryFolder() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

void write_aged(const std::string& path, std::chrono::system_clock::time_point changed,
                std::size_t bytes) {
  std::filesystem::create_directories(std::filesystem::path(path).parent_path());
  write_file(path, Bytes(bytes, 1));
  std::filesystem::last_write_time(path, std::filesystem::file_time_type::clock::from_sys(changed));
}

WithoutRootsRights::WithoutRootsRights() {
  EXPECT_EQ(syscall(SYS_capget, &header_, before_), 0);
  __user_cap_data_struct less[2] = {before_[0], before_[1]};
  less[0].effective &= ~(1u << CAP_DAC_OVERRIDE | 1u << CAP_DAC_READ_SEARCH | 1u << CAP_FOWNER);
  EXPECT_EQ(syscall(SYS_capset, &header_, less), 0);
}

WithoutRootsRights::~WithoutRootsRights() { syscall(SYS_capset, &header_, before_); }

}  // namespace framelane::testing
