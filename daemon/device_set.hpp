#pragma once

#include <chrono>
#include <functional>
#include <future>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "pipeline/base/abandoned_threads.hpp"
#include "pipeline/feed/feed_options.hpp"
#include "pipeline/stage/device.hpp"
#include "pipeline/stage/device_choice.hpp"

namespace framelane {

/// The devices of the process, and which feed runs on which.
///
/// A feed that may run on any GPU gets the one that is least busy, of those with memory left, and
/// stays there until that GPU is lost. How busy a GPU is has been measured; a feed that was placed
/// lately counts as the mean of the others. Any thread.
class DeviceSet {
 public:
  using Clock = std::chrono::steady_clock;
  /// Until a feed has been on a GPU for so long, how busy it keeps the GPU is not known.
  static constexpr std::chrono::seconds kSettling{20};
  /// A GPU with less free memory is chosen only if all have less.
  static constexpr std::size_t kLeastFree = std::size_t{512} << 20;
  /// A driver is silent for seconds while it registers much memory that nobody has touched yet.
  static constexpr std::chrono::seconds kSilence{30};

  /// Why GPUs cannot be used: each clause says what would help.
  struct Refusals {
    std::string any;                 ///< why there is none at all
    std::map<int, std::string> gpu;  ///< by number
  };
  /// What a feed wants of its device.
  struct Wish {
    std::optional<DeviceChoice> choice{};  ///< its own; nothing: the set's
    bool nvenc = false;                    ///< it may encode with NVENC, on the GPU that it runs on
    bool anew = false;                     ///< the device of its last run had too little memory
  };
  /// `choice`: of feeds that make none. `gpus`: those that are used, by number. A GPU whose driver
  /// does not say within `answer` how much memory is free is taken only if all others are short of
  /// it; at the next placement after kSilence it is lost. `now` is replaced in tests.
  DeviceSet(const DeviceChoice& choice, std::vector<std::shared_ptr<Device>> gpus,
            std::shared_ptr<Device> cpu, Refusals refusals = {},
            std::function<Clock::time_point()> now = Clock::now,
            std::chrono::milliseconds answer = std::chrono::seconds(1));

  /// Throws FeedError(kConfiguration) if there is no GPU as `choice` wants it.
  void check(const DeviceChoice& choice) const;
  struct Missing {
    const FeedOptions* feed;
    std::string why;
  };
  /// The feeds whose devices are not there. Of those that name none, and so go by `choice`, only
  /// the first, whatever it does: framelane does not run without that device. Of the others those
  /// that convert.
  std::vector<Missing> missing(const DeviceChoice& choice,
                               std::span<const FeedOptions> feeds) const;
  /// The device for a feed's next run: the one of its last run, unless that is lost and there
  /// is another, or has too little memory. Where there are several GPUs it asks their drivers, and
  /// waits up to `answer`. Throws what check() throws.
  std::shared_ptr<Device> place(const std::string& feed, const Wish& wish);
  /// The feed's next run is placed as its first was.
  void forget(const std::string& feed);
  /// Where feeds run that convert nothing.
  const std::shared_ptr<Device>& cpu() const { return cpu_; }
  /// True if the feed's device is lost and place() would choose another GPU. Asks their drivers.
  bool can_move(const std::string& feed, const std::optional<DeviceChoice>& choice);

  /// The GPUs by number, then the CPU.
  std::vector<std::shared_ptr<const Device>> all() const;
  /// The one with this Device::name(); null if there is none.
  std::shared_ptr<const Device> named(const std::string& name) const;
  /// True if a GPU is lost, or its driver has been asked and is silent.
  bool any_lost() const;

 private:
  struct Place {
    std::shared_ptr<Device> device;
    Clock::time_point since;
  };

  std::vector<std::shared_ptr<Device>>::const_iterator numbered(int gpu) const;
  struct LiveGpu {
    std::shared_ptr<Device> device;
    bool has_memory;  // kLeastFree at least, or it is not known
  };
  /// How much memory is free, asked on a thread of its own.
  struct Question {
    std::future<std::optional<std::size_t>> answer;
    std::shared_ptr<AbandonableThread> thread;
    std::optional<Clock::time_point> late_since{};

    bool answered() const {
      return answer.wait_for(std::chrono::seconds(0)) == std::future_status::ready;
    }
  };
  std::shared_ptr<Device> least_busy(const std::vector<LiveGpu>& gpus, bool nvenc,
                                     const Device* full);
  std::vector<LiveGpu> live_gpus();
  double mean_load(Clock::time_point now) const;

  const DeviceChoice choice_;
  const std::vector<std::shared_ptr<Device>> gpus_;
  const std::shared_ptr<Device> cpu_;
  const Refusals refusals_;
  const std::function<Clock::time_point()> now_;
  const std::chrono::milliseconds answer_;
  mutable std::mutex mutex_;
  std::map<std::string, Place> places_;          // by feed; guarded by mutex_
  std::map<const Device*, Question> questions_;  // without an answer; guarded by mutex_
};

/// Opens the GPUs that `choice` and the feeds' own choices name, and logs which. `one`: no second
/// one where any will do. Null, which is logged, if feeds without a choice of their own cannot have
/// what `choice` asks for. To be called before there are threads that read the environment.
std::shared_ptr<DeviceSet> open_devices(const DeviceChoice& choice,
                                        std::span<const FeedOptions> feeds, bool one = false);

}  // namespace framelane
