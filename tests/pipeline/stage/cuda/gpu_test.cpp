#include "pipeline/stage/gpu.hpp"

#include <gmock/gmock.h>
#include <spdlog/spdlog.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <filesystem>
#include <optional>

#include "pipeline/stage/cpu_stage.hpp"
#include "tests/cuda_runtime/fixture.hpp"
#include "tests/pipeline/source/media_files.hpp"

namespace framelane {
namespace {

using ::testing::HasSubstr;

const std::shared_ptr<Device>& cpu() {
  static const std::shared_ptr<Device> device = std::make_shared<CpuDevice>(1);
  return device;
}

class GpuTest : public CudaTest {};
class NoGpuTest : public StandInTest {
 protected:
  std::string why() {
    const GpuResult result = open_gpu(0, cpu());
    EXPECT_EQ(result.device, nullptr);
    EXPECT_EQ(result.why.find('\n'), std::string::npos);
    return result.why;
  }
};

TEST_F(GpuTest, AGpuIsOpenedByItsNumber) {
  const GpuResult gpu = open_gpu(0, cpu());
  ASSERT_NE(gpu.device, nullptr) << gpu.why;
  EXPECT_EQ(gpu.device->name(), "cuda:0");
  EXPECT_NE(gpu.device->model(), "");
  EXPECT_THAT(gpu.device->uuid(),
              ::testing::MatchesRegex("GPU-[0-9a-f]+-[0-9a-f]+-[0-9a-f]+-[0-9a-f]+-[0-9a-f]+"));
  EXPECT_EQ(gpu.device->uuid().size(), 40u);
  EXPECT_EQ(gpu.device->fallback(), cpu());
  EXPECT_TRUE(gpu.device->has_copy_engines());
  EXPECT_FALSE(gpu.device->lost());
}

TEST_F(GpuTest, CopiesAreMeasured) {
  std::string why;
  const std::vector<GpuReport> gpus = measure_gpus(why);
  ASSERT_FALSE(gpus.empty()) << why;
  EXPECT_EQ(gpus[0].name, "cuda:0");
  EXPECT_EQ(gpus[0].problem, "");
  EXPECT_GT(gpus[0].memory_bytes, 0u);
  EXPECT_GT(gpus[0].copy_engines, 0);
  EXPECT_GT(gpus[0].upload_rate, 0);
  EXPECT_GT(gpus[0].download_rate, 0);
  EXPECT_GT(gpus[0].both_rate, 0);
}

TEST_F(GpuTest, VersionsAreTwoNumbers) {
  EXPECT_THAT(cuda_build_version(), ::testing::MatchesRegex("[0-9]+\\.[0-9]+"));
  EXPECT_THAT(cuda_driver_version(), ::testing::MatchesRegex("[0-9]+\\.[0-9]+"));
}

TEST_F(NoGpuTest, AStubLibrary) {
  stand_in::fail_nth_call("cudaGetDeviceCount", 1, cudaErrorStubLibrary);
  EXPECT_THAT(why(), HasSubstr("stub"));
}

TEST_F(NoGpuTest, NoDriver) {
  stand_in::set_driver_version(0);
  stand_in::fail_nth_call("cudaGetDeviceCount", 1, cudaErrorInsufficientDriver);
  EXPECT_EQ(why(), "there is no NVIDIA driver (libcuda.so.1)");
  EXPECT_EQ(cuda_driver_version(), "");
}

TEST_F(NoGpuTest, AnOldDriver) {
  stand_in::set_driver_version(11040);
  stand_in::fail_nth_call("cudaGetDeviceCount", 1, cudaErrorInsufficientDriver);
  const std::string reason = why();
  EXPECT_THAT(reason, HasSubstr("supports CUDA 11.4"));
  EXPECT_THAT(reason, HasSubstr("update the driver"));
}

TEST_F(NoGpuTest, NoDevice) {
  stand_in::set_device_count(0);
  EXPECT_THAT(why(), HasSubstr("finds no GPU"));
}

TEST_F(NoGpuTest, ANumberThatThereIsNot) {
  const GpuResult result = open_gpu(3, cpu());
  EXPECT_EQ(result.device, nullptr);
  EXPECT_THAT(result.why, HasSubstr("there is no GPU 3: the driver finds 1"));
}

TEST_F(NoGpuTest, AGpuThatDoesNotComeUp) {
  stand_in::fail_nth_call("cudaInitDevice", 1, cudaErrorUnknown);
  EXPECT_EQ(why(), "GPU 0 cannot be used: cudaInitDevice: unknown error (cudaErrorUnknown)");
}

TEST_F(NoGpuTest, AProbeThatFailsIsReported) {
  spdlog::set_level(spdlog::level::off);
  stand_in::fail_nth_call("cudaMemcpyAsync", 1, cudaErrorLaunchFailure);
  std::string none;
  const std::vector<GpuReport> gpus = measure_gpus(none);
  ASSERT_EQ(gpus.size(), 1u);
  EXPECT_THAT(gpus[0].problem, HasSubstr("cudaMemcpyAsync"));
}

/// There is no home folder where CUDA could put the kernels that it compiles. There is no GPU
/// either, since the environment is prepared before GPUs are counted, and copies take time.
class CacheTest : public StandInTest {
 protected:
  void SetUp() override {
    StandInTest::SetUp();
    if (IsSkipped()) return;
    stand_in::set_device_count(0);
    for (const char* name : kNames) {
      const char* value = std::getenv(name);
      before_.emplace_back(value != nullptr ? std::optional<std::string>(value) : std::nullopt);
      ::unsetenv(name);
    }
    ::setenv("HOME", "/nonexistent", 1);
    ::setenv("TMPDIR", folder_.c_str(), 1);
  }
  void TearDown() override {
    if (IsSkipped()) return;
    for (std::size_t i = 0; i < before_.size(); ++i) {
      ::unsetenv(kNames[i]);
      if (before_[i]) ::setenv(kNames[i], before_[i]->c_str(), 1);
    }
    StandInTest::TearDown();
  }
  static std::string path() {
    std::string why;
    measure_gpus(why);
    const char* path = std::getenv("CUDA_CACHE_PATH");
    return path != nullptr ? path : "";
  }

