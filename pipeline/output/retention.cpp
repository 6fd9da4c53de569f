// Longer than 400 lines: the threads, and what they and the outputs share under one mutex.
#include "pipeline/output/retention.hpp"

#include <pthread.h>

#include <algorithm>
#include <condition_variable>
#include <exception>
#include <iterator>
#include <map>
#include <mutex>
#include <new>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "pipeline/base/abandoned_threads.hpp"
#include "pipeline/base/backoff.hpp"
#include "pipeline/base/failure.hpp"
#include "pipeline/base/fault_log.hpp"
#include "pipeline/base/log.hpp"
#include "pipeline/base/redact.hpp"

namespace framelane {

using Steady = std::chrono::steady_clock;

namespace {
constexpr BackoffOptions kStartBackoff{.first = std::chrono::milliseconds(250)};
}  // namespace

/// An output's files, and what its disk's thread has yet to be told of them.
struct Retention::Output {
  Output(const FilePattern& pattern, const SegmentOptions& keep, const std::string& subject,
         const std::shared_ptr<RetentionStats>& stats)
      : files(pattern, keep, subject, stats), faults(subject + ": deleting old files") {}

  OutputRetention files;  // its disk's thread's

  // Guarded by Threads::mutex_.
  FaultLog faults;         // of starting a thread
  Disk* disk = nullptr;    // null: no thread could be started yet
  std::uint64_t user = 0;  // the KeptFiles; 0: none
  std::vector<std::string> completed;
  bool look_again = false;
  bool disk_is_full = false;
};

struct Retention::Disk {
  Disk(dev_t disk_device, std::string a_folder, const SpaceOf& space_of)
      : device(disk_device), folder(std::move(a_folder)), work(disk_device, space_of) {}

  const dev_t device;
  const std::string folder;  // of its first output
  DiskRetention work;        // its thread's

  // Guarded by Threads::mutex_.
  std::thread thread;
  AbandonableThread abandonable{};
  std::vector<std::shared_ptr<Output>> outputs;
  bool woken = false;
  bool hangs = false;
  bool ended = false;
};

/// The threads, and what they share with the outputs. Under the mutex no file system is called.
class Retention::Threads : public std::enable_shared_from_this<Retention::Threads> {
 public:
  explicit Threads(SpaceOf space_of) : space_of_(std::move(space_of)) {}

  std::unique_ptr<KeptFiles> keep(const FilePattern& pattern, const SegmentOptions& keep,
                                  const std::string& subject,
                                  const std::shared_ptr<RetentionStats>& stats);
  void watch();
  void stop();

  void completed(Output& output, const std::string& path);
  void look_again(Output& output, bool disk_is_full);
  void leave(Output& output, std::uint64_t user);

 private:
  /// What a thread was told of one of its outputs.
  struct Mail {
    std::shared_ptr<Output> output;
    std::vector<std::string> completed;
    bool look_again;
    bool disk_is_full;
  };

  // With the mutex.
  std::shared_ptr<Output> known_output(const Output& output, const RetentionStats* stats) const;
  Disk& disk_of(const OutputRetention& files);
  /// False if the system refuses a thread: the output stays where it is.
  bool hand_over(const std::shared_ptr<Output>& output);
  void hand_over_strays(Disk& disk);
  void hand_over_refused();
  std::vector<Mail> take_mail(Disk& disk);
  /// Outputs that cannot start again, since whoever had them counted has ended.
  std::vector<std::shared_ptr<Output>> take_ended(Disk& disk);
  void wake(Output& output);

  // The disk's thread.
  void serve(Disk& disk);
  static Steady::duration work(Disk& disk, const std::vector<Mail>& mail, bool last);

