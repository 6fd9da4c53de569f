#include "pipeline/overlay/timed_overlays.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <new>
#include <optional>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "pipeline/base/abandoned_threads.hpp"
#include "pipeline/base/failure.hpp"

namespace framelane {
namespace {

/// The thread has so long once the caller no longer waits: after a cancel it may be about to end,
/// and after this process was stopped for a while nothing hangs. A cancelled feed gives its threads
/// longer.
constexpr std::chrono::seconds kSecondLook{1};

}  // namespace

struct TimedOverlays::Work {
  explicit Work(std::span<const OverlayOptions> overlay_options)
      : options(overlay_options.begin(), overlay_options.end()) {}

  void begin() {
    const std::lock_guard lock(mutex);
    running = true;
    failure.reset();
  }
  void end(std::optional<FeedError> error) {
    const std::lock_guard lock(mutex);
    running = false;
    failure = std::move(error);
    ended.notify_all();
  }
  bool runs() {
    const std::lock_guard lock(mutex);
    return running;
  }

  const std::vector<OverlayOptions> options;
  std::unique_ptr<FrameOverlays> overlays{};  // of the thread while one runs

  std::mutex mutex{};
  std::condition_variable_any ended{};
  bool running = false;                // guarded by mutex, with what follows
  std::optional<FeedError> failure{};  // of the last call
};

/// What the abandoned threads of this process still work on. Any thread.
class TimedOverlays::LateWork {
 public:
  static LateWork& instance() {
    static LateWork late;
    return late;
  }
  void add(std::shared_ptr<Work> work) {
    const std::lock_guard lock(mutex_);
    work_.push_back(std::move(work));
  }
  /// True if a thread that had the same options still runs.
  bool has(std::span<const OverlayOptions> options) {
    const std::lock_guard lock(mutex_);
    std::erase_if(work_, [](const auto& work) { return !work->runs(); });
    return std::ranges::any_of(
        work_, [&](const auto& work) { return std::ranges::equal(work->options, options); });
  }

 private:
  std::mutex mutex_;
  std::vector<std::shared_ptr<Work>> work_;  // guarded by mutex_
};

TimedOverlays::TimedOverlays(std::span<const OverlayOptions> options, const Frames& frames,
                             std::chrono::milliseconds limit, std::stop_token cancel)
    : limit_(limit), cancel_(std::move(cancel)), work_(std::make_shared<Work>(options)) {
  if (LateWork::instance().has(options)) {
    throw FeedError(FeedFault::kEncoder,
                    "its fonts or images are still being read; see whether the disk or file server "
                    "that they are on answers");
  }
  run([frames](Work& work) {
    work.overlays = std::make_unique<FrameOverlays>(
        work.options, frames.size, frames.sample_aspect_ratio, frames.format, frames.color);
  });
}

std::shared_ptr<const Overlays> TimedOverlays::at(std::chrono::system_clock::time_point time) {
  if (work_->overlays->changes_at(time)) {
    run([time](Work& work) { work.overlays->at(time); });
  }
  return work_->overlays->at(time);
}

/// Makes the call on another thread, and returns when it has ended.
void TimedOverlays::run(std::function<void(Work&)> call) {
  const auto thread = std::make_shared<AbandonableThread>();
  work_->begin();
  try {
    std::thread([work = work_, thread, call = std::move(call)] {
      std::optional<FeedError> failure;
      try {
        call(*work);
      } catch (const FeedError& error) {
        failure = error;
      } catch (const std::bad_alloc&) {
        failure.emplace(FeedFault::kMemory, shortage_text("its overlays got no memory"));
      } catch (const std::exception& error) {
        failure.emplace(FeedFault::kInternal, error.what());
      }
      work->end(std::move(failure));
      thread->end();
    }).detach();
  } catch (const std::system_error& error) {
    work_->end({});
    throw FeedError(FeedFault::kMemory,
                    "no thread can be started to read fonts and images (" + error.code().message() +
                        "); raise the limit of threads (TasksMax), or use fewer feeds");
  }
  const auto has_ended = [this] { return !work_->running; };
  std::unique_lock lock(work_->mutex);
  if (work_->ended.wait_for(lock, cancel_, limit_, has_ended) ||
      work_->ended.wait_for(lock, kSecondLook, has_ended)) {
    if (const auto& failure = work_->failure) {
      throw FeedError(failure->code(), failure->what());  // a text that no other thread frees
    }
    return;
  }
  lock.unlock();
  thread->abandon();
  LateWork::instance().add(work_);
  throw FeedError(FeedFault::kEncoder,
                  fmt::format("its fonts and images could not be read in {:.1f} s; see whether the "
                              "disk or file server that they are on answers",
                              std::chrono::duration<double>(limit_).count()));
}

}  // namespace framelane
