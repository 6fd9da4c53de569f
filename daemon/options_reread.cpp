#include "daemon/options_reread.hpp"

#include <exception>
#include <utility>

#include "pipeline/base/log.hpp"

namespace framelane {

OptionsReread::OptionsReread(std::string feed, RereadOptions read)
    : feed_(std::move(feed)), read_(std::move(read)) {}

OptionsReread::Progress OptionsReread::poll(Clock::time_point now, FeedOptions& options) {
  if (!read_) return Progress::kNothing;
  try {
    if (!until_) {
      call_.begin([read = read_, feed = feed_] { return read(feed); });
      until_ = now + kPatience;
    }
    if (call_.under_way()) {
      if (now < *until_) return Progress::kReading;
      log::warn(
          "feed {}: goes on with the secrets that it had: they could not be read in {} s; see "
          "whether the disk or file server that they are on answers",
          feed_, kPatience.count());
      until_.reset();
      call_.abandon();
      return Progress::kNothing;
    }
    until_.reset();
    std::optional<FeedOptions> read = *call_.wait_for(std::chrono::milliseconds(0));
    if (!read) return Progress::kNothing;
    options = *std::move(read);
    return Progress::kRead;
  } catch (const std::exception& error) {  // threads or memory are short
    log::warn("feed {}: goes on with the secrets that it had: {}", feed_, error.what());
    until_.reset();
    return Progress::kNothing;
  }
}

}  // namespace framelane
