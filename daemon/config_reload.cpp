#include "daemon/config_reload.hpp"

#include <fmt/core.h>
#include <systemd/sd-daemon.h>

#include <algorithm>
#include <cstddef>
#include <ctime>
#include <memory>
#include <tuple>
#include <utility>
#include <variant>

#include "daemon/logging.hpp"
#include "pipeline/base/failure.hpp"
#include "pipeline/base/log.hpp"

namespace framelane {
namespace {

using std::chrono::system_clock;

/// Of the problems of a file that is refused, the first so many are logged.
constexpr std::size_t kMostLogged = 50;

/// Tells systemd when a reload begins, and that it has ended.
class ReloadNotice {
 public:
  ReloadNotice() {
    timespec now{};
    clock_gettime(CLOCK_MONOTONIC, &now);
    const long long microseconds =
        static_cast<long long>(now.tv_sec) * 1'000'000 + now.tv_nsec / 1000;
    sd_notifyf(0, "RELOADING=1\nMONOTONIC_USEC=%lld", microseconds);
  }
  ~ReloadNotice() { sd_notify(0, "READY=1"); }
  ReloadNotice(const ReloadNotice&) = delete;
  ReloadNotice& operator=(const ReloadNotice&) = delete;
};

Problem problem_of(const std::string& file, std::string key, std::string message) {
  return {
      .file = file, .line = 0, .column = 0, .key = std::move(key), .message = std::move(message)};
}

/// For a feed that goes by the process's device, which is another one than at the start.
void name_device(FeedOptions& feed, const DeviceChoice& device) {
  if (!feed.device && converts(feed)) feed.device = device;
}

std::string named(const char* what, const std::vector<std::string>& names) {
  std::string text;
  for (const std::string& name : names) {
    text += text.empty() ? fmt::format("; {}: {}", what, name) : ", " + name;
  }
  return text;
}

}  // namespace

RereadOptions reread_secrets(const Config& config) {
  if (!config.names_files) return {};
  return [tree = config.tree,
          files = config.files](const std::string& name) -> std::optional<FeedOptions> {
    FeedResult feed = reread_feed(*tree, name, files, {.require_files = false});
    if (const auto* problems = std::get_if<std::vector<Problem>>(&feed)) {
      log::warn("feed {}: goes on with the secrets that it had: {}", name,
                to_string(problems->front()));
      return std::nullopt;
    }
    return std::get<FeedOptions>(std::move(feed));
  };
}

ConfigReload::ConfigReload(std::string file, const Config& config, Supervisor& supervisor,
                           std::chrono::milliseconds patience,
                           std::function<void(const Outcome&)> told, std::shared_ptr<Hooks> hooks)
    : file_(std::move(file)),
      supervisor_(supervisor),
      patience_(patience),
      told_(std::move(told)),
      hooks_(std::move(hooks)),
      log_(config.log),
      access_(std::make_shared<AdminAccess>(config.admin)),
      listen_(config.admin.listen),
      device_(config.device),
      recorder_(config.recorder),
      watchdog_(config.watchdog),
      tree_(config.tree),
      files_(config.files),
      status_{.loaded = system_clock::now()} {}

ConfigReload::Status ConfigReload::status() const {
  const std::lock_guard lock(mutex_);
  return status_;
}

WatchdogConfig ConfigReload::watchdog() const {
  const std::lock_guard lock(mutex_);
  return watchdog_;
}

Node ConfigReload::merged_feed(const std::string& feed) const {
  std::unique_lock lock(mutex_);
  const std::shared_ptr<const Node> tree = tree_;
  const std::vector<std::string> files = files_;
  lock.unlock();
  return tree != nullptr ? framelane::merged_feed(*tree, feed, files) : Node();
}

ConfigReload::Outcome ConfigReload::run() {
  const std::unique_lock running(running_, std::try_to_lock);
  if (!running) return {.kind = Outcome::Kind::kBusy, .changes = {}};
  const ReloadNotice notice;
  Outcome outcome;
  try {
    outcome = load_and_apply();
  } catch (const std::exception& error) {  // threads or memory are short
    outcome = {.kind = Outcome::Kind::kRefused,
               .changes = {},
               .problems = {problem_of(file_, "", error.what())}};
  }
  if (outcome.kind == Outcome::Kind::kStopping) return outcome;
  log_outcome(outcome);
  told_(outcome);
  const std::lock_guard lock(mutex_);
  status_.successful = outcome.kind == Outcome::Kind::kDone;
  if (status_.successful) status_.loaded = system_clock::now();
  return outcome;
}

/// Reads the file on a thread of its own, since it, or a file that it names, may be on a file
/// server that does not answer.
LoadResult ConfigReload::load_in_time() {
  using std::chrono::steady_clock;
  const auto seconds = [](steady_clock::duration time) {
    return std::chrono::duration<double>(time).count();
  };
  auto oldest = steady_clock::time_point::max();
  for (Reading& reading : readings_) {
    if (!reading.read.begin([file = file_] { return load_config_file(file); })) {
      oldest = std::min(oldest, reading.since);
      continue;
    }
    reading.since = steady_clock::now();
    if (auto loaded = reading.read.wait_for(patience_)) return *std::move(loaded);
    reading.read.abandon();
    return std::vector{
        problem_of(file_, "",
                   fmt::format("could not be read in {:.1f} s, with the files that it names; see "
                               "whether the disk or file server that they are on answers",
                               seconds(patience_)))};
  }
  return std::vector{problem_of(
      file_, "",
      fmt::format("is not read again: {} earlier reads are stuck in it or in a file that it names, "
                  "the first for {:.0f} s; see whether the disk or file server that they are on "
                  "answers, or start framelane again",
                  readings_.size(), seconds(steady_clock::now() - oldest)))};
}

ConfigReload::Outcome ConfigReload::load_and_apply() {
  LoadResult loaded = load_in_time();
  if (auto* problems = std::get_if<std::vector<Problem>>(&loaded)) {
    return {.kind = Outcome::Kind::kRefused, .changes = {}, .problems = std::move(*problems)};
  }
  Config config = std::get<Config>(std::move(loaded));
  std::vector<Problem> problems = check_devices(config);
  if (!problems.empty()) {
    return {.kind = Outcome::Kind::kRefused, .changes = {}, .problems = std::move(problems)};
  }
  RereadOptions reread = reread_secrets(config);
  if (config.device != device_) {
    for (FeedOptions& feed : config.feeds) name_device(feed, config.device);
    if (reread) {
      reread = [reread = std::move(reread), device = config.device](const std::string& name) {
        std::optional<FeedOptions> feed = reread(name);
        if (feed) name_device(*feed, device);
        return feed;
      };
    }
  }
  auto changes = supervisor_.reload(std::move(config.feeds), std::move(reread));
  if (!changes) return {.kind = Outcome::Kind::kStopping, .changes = {}};
  return {.changes = std::move(*changes), .next_start = apply_to_process(config)};
}

/// A GPU is opened only when the process starts.
std::vector<Problem> ConfigReload::check_devices(const Config& config) const {
  std::vector<Problem> problems;
  for (const DeviceSet::Missing& one : supervisor_.devices().missing(config.device, config.feeds)) {
    Problem problem =
        device_problem(config, *one.feed, one.why + "; GPUs are opened only when framelane starts");
    // Feeds may inherit it from one place.
    const bool known = std::ranges::any_of(problems, [&](const Problem& other) {
      return std::tie(other.file, other.line, other.column) ==
             std::tie(problem.file, problem.line, problem.column);
    });
    if (!known) problems.push_back(std::move(problem));
  }
  return problems;
}

std::vector<std::string> ConfigReload::apply_to_process(const Config& config) {
  if (config.log != log_) set_up_logging(config.log);
  log_ = config.log;
  if (hooks_) hooks_->replace(config.hooks);
  {
    const std::lock_guard lock(mutex_);
    watchdog_ = config.watchdog;
    tree_ = config.tree;
    files_ = config.files;
  }
  // The listener's address, and whether it speaks TLS, stay until the next start. Until then so
  // does all of its access: tokens for another address may be too few for this one.
  std::vector<std::string> next_start;
  const bool tls = access_->certificate() != nullptr;
  if (config.admin.listen != listen_) next_start.emplace_back("admin.listen");
  const bool tls_waits = (config.admin.certificate != nullptr) != tls;
  const bool same_listener = next_start.empty() && !tls_waits;
  if (config.recorder != recorder_) next_start.emplace_back("recorder");
  if (same_listener) {
    access_->replace(config.admin);
    return next_start;
  }
  if (tls_waits || !access_->has(config.admin.certificate)) next_start.emplace_back("admin.tls");
  if (!access_->has(config.admin.tokens)) next_start.emplace_back("admin.tokens");
  return next_start;
}

void ConfigReload::log_outcome(const Outcome& outcome) const {
  if (outcome.kind == Outcome::Kind::kRefused) {
    log::error("{} is not in force, the configuration goes on as it was: {} problem{}", file_,
               outcome.problems.size(), outcome.problems.size() == 1 ? "" : "s");
    const std::size_t shown = std::min(outcome.problems.size(), kMostLogged);
    for (std::size_t i = 0; i < shown; ++i) log::error("{}", to_string(outcome.problems[i]));
    if (const std::size_t more = outcome.problems.size() - shown; more > 0) {
      log::error("and {} more, which framelane check {} shows", more, file_);
    }
    return;
  }
  const FeedChanges& changes = outcome.changes;
  log::info("{} is in force: {} feed{} as before{}{}{}", file_, changes.unchanged.size(),
            changes.unchanged.size() == 1 ? "" : "s", named("added", changes.added),
            named("changed", changes.changed), named("removed", changes.removed));
  for (const std::string& key : outcome.next_start) {
    log::warn("{}: the new value takes effect when framelane is started again", key);
  }
}

}  // namespace framelane
