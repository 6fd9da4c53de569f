#include "daemon/device_set.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <future>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "pipeline/base/abandoned_threads.hpp"
#include "pipeline/base/failure.hpp"
#include "pipeline/encode/nvenc.hpp"
#include "tests/daemon/fake_clock.hpp"
#include "tests/pipeline/base/wait.hpp"
#include "tests/pipeline/stage/device_wrapper.hpp"

namespace framelane {
namespace {

using namespace std::chrono_literals;
using Kind = DeviceChoice::Kind;
using framelane::testing::comes_true;
using ::testing::HasSubstr;

constexpr DeviceChoice kAny{};
constexpr DeviceChoice kCpu{Kind::kCpu};
constexpr DeviceChoice kAnyGpu{Kind::kCuda};
constexpr DeviceChoice kGpu1{Kind::kCuda, 1};

class FakeGpu : public DeviceWrapper {
 public:
  FakeGpu(int number, std::shared_ptr<Device> cpu)
      : DeviceWrapper(std::move(cpu)), name_("cuda:" + std::to_string(number)) {}
  const std::string& name() const override { return name_; }
  bool lost() const override { return lost_; }
  void lose(const std::string&) override { lost_ = true; }
  const EngineMeters& busy() const override { return busy_; }
  std::optional<std::size_t> free_memory_bytes() override {
    if (answers_.valid()) answers_.wait();
    ++asked_;
    lost_ = lost_ || fails_when_asked_;
    return lost_ ? std::nullopt : std::optional(free_);
  }
  /// Its uploads took this share of the last ten seconds.
  void was_busy(double share, FakeClock::Clock::time_point now) {
    busy_.add(Engine::kH2d, now - 10s, now - 10s + std::chrono::milliseconds(int(share * 10000)));
  }

  std::size_t free_ = std::size_t{8} << 30;
  bool fails_when_asked_ = false;
  std::shared_future<void> answers_;  // when its driver does; not valid: at once
  std::atomic<int> asked_ = 0;        // and has answered

 private:
  const std::string name_;
  EngineMeters busy_;
  std::atomic<bool> lost_ = false;
};

class DeviceSetTest : public ::testing::Test {
 protected:
  void make(const DeviceChoice& choice = kAny) {
    devices_.emplace(choice, std::vector<std::shared_ptr<Device>>{gpus_[0], gpus_[1]}, cpu_,
                     DeviceSet::Refusals{"", {{7, "GPU 7 is broken"}}}, clock_.function());
  }
  std::string place(const std::string& feed, std::optional<DeviceChoice> choice = std::nullopt,
                    bool anew = false) {
    return devices_->place(feed, {.choice = choice, .anew = anew})->name();
  }
  std::vector<std::string> place_all(const std::vector<std::string>& feeds) {
    std::vector<std::string> names;
    for (const std::string& feed : feeds) names.push_back(place(feed));
    return names;
  }

