#include "daemon/incident_file.hpp"

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <map>
#include <system_error>
#include <utility>

#include "daemon/incident_json.hpp"
#include "pipeline/base/log.hpp"
#include "pipeline/base/redact.hpp"
#include "pipeline/base/utc_time.hpp"
#include "pipeline/output/replace_file.hpp"

namespace framelane {
namespace {

namespace fs = std::filesystem;
using std::chrono::milliseconds;
using std::chrono::system_clock;

/// Of a larger file, which is none of ours, the end is read.
constexpr off_t kMostFileBytes = 16 << 20;

class OpenFile {
 public:
  OpenFile(const std::string& path, int flags) : fd_(open(path.c_str(), flags | O_CLOEXEC, 0640)) {
    if (fd_ < 0) fail();
  }
  ~OpenFile() { close(fd_); }
  OpenFile(const OpenFile&) = delete;
  OpenFile& operator=(const OpenFile&) = delete;

  struct stat status() const {
    struct stat status {};
    if (fstat(fd_, &status) != 0) fail();
    return status;
  }
  /// At most `size` bytes.
  std::string read_from(off_t place, off_t most) const {
    std::string text(static_cast<std::size_t>(most), '\0');
    std::size_t size = 0;
    while (size < text.size()) {
      const ssize_t count =
          pread(fd_, text.data() + size, text.size() - size, place + static_cast<off_t>(size));
      if (count < 0 && errno == EINTR) continue;
      if (count < 0) fail();
      if (count == 0) break;
      size += static_cast<std::size_t>(count);
    }
    text.resize(size);
    return text;
  }
  void append(std::string_view text) const {
    while (!text.empty()) {
      const ssize_t count = write(fd_, text.data(), text.size());
      if (count < 0 && errno == EINTR) continue;
      if (count < 0) fail();
      text.remove_prefix(static_cast<std::size_t>(count));
    }
    futimens(fd_, nullptr);  // also if there was nothing to write
    fdatasync(fd_);
  }

 private:
  [[noreturn]] static void fail() { throw std::system_error(errno, std::generic_category()); }

