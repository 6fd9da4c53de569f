#include "daemon/device_set.hpp"

#include <pthread.h>

#include <algorithm>
#include <set>
#include <system_error>
#include <thread>
#include <tuple>
#include <utility>

#include "pipeline/base/failure.hpp"
#include "pipeline/base/labels.hpp"
#include "pipeline/base/log.hpp"
#include "pipeline/encode/nvenc.hpp"
#include "pipeline/stage/gpu.hpp"

namespace framelane {
namespace {

using Kind = DeviceChoice::Kind;

/// The load of a feed while nothing is known of any.
constexpr double kUnknownLoad = 1.0 / 64;

/// The share of the last ten seconds in which a GPU's busiest engine worked.
double load_of(const Device& gpu, DeviceSet::Clock::time_point now) {
  double load = 0;
  for (const Engine engine : {Engine::kH2d, Engine::kKernel, Engine::kD2h}) {
    load = std::max(load, gpu.busy()[engine].recent_ratio(now));
  }
  return load;
}

/// On a thread of its own, since the driver of a GPU that hangs does not answer. Without a thread
/// for it the amount is unknown.
std::future<std::optional<std::size_t>> ask_free_memory(
    const std::shared_ptr<Device>& gpu, const std::shared_ptr<AbandonableThread>& thread) {
  auto answer = std::make_shared<std::promise<std::optional<std::size_t>>>();
  try {
    std::thread([gpu, answer, thread] {
      pthread_setname_np(pthread_self(), "gpu-memory");
      answer->set_value(gpu->free_memory_bytes());
      thread->end();
    }).detach();
  } catch (const std::system_error&) {
    answer->set_value(std::nullopt);
  }
  return answer->get_future();
}

bool wants_any_gpu(const DeviceChoice& choice) { return choice.kind != Kind::kCpu && !choice.gpu; }

}  // namespace

DeviceSet::DeviceSet(const DeviceChoice& choice, std::vector<std::shared_ptr<Device>> gpus,
                     std::shared_ptr<Device> cpu, Refusals refusals,
                     std::function<Clock::time_point()> now, std::chrono::milliseconds answer)
    : choice_(choice),
      gpus_(std::move(gpus)),
      cpu_(std::move(cpu)),
      refusals_(std::move(refusals)),
      now_(std::move(now)),
      answer_(answer) {}

std::shared_ptr<Device> DeviceSet::place(const std::string& feed, const Wish& wish) {
  const DeviceChoice wanted = wish.choice.value_or(choice_);
  const bool any = wants_any_gpu(wanted);
  const std::lock_guard lock(mutex_);
  const auto found = places_.find(feed);
  std::shared_ptr<Device> present;
  if (found != places_.end()) {
    present = found->second.device;
    if (!any || (!wish.anew && !present->lost())) return present;
  } else {
    check(wanted);
  }
  const std::vector<LiveGpu> live = any ? live_gpus() : std::vector<LiveGpu>();
  std::shared_ptr<Device> device;
  if (!any) {
    device = wanted.gpu ? *numbered(*wanted.gpu) : cpu_;
  } else if (!live.empty()) {
    places_.erase(feed);  // it is no load for the choice
    device = least_busy(live, wish.nvenc, wish.anew ? present.get() : nullptr);
  } else if (present != nullptr) {
    return present;
  } else {
    device = wanted.kind == Kind::kCuda ? gpus_.front() : cpu_;
  }
  places_[feed] = {device, now_()};
  if (device != present && (gpus_.size() > 1 || (!gpus_.empty() && device == cpu_))) {
    log::info("feed {}: converts on {}", feed, device->name());
  }
  return device;
}

void DeviceSet::forget(const std::string& feed) {
  const std::lock_guard lock(mutex_);
  places_.erase(feed);
}

bool DeviceSet::can_move(const std::string& feed, const std::optional<DeviceChoice>& choice) {
  if (!wants_any_gpu(choice.value_or(choice_))) return false;
  const std::lock_guard lock(mutex_);
  const auto found = places_.find(feed);
  return found != places_.end() && found->second.device->lost() && !live_gpus().empty();
}

std::shared_ptr<Device> DeviceSet::least_busy(const std::vector<LiveGpu>& gpus, bool nvenc,
                                              const Device* full) {
  const Clock::time_point now = now_();
  const double mean = mean_load(now);
  // By what a GPU counts for: without memory, without sessions, load, sessions, feeds. The first of
  // equal ones.
  const auto cost = [&](const LiveGpu& gpu) {
    double load = load_of(*gpu.device, now);
    int feeds = 0;
    for (const auto& [name, place] : places_) {
      if (place.device != gpu.device) continue;
      ++feeds;
      if (now - place.since < kSettling) load += mean;
    }
    const bool short_of_memory = gpu.device.get() == full || !gpu.has_memory;
    const std::string& name = gpu.device->name();
    const bool short_of_sessions = nvenc && NvencSession::lacking(name);
    const int sessions = nvenc ? NvencSession::count(name) : 0;
    return std::tuple(short_of_memory, short_of_sessions, load, sessions, feeds);
  };
  return std::ranges::min_element(gpus, {}, cost)->device;
}

void DeviceSet::check(const DeviceChoice& choice) const {
  if (choice.kind != Kind::kCuda) return;
  if (choice.gpu ? numbered(*choice.gpu) != gpus_.end() : !gpus_.empty()) return;
  const auto why = choice.gpu ? refusals_.gpu.find(*choice.gpu) : refusals_.gpu.end();
  throw FeedError(FeedFault::kConfiguration,
                  "device: " + (choice.gpu ? gpu_name(*choice.gpu) : "cuda") + ": " +
                      (why == refusals_.gpu.end() ? refusals_.any : why->second) +
                      "; mend that, or set device to auto or cpu");
}

std::vector<DeviceSet::Missing> DeviceSet::missing(const DeviceChoice& choice,
                                                   std::span<const FeedOptions> feeds) const {
  std::vector<Missing> found;
  bool checked = false;  // what feeds go by that name none
  for (const FeedOptions& feed : feeds) {
    if (feed.device ? !converts(feed) : std::exchange(checked, true)) continue;
    try {
      check(feed.device.value_or(choice));
    } catch (const FeedError& error) {
      found.push_back({&feed, error.what()});
    }
  }
  return found;
}

std::vector<std::shared_ptr<Device>>::const_iterator DeviceSet::numbered(int gpu) const {
  return std::ranges::find(gpus_, gpu_name(gpu), &Device::name);
}

/// Those that still take calls: a GPU that fails may take all others of the process with it, which
/// shows at their next call.
std::vector<DeviceSet::LiveGpu> DeviceSet::live_gpus() {
  std::vector<LiveGpu> live;
  if (gpus_.size() == 1) {  // there is nothing to compare
    if (!gpus_.front()->lost()) live.push_back({gpus_.front(), true});
    return live;
  }
  // What was answered late is old by now.
  std::erase_if(questions_, [](const auto& entry) {
    return entry.second.late_since && entry.second.answered();
  });
  for (const std::shared_ptr<Device>& gpu : gpus_) {
    if (!gpu->lost() && !questions_.contains(gpu.get())) {
      auto thread = std::make_shared<AbandonableThread>();
      auto answer = ask_free_memory(gpu, thread);
      questions_[gpu.get()] = {std::move(answer), std::move(thread)};
    }
  }
  const Clock::time_point deadline = Clock::now() + answer_;
  for (const std::shared_ptr<Device>& gpu : gpus_) {
    const auto question = questions_.find(gpu.get());
    if (gpu->lost() || question == questions_.end()) continue;
    auto& [answer, thread, late_since] = question->second;
    bool has_memory = false;
    // One that is known to be silent is not waited for again.
    if (answer.wait_until(late_since ? Clock::now() : deadline) == std::future_status::ready) {
      has_memory = answer.get().value_or(kLeastFree) >= kLeastFree;
      questions_.erase(question);
    } else if (!late_since) {
      late_since = now_();
      log::warn("{} does not say how much memory is free: feeds go to other GPUs meanwhile",
                gpu->name());
    } else if (now_() - *late_since >= kSilence) {
      thread->abandon();
      gpu->lose("its driver has not said for " + std::to_string(kSilence.count()) +
                " s how much memory is free");
    }
    if (!gpu->lost()) live.push_back({gpu, has_memory});
  }
  return live;
}

/// Of the feeds that have been on a GPU for long enough.
double DeviceSet::mean_load(Clock::time_point now) const {
  double load = 0;
  for (const std::shared_ptr<Device>& gpu : gpus_) load += load_of(*gpu, now);
  const auto settled = std::ranges::count_if(places_, [&](const auto& entry) {
    return entry.second.device != cpu_ && now - entry.second.since >= kSettling;
  });
  return settled == 0 || load <= 0 ? kUnknownLoad : load / static_cast<double>(settled);
}

std::vector<std::shared_ptr<const Device>> DeviceSet::all() const {
  std::vector<std::shared_ptr<const Device>> devices(gpus_.begin(), gpus_.end());
  devices.push_back(cpu_);
  return devices;
}

std::shared_ptr<const Device> DeviceSet::named(const std::string& name) const {
  if (cpu_->name() == name) return cpu_;
  const auto gpu = std::ranges::find(gpus_, name, &Device::name);
  return gpu == gpus_.end() ? nullptr : *gpu;
}

bool DeviceSet::any_lost() const {
  const std::lock_guard lock(mutex_);
  const auto silent = [](const auto& entry) { return !entry.second.answered(); };
  return std::ranges::any_of(gpus_, &Device::lost) || std::ranges::any_of(questions_, silent);
}

namespace {

/// What open_devices has opened so far.
struct Opened {
  std::vector<std::shared_ptr<Device>> gpus;
  DeviceSet::Refusals refusals;

