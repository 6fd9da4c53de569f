#include "daemon/options_reread.hpp"

#include <exception>
#include <thread>
#include <utility>

#include "pipeline/base/log.hpp"

namespace framelane {

OptionsReread::OptionsReread(std::string feed, RereadOptions read)
    : feed_(std::move(feed)), read_(std::move(read)) {}

OptionsReread::Progress OptionsReread::poll(Clock::time_point now, FeedOptions& options) {
  if (!read_) return Progress::kNothing;
  try {
    if (!until_) {
      begin();
      until_ = now + kPatience;
    }
    if (reads()) {
      if (now < *until_) return Progress::kReading;
      log::warn(
          "feed {}: goes on with the secrets that it had: they could not be read in {} s; see "
          "whether the disk or file server that they are on answers",
          feed_, kPatience.count());
      until_.reset();
      abandon();
      return Progress::kNothing;
    }
    until_.reset();
    std::optional<FeedOptions> read = call_.get();
    if (!read) return Progress::kNothing;
    options = *std::move(read);
    return Progress::kRead;
  } catch (const std::exception& error) {  // threads or memory are short
    log::warn("feed {}: goes on with the secrets that it had: {}", feed_, error.what());
    until_.reset();
    return Progress::kNothing;
  }
}

void OptionsReread::abandon() {
  if (reads()) thread_->abandon();
}

void OptionsReread::begin() {
  if (reads()) return;
  auto reader = std::make_shared<AbandonableThread>();
  std::packaged_task<std::optional<FeedOptions>()> task(
      [read = read_, feed = feed_] { return read(feed); });
  auto call = task.get_future();
  std::thread([task = std::move(task), reader]() mutable {
    task();
    reader->end();
  }).detach();
  call_ = std::move(call);
  thread_ = std::move(reader);
}

bool OptionsReread::reads() const {
  return call_.valid() && call_.wait_for(std::chrono::seconds(0)) != std::future_status::ready;
}

}  // namespace framelane