  static constexpr std::array kNames{"HOME", "TMPDIR", "CUDA_CACHE_PATH", "CACHE_DIRECTORY",
                                     "XDG_CACHE_HOME"};
  std::vector<std::optional<std::string>> before_;
  const testing::TempFolder temp_;
  const std::string folder_ = temp_ / "";
  const std::string own_ = folder_ + "framelane-cuda-" + std::to_string(::geteuid());
};

TEST_F(CacheTest, AHomeThatCanBeWrittenIsLeftToCuda) {
  ::setenv("HOME", folder_.c_str(), 1);
  EXPECT_EQ(path(), "");
}

TEST_F(CacheTest, SystemdsFolderComesFirst) {
  ::setenv("CACHE_DIRECTORY", (folder_ + ".").c_str(), 1);
  ::setenv("XDG_CACHE_HOME", folder_.c_str(), 1);
  EXPECT_EQ(path(), folder_ + "./cuda");
}

TEST_F(CacheTest, ThenTheUsersCache) {
  ::setenv("CACHE_DIRECTORY", "/nonexistent/cache", 1);
  ::setenv("XDG_CACHE_HOME", (folder_ + ".").c_str(), 1);
  EXPECT_EQ(path(), folder_ + "./cuda");
}

TEST_F(CacheTest, ThenAPrivateFolderAmongTemporaryFiles) {
  EXPECT_EQ(path(), own_);
  struct stat found {};
  ASSERT_EQ(::lstat(own_.c_str(), &found), 0);
  EXPECT_EQ(found.st_mode, static_cast<mode_t>(S_IFDIR | S_IRWXU));
  ::unsetenv("CUDA_CACHE_PATH");
  EXPECT_EQ(path(), own_) << "the next time";
}

TEST_F(CacheTest, AFolderThatOthersMayWriteToIsNotTrusted) {
  std::filesystem::create_directory(own_);
  std::filesystem::permissions(own_, std::filesystem::perms::all);
  EXPECT_EQ(path(), "");
}

TEST_F(CacheTest, NorIsALinkToElsewhere) {
  std::filesystem::create_directory(folder_ + "elsewhere");
  std::filesystem::permissions(folder_ + "elsewhere", std::filesystem::perms::owner_all);
  std::filesystem::create_symlink(folder_ + "elsewhere", own_);
  EXPECT_EQ(path(), "");
}

TEST_F(CacheTest, WhatTheUserChoseStays) {
  ::setenv("CUDA_CACHE_PATH", "/chosen", 1);
  EXPECT_EQ(path(), "/chosen");
}

}  // namespace
}  // namespace framelane