  FakeClock clock_;
  const std::shared_ptr<Device> cpu_ = make_cpu_device();
  const std::vector<std::shared_ptr<FakeGpu>> gpus_{std::make_shared<FakeGpu>(0, cpu_),
                                                    std::make_shared<FakeGpu>(1, cpu_)};
  std::optional<DeviceSet> devices_;
};

TEST_F(DeviceSetTest, FeedsThatStartTogetherAreSpreadEvenly) {
  make();
  EXPECT_EQ(place_all({"a", "b", "c", "d"}),
            (std::vector<std::string>{"cuda:0", "cuda:1", "cuda:0", "cuda:1"}));
}

TEST_F(DeviceSetTest, AFeedStaysWhereItIs) {
  make();
  place_all({"a", "b"});
  clock_.advance(1h);
  gpus_[1]->was_busy(0.9, clock_.now());
  EXPECT_EQ(place("b"), "cuda:1");
}

TEST_F(DeviceSetTest, TheNextFeedGoesToTheGpuThatIsLessBusy) {
  make();
  place_all({"a", "b", "c", "d"});
  clock_.advance(1h);
  gpus_[0]->was_busy(0.5, clock_.now());
  gpus_[1]->was_busy(0.2, clock_.now());
  // The four feeds keep a GPU busy for 0.175 of the time each. So two more find room on cuda:1.
  EXPECT_EQ(place_all({"e", "f", "g"}), (std::vector<std::string>{"cuda:1", "cuda:1", "cuda:0"}));
}

TEST_F(DeviceSetTest, AGpuWithoutMemoryIsPassedOver) {
  make();
  gpus_[0]->free_ = DeviceSet::kLeastFree - 1;
  EXPECT_EQ(place_all({"a", "b"}), (std::vector<std::string>{"cuda:1", "cuda:1"}));
  gpus_[1]->free_ = DeviceSet::kLeastFree - 1;
  EXPECT_EQ(place("c"), "cuda:0");
}

TEST_F(DeviceSetTest, AFeedThatFoundNoMemoryIsPlacedAnew) {
  make();
  EXPECT_EQ(place("a"), "cuda:0");
  EXPECT_EQ(place("a"), "cuda:0");
  EXPECT_EQ(place("a", std::nullopt, true), "cuda:1");  // the other one, whatever is free
  EXPECT_EQ(place("b", kGpu1), "cuda:1");
  EXPECT_EQ(place("b", kGpu1, true), "cuda:1");
}

TEST_F(DeviceSetTest, AFeedMayNameItsDevice) {
  make();
  EXPECT_EQ(place("a", kCpu), "cpu");
  EXPECT_EQ(place("b", kGpu1), "cuda:1");
  EXPECT_EQ(place("c", kAnyGpu), "cuda:0");
  make(kCpu);
  EXPECT_EQ(place("a"), "cpu");
  EXPECT_EQ(place("b", kAny), "cuda:0");
}

TEST_F(DeviceSetTest, AGpuThatCannotBeUsedIsRefusedWithItsReason) {
  make();
  try {
    place("a", DeviceChoice{Kind::kCuda, 7});
    FAIL() << "placed";
  } catch (const FeedError& error) {
    EXPECT_EQ(error.code(), FeedFault::kConfiguration);
    EXPECT_STREQ(error.what(),
                 "device: cuda:7: GPU 7 is broken; mend that, or set device to auto or cpu");
  }
  DeviceSet none(kAny, {}, cpu_, {"there is no NVIDIA driver", {}});
  EXPECT_EQ(none.place("a", {kAny})->name(), "cpu");
  EXPECT_THROW(none.check(kAnyGpu), FeedError);
  EXPECT_THROW(none.check(kGpu1), FeedError);
  EXPECT_NO_THROW(none.check(kCpu));
}

TEST_F(DeviceSetTest, FeedsOfALostGpuGoToAnother) {
  make();
  place_all({"a", "b"});
  EXPECT_FALSE(devices_->can_move("a", std::nullopt));
  gpus_[0]->lose("");
  EXPECT_TRUE(devices_->any_lost());
  EXPECT_TRUE(devices_->can_move("a", std::nullopt));
  EXPECT_FALSE(devices_->can_move("b", std::nullopt));
  EXPECT_EQ(place("a"), "cuda:1");
  EXPECT_FALSE(devices_->can_move("a", std::nullopt));
  EXPECT_EQ(place("c"), "cuda:1");
}

TEST_F(DeviceSetTest, AFeedThatNamesTheLostGpuStaysThere) {
  make();
  EXPECT_EQ(place("a", kGpu1), "cuda:1");
  gpus_[1]->lose("");
  EXPECT_FALSE(devices_->can_move("a", kGpu1));
  EXPECT_EQ(place("a", kGpu1), "cuda:1");  // whose feeds the CPU serves
}

TEST_F(DeviceSetTest, WithoutAGpuThatIsLeftTheCpuServes) {
  make();
  place("a");
  gpus_[0]->lose("");
  gpus_[1]->fails_when_asked_ = true;  // the same failure has ended it, which nobody knows yet
  EXPECT_FALSE(devices_->can_move("a", std::nullopt));
  EXPECT_TRUE(gpus_[1]->lost());
  EXPECT_EQ(place("b"), "cpu");
}

/// One that registers much memory for another feed does not answer for seconds either.
TEST_F(DeviceSetTest, AGpuWhoseDriverIsSlowToAnswerIsLeftOutMeanwhile) {
  std::promise<void> answer;
  gpus_[0]->answers_ = answer.get_future().share();
  devices_.emplace(kAny, std::vector<std::shared_ptr<Device>>{gpus_[0], gpus_[1]}, cpu_,
                   DeviceSet::Refusals{}, clock_.function(), 500ms);
  EXPECT_EQ(place_all({"a", "b"}), (std::vector<std::string>{"cuda:1", "cuda:1"}));
  EXPECT_FALSE(gpus_[0]->lost());
  answer.set_value();
  EXPECT_TRUE(comes_true([&] { return !devices_->any_lost(); }));
  EXPECT_EQ(gpus_[0]->asked_, 1) << "asked again meanwhile";
  EXPECT_EQ(place("c"), "cuda:0");
  EXPECT_EQ(gpus_[0]->asked_, 2) << "its late answer was old";
}

TEST_F(DeviceSetTest, AGpuWhoseDriverStaysSilentIsLost) {
  std::promise<void> answer;
  gpus_[0]->answers_ = answer.get_future().share();
  devices_.emplace(kAny, std::vector<std::shared_ptr<Device>>{gpus_[0], gpus_[1]}, cpu_,
                   DeviceSet::Refusals{}, clock_.function(), 100ms);
  place("a");
  EXPECT_FALSE(gpus_[0]->lost());
  EXPECT_TRUE(devices_->any_lost()) << "its thread must not outlive what it uses";
  const std::uint64_t abandoned = threads_abandoned();
  const std::uint64_t stuck = threads_stuck();
  clock_.advance(DeviceSet::kSilence);
  place("b");
  EXPECT_TRUE(gpus_[0]->lost());
  EXPECT_EQ(threads_abandoned(), abandoned + 1);
  EXPECT_EQ(threads_stuck(), stuck + 1);
  answer.set_value();
  EXPECT_TRUE(comes_true([&] { return threads_stuck() == stuck; }));
  EXPECT_EQ(gpus_[0]->asked_, 1);
}

TEST_F(DeviceSetTest, AFeedThatEncodesWithNvencGoesWhereASessionMayBeFree) {
  make();
  const auto place_nvenc = [&](const std::string& feed) {
    return devices_->place(feed, {.nvenc = true})->name();
  };
  {
    const NvencSession session("cuda:0");
    EXPECT_EQ(place_nvenc("a"), "cuda:1") << "nobody works yet; the other has fewer";
    EXPECT_EQ(place("b"), "cuda:0");
    NvencSession::note_refusal("cuda:1");
    EXPECT_EQ(place_nvenc("c"), "cuda:0") << "the other's driver has just refused one";
  }
  { const NvencSession ended("cuda:1"); }
  EXPECT_EQ(place_nvenc("d"), "cuda:1");
}

TEST_F(DeviceSetTest, WhereThereIsOneGpuItsDriverIsNotAsked) {
  gpus_[0]->fails_when_asked_ = true;
  devices_.emplace(kAny, std::vector<std::shared_ptr<Device>>{gpus_[0]}, cpu_);
  EXPECT_EQ(place("a"), "cuda:0");
  EXPECT_FALSE(gpus_[0]->lost());
}

TEST_F(DeviceSetTest, AllDevicesAreListedTheCpuLast) {
  make();
  std::vector<std::string> names;
  for (const auto& device : devices_->all()) names.push_back(device->name());
  EXPECT_EQ(names, (std::vector<std::string>{"cuda:0", "cuda:1", "cpu"}));
}

}  // namespace
}  // namespace framelane