  void take(int number, GpuResult result) {
    if (result.device != nullptr) {
      log::info("converting on {} ({}, {})", result.device->name(), result.device->model(),
                result.device->uuid());
      gpus.push_back(std::move(result.device));
    } else {
      refusals.any += (refusals.any.empty() ? "" : "; ") + result.why;
      refusals.gpu[number] = std::move(result.why);
    }
  }
};

Opened open_gpus_for(const std::vector<DeviceChoice>& choices, bool one,
                     const std::shared_ptr<Device>& cpu) {
  Opened opened;
  if (std::ranges::all_of(choices, [](const auto& choice) { return choice.kind == Kind::kCpu; })) {
    return opened;
  }
  const int count = count_gpus(opened.refusals.any);
  if (count == 0) return opened;
  const bool any = std::ranges::any_of(choices, wants_any_gpu);
  std::set<int> numbers;
  for (const DeviceChoice& choice : choices) {
    if (choice.gpu) numbers.insert(*choice.gpu);
  }
  for (int gpu = 0; any && !one && gpu < count; ++gpu) numbers.insert(gpu);
  const std::vector<int> ordinals(numbers.begin(), numbers.end());
  std::vector<GpuResult> results = open_gpus(ordinals, cpu);
  for (std::size_t i = 0; i < results.size(); ++i) opened.take(ordinals[i], std::move(results[i]));
  for (int gpu = 0; any && one && opened.gpus.empty() && gpu < count; ++gpu) {
    opened.take(gpu, open_gpu(gpu, cpu));
  }
  return opened;
}

}  // namespace

std::shared_ptr<DeviceSet> open_devices(const DeviceChoice& choice,
                                        std::span<const FeedOptions> feeds, bool one) {
  std::vector<DeviceChoice> choices;
  for (const FeedOptions& feed : feeds) choices.push_back(feed.device.value_or(choice));
  const std::shared_ptr<Device> cpu = make_cpu_device();
  const auto [gpus, refusals] = open_gpus_for(choices, one, cpu);
  auto devices = std::make_shared<DeviceSet>(choice, gpus, cpu, refusals);
  for (const DeviceSet::Missing& missing : devices->missing(choice, feeds)) {
    if (missing.feed->device) continue;  // this feed fails alone
    log::error("{}", missing.why);
    return nullptr;
  }
  if (gpus.empty()) {
    log::info("converting on the CPU ({}){}{}", cpu->model(), refusals.any.empty() ? "" : ": ",
              refusals.any);
  } else {
    for (const auto& [number, why] : refusals.gpu) {
      log::warn("{} is left out: {}", gpu_name(number), why);
    }
  }
  return devices;
}

}  // namespace framelane