  const SpaceOf space_of_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::condition_variable ended_;
  std::map<const RetentionStats*, std::shared_ptr<Output>> outputs_;
  std::map<dev_t, std::shared_ptr<Disk>> disks_;
  std::uint64_t users_ = 0;
  Backoff start_backoff_{kStartBackoff};
  Steady::time_point start_due_;  // a thread was refused, and is not tried again before
  bool stopping_ = false;
};

std::unique_ptr<KeptFiles> Retention::Threads::keep(const FilePattern& pattern,
                                                    const SegmentOptions& keep,
                                                    const std::string& subject,
                                                    const std::shared_ptr<RetentionStats>& stats) {
  auto output = std::make_shared<Output>(pattern, keep, subject, stats);
  std::unique_lock lock(mutex_);
  if (std::shared_ptr<Output> known = known_output(*output, stats.get())) {
    output = std::move(known);
  } else {
    lock.unlock();
    output->files.locate();
    lock.lock();
    if (!stopping_) hand_over(output);
    const std::shared_ptr<Output> old = std::exchange(outputs_[stats.get()], output);
    if (old && old->disk) std::erase(old->disk->outputs, old);
  }
  output->user = ++users_;
  output->look_again = true;
  wake(*output);
  return std::make_unique<KeptFiles>(shared_from_this(), output, output->user);
}

std::shared_ptr<Retention::Output> Retention::Threads::known_output(
    const Output& output, const RetentionStats* stats) const {
  const auto known = outputs_.find(stats);
  if (known == outputs_.end()) return nullptr;
  const OutputRetention& files = known->second->files;
  const bool same =
      files.pattern() == output.files.pattern() && files.keep() == output.files.keep();
  return same ? known->second : nullptr;
}

Retention::Disk& Retention::Threads::disk_of(const OutputRetention& files) {
  const auto known = disks_.find(files.device());
  if (known != disks_.end()) return *known->second;
  auto disk = std::make_shared<Disk>(files.device(), files.folder(), space_of_);
  const auto place = disks_.emplace(files.device(), disk).first;
  try {
    disk->thread = std::thread([self = shared_from_this(), disk] { self->serve(*disk); });
  } catch (...) {
    disks_.erase(place);
    throw;
  }
  return *disk;
}

bool Retention::Threads::hand_over(const std::shared_ptr<Output>& output) {
  try {
    Disk& disk = disk_of(output->files);
    output->faults.recovered();
    start_backoff_ = Backoff(kStartBackoff);
    disk.outputs.push_back(output);  // the last thing that may throw
    output->disk = &disk;
    return true;
  } catch (const std::system_error& error) {
    // The recording goes on, as it does when deleting fails in another way.
    const std::string reason = "the thread that deletes old files does not start: " +
                               shortage_text(error.code().message());
    output->files.stats().failed(RetentionFault::kDelete, reason);
    output->faults.failed(
        fault_code(RetentionFault::kDelete), reason,
        output->disk ? "it is tried again" : "it is tried again, and until then none is deleted");
    start_due_ = Steady::now() + start_backoff_.next();
    return false;
  }
}

void Retention::Threads::hand_over_refused() {
  bool may_start = Steady::now() >= start_due_;
  for (const auto& [stats, output] : outputs_) {
    if (output->disk != nullptr || output->user == 0) continue;
    if (!may_start && !disks_.contains(output->files.device())) continue;
    may_start = hand_over(output);
    wake(*output);
  }
}

/// Another file system may have been mounted where an output's files are.
void Retention::Threads::hand_over_strays(Disk& disk) {
  for (std::size_t i = 0; i < disk.outputs.size();) {
    const std::shared_ptr<Output> output = disk.outputs[i];
    if (output->files.device() == disk.device) {
      ++i;
      continue;
    }
    if (Steady::now() < start_due_ || !hand_over(output)) return;  // the next round tries again
    std::erase(disk.outputs, output);
    wake(*output);
  }
}

std::vector<Retention::Threads::Mail> Retention::Threads::take_mail(Disk& disk) {
  std::vector<Mail> mail;
  mail.reserve(disk.outputs.size());  // so that nothing is taken and then lost
  for (const std::shared_ptr<Output>& output : disk.outputs) {
    // What an output said last is heard although it has left.
    if (output->user == 0 && output->completed.empty() && !output->look_again) continue;
    mail.push_back({output, std::exchange(output->completed, {}),
                    std::exchange(output->look_again, false),
                    std::exchange(output->disk_is_full, false)});
  }
  return mail;
}

std::vector<std::shared_ptr<Retention::Output>> Retention::Threads::take_ended(Disk& disk) {
  std::vector<std::shared_ptr<Output>> ended;
  std::ranges::copy_if(disk.outputs, std::back_inserter(ended), [](const auto& output) {
    return output->user == 0 && output->completed.empty() && !output->look_again &&
           output->files.is_forgotten();
  });
  for (const std::shared_ptr<Output>& output : ended) {
    std::erase(disk.outputs, output);
    outputs_.erase(&output->files.stats());
  }
  return ended;
}

void Retention::Threads::wake(Output& output) {
  if (output.disk) output.disk->woken = true;
  changed_.notify_all();
}

void Retention::Threads::serve(Disk& disk) {
  pthread_setname_np(pthread_self(), "retention");
  std::unique_lock lock(mutex_);
  Steady::duration idle{};
  bool failed = false;
  for (bool last = false; !last;) {
    changed_.wait_for(lock, idle, [&] { return disk.woken || stopping_; });
    disk.woken = false;
    last = stopping_;
    try {
      std::vector<std::shared_ptr<Output>> ended = take_ended(disk);
      const std::vector<Mail> mail = take_mail(disk);
      lock.unlock();
      ended.clear();  // which may close a folder
      idle = work(disk, mail, last);
      lock.lock();
      if (!stopping_) hand_over_strays(disk);
      failed = false;
    } catch (const std::exception& error) {  // memory or threads are short
      if (!std::exchange(failed, true)) log::error("deleting old files: {}", error.what());
      idle = OutputRetention::kCallLimit;
      if (!lock) lock.lock();
      // What the thread was told and has not done is found by a pass.
      for (const std::shared_ptr<Output>& output : disk.outputs) {
        output->look_again |= output->user != 0;
      }
    }
  }
  disk.ended = true;
  ended_.notify_all();
  disk.abandonable.end();
}

/// Returns how long there is nothing to do.
Steady::duration Retention::Threads::work(Disk& disk, const std::vector<Mail>& mail, bool last) {
  std::vector<OutputRetention*> outputs;
  ClockReading now = ClockReading::now();
  {
    const CallScope scope(disk.work.calls(), OutputRetention::kCallLimit);
    for (const Mail& of : mail) {
      OutputRetention& files = of.output->files;
      for (const std::string& path : of.completed) files.completed(path, disk.work.calls());
      if (!of.completed.empty()) disk.work.check_space();
      if (of.look_again) files.look_again();
      if (of.disk_is_full) disk.work.disk_is_full(now.steady);
      outputs.push_back(&files);
    }
  }
  now = ClockReading::now();
  const Steady::time_point until = now.steady + (last ? kLastTurns : kLastTurns.zero());
  bool more = disk.work.turn(now, outputs);
  while (more && now.steady < until) {
    now = ClockReading::now();
    more = disk.work.turn(now, outputs);
  }
  return more ? Steady::duration{} : disk.work.idle_for(now, outputs);
}

void Retention::Threads::watch() {
  std::vector<std::pair<std::string, bool>> changes;
  {
    const std::lock_guard lock(mutex_);
    if (!stopping_) hand_over_refused();
    for (const auto& [device, disk] : disks_) {
      const bool hangs = disk->work.calls().overdue();
      if (hangs == disk->hangs) continue;
      changes.emplace_back(disk->folder, hangs);
      disk->hangs = hangs;
      for (const std::shared_ptr<Output>& output : disk->outputs) {
        RetentionStats& stats = output->files.stats();
        if (hangs) {
          stats.failed(RetentionFault::kTimeout, "a call on its file system does not return");
        } else {
          stats.recovered(RetentionFault::kTimeout);
        }
      }
    }
  }
  for (const auto& [folder, hangs] : changes) {
    if (hangs) {
      log::warn(
          "file system of {}: a call has not returned for {} s; no old file is deleted there "
          "until it does: check the disk or file server",
          redact(folder), OutputRetention::kCallLimit.count());
    } else {
      log::info("file system of {}: calls return again", redact(folder));
    }
  }
}

void Retention::Threads::stop() {
  std::vector<std::string> hanging;
  {
    std::unique_lock lock(mutex_);
    stopping_ = true;
    changed_.notify_all();
    const auto ended = [](const auto& disk) { return disk.second->ended; };
    ended_.wait_for(lock, kStopTime, [&] { return std::ranges::all_of(disks_, ended); });
    for (const auto& [device, disk] : disks_) {
      if (!disk->thread.joinable()) continue;  // an earlier stop
      if (disk->ended) {
        lock.unlock();
        disk->thread.join();  // it has at most the mutex left to give back
        lock.lock();
      } else {
        disk->thread.detach();
        disk->abandonable.abandon();
        hanging.push_back(disk->folder);
      }
    }
  }
  for (const std::string& folder : hanging) {
    log::error(
        "file system of {}: the thread that deletes old files there did not end when asked "
        "to and was abandoned",
        redact(folder));
  }
}

void Retention::Threads::completed(Output& output, const std::string& path) {
  const std::lock_guard lock(mutex_);
  output.completed.push_back(path);
  wake(output);
}

void Retention::Threads::look_again(Output& output, bool disk_is_full) {
  const std::lock_guard lock(mutex_);
  output.look_again = true;
  output.disk_is_full |= disk_is_full;
  wake(output);
}

void Retention::Threads::leave(Output& output, std::uint64_t user) {
  const std::lock_guard lock(mutex_);
  // Another run of the output may have it by now, if this one was abandoned.
  if (output.user == user) output.user = 0;
}

Retention::Retention(SpaceOf space_of) : threads_(std::make_shared<Threads>(std::move(space_of))) {}
Retention::~Retention() { stop(); }

std::unique_ptr<KeptFiles> Retention::keep(const FilePattern& pattern, const SegmentOptions& keep,
                                           const std::string& subject,
                                           const std::shared_ptr<RetentionStats>& stats) {
  return threads_->keep(pattern, keep, subject, stats);
}

void Retention::watch() try {
  threads_->watch();
} catch (const std::bad_alloc&) {  // the next call tries again
}
void Retention::stop() { threads_->stop(); }

KeptFiles::KeptFiles(std::shared_ptr<Retention::Threads> threads,
                     std::shared_ptr<Retention::Output> output, std::uint64_t user)
    : threads_(std::move(threads)), output_(std::move(output)), user_(user) {}
KeptFiles::~KeptFiles() { threads_->leave(*output_, user_); }

void KeptFiles::completed(const std::string& path) { threads_->completed(*output_, path); }
void KeptFiles::look_again(bool disk_is_full) { threads_->look_again(*output_, disk_is_full); }

}  // namespace framelane