  int fd_;
};

/// Why it failed; empty if it did not.
std::string write_lines(const std::string& path, const std::string& lines, bool rewrite) {
  try {
    if (rewrite) {
      fs::create_directories(fs::path(path).parent_path());
      replace_file(path, lines, OnDisk::kNow);
    } else {
      OpenFile(path, O_WRONLY | O_APPEND).append(lines);
    }
    return {};
  } catch (const std::exception& error) {
    return error.what();
  }
}

/// Times between the last that was seen and the next start are not known better than that.
std::string not_running_text(system_clock::time_point now) {
  return fmt::format("; then framelane was killed, or the machine failed, until {}", utc_time(now));
}

}  // namespace

std::string incident_path(const std::string& recorder_directory) {
  const char* const state = std::getenv("STATE_DIRECTORY");
  std::string folder = state != nullptr ? state : "";
  folder = folder.substr(0, folder.find(':'));
  if (folder.empty()) folder = recorder_directory;
  if (!folder.empty()) folder += "/incidents.jsonl";
  return folder;
}

IncidentFile::IncidentFile(std::string path, Incidents& incidents, milliseconds patience)
    : path_(std::move(path)), incidents_(incidents), patience_(patience) {}

IncidentFile::Contents IncidentFile::read(const std::string& path) {
  Contents contents;
  std::string text;
  try {
    const OpenFile file(path, O_RDONLY | O_NONBLOCK);
    const struct stat status = file.status();
    if (!S_ISREG(status.st_mode)) throw std::runtime_error("it is no file");
    contents.written = system_clock::from_time_t(status.st_mtim.tv_sec) +
                       std::chrono::duration_cast<system_clock::duration>(
                           std::chrono::nanoseconds(status.st_mtim.tv_nsec));
    const off_t most = std::min(status.st_size, kMostFileBytes);
    text = file.read_from(status.st_size - most, most);
  } catch (const std::system_error& error) {
    if (error.code() != std::errc::no_such_file_or_directory) contents.failure = error.what();
  } catch (const std::exception& error) {
    contents.failure = error.what();
  }
  std::map<std::uint64_t, Incident> incidents;
  for (std::string_view rest = text; !rest.empty();) {
    const std::size_t end = std::min(rest.find('\n'), rest.size());
    const std::string_view line = rest.substr(0, end);
    rest.remove_prefix(std::min(end + 1, rest.size()));
    if (line.empty()) continue;
    std::optional<Incident> incident = parse_incident(line);
    if (!incident) {
      ++contents.damaged;
      continue;
    }
    const auto id = incident->id;
    incidents.insert_or_assign(id, *std::move(incident));
  }
  for (auto& [id, incident] : incidents) contents.incidents.push_back(std::move(incident));
  return contents;
}

IncidentFile::Earlier IncidentFile::load(system_clock::time_point now) {
  Earlier earlier;
  if (path_.empty()) return earlier;
  std::optional<Contents> contents;
  try {
    reading_.begin([path = path_] { return read(path); });
    contents = reading_.wait_for(patience_);
  } catch (const std::system_error& error) {
    contents = Contents{.incidents = {}, .failure = error.what()};
  }
  if (!contents) reading_.abandon();
  if (!contents || !contents->failure.empty()) {
    log::warn(
        "{} cannot be read ({}): incidents are kept in memory alone, until framelane is started "
        "again",
        redact(path_), contents ? contents->failure : "the disk or file server does not answer");
    return earlier;
  }
  works_ = true;
  if (contents->damaged > 0) {
    log::warn("{}: {} damaged line{} left out", redact(path_), contents->damaged,
              contents->damaged == 1 ? " is" : "s are");
  }
  if (contents->written) earlier.seen = std::min(*contents->written, now);
  end_open(contents->incidents, earlier, now);
  incidents_.restore(contents->incidents);
  return earlier;
}

void IncidentFile::end_open(std::vector<Incident>& incidents, Earlier& earlier,
                            system_clock::time_point now) const {
  if (!earlier.seen) return;
  for (Incident& incident : incidents) {
    // Where the machine's clock was set back, an incident may have begun later than it is now.
    if (incident.begin <= now) earlier.seen = std::max(*earlier.seen, incident.begin);
    if (incident.end && *incident.end <= now) earlier.seen = std::max(*earlier.seen, *incident.end);
    if (incident.kind == IncidentKind::kStarted) earlier.was_stopped = false;
    if (incident.kind == IncidentKind::kStopped) earlier.was_stopped = true;
  }
  for (Incident& incident : incidents) {
    if (incident.end) continue;
    incident.end = std::max(*earlier.seen, incident.begin);
    incident.lasted = std::chrono::duration_cast<milliseconds>(*incident.end - incident.begin);
    incident.text += not_running_text(now);
  }
}

void IncidentFile::save(Clock::time_point now) {
  if (!works_) return;
  take_result({});
  if (writing_.begun()) {
    if (now - last_ >= kEvery) warn_once("the disk or file server does not answer");
    return;
  }
  const bool minute = now - last_ >= kEvery;
  const bool turned = incidents_.last_turn() > written_;
  // A disk that cannot be written is tried again after a minute.
  if (minute || (turned && !warned_)) begin(now);
}

void IncidentFile::begin(Clock::time_point now) {
  writing_to_ = written_;
  std::vector<Incident> changed = incidents_.changed_since(writing_to_);
  const bool rewrite = rewrites_ || lines_ + changed.size() > kMostLines;
  if (rewrite) changed = incidents_.since({});
  std::string text;
  for (const Incident& incident : changed) text += incident_json(incident) + "\n";
  writing_lines_ = (rewrite ? 0 : lines_) + changed.size();
  last_ = now;
  try {
    writing_.begin([path = path_, text = std::move(text), rewrite] {
      return write_lines(path, text, rewrite);
    });
  } catch (const std::system_error&) {
    // No thread can be started: next time.
  }
}

void IncidentFile::take_result(milliseconds time) {
  const auto failure = writing_.begun() ? writing_.wait_for(time) : std::nullopt;
  if (!failure) return;
  rewrites_ = !failure->empty();  // half a line may be there
  if (failure->empty()) {
    written_ = writing_to_;
    lines_ = writing_lines_;
    if (std::exchange(warned_, false)) log::info("{} is written again", redact(path_));
    return;
  }
  warn_once(*failure);
}

void IncidentFile::warn_once(const std::string& why) {
  if (std::exchange(warned_, true)) return;
  log::warn("{} cannot be written, and incidents are kept in memory alone until it can be: {}",
            redact(path_), redact(why));
}

void IncidentFile::finish(milliseconds time) {
  if (!works_) return;
  const auto until = Clock::now() + time;
  const auto left = [&] {
    return std::max(std::chrono::ceil<milliseconds>(until - Clock::now()), milliseconds(0));
  };
  take_result(left());
  if (!writing_.begun()) {
    begin(Clock::now());
    take_result(left());
  }
  writing_.abandon();
}

}  // namespace framelane
