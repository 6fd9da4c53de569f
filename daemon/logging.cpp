#include "daemon/logging.hpp"

#include <dlfcn.h>
#include <poll.h>
#include <spdlog/sinks/sink.h>
#include <spdlog/spdlog.h>
#include <sys/stat.h>
#include <unistd.h>

extern "C" {
#include <libavutil/log.h>
}

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <climits>
#include <cstdarg>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <mutex>
#include <string>

#include "daemon/fontconfig_log.hpp"
#include "daemon/journal_socket.hpp"
#include "daemon/log_line.hpp"
#include "pipeline/av/av_log_capture.hpp"
#include "pipeline/base/log.hpp"
#include "pipeline/base/rate_limiter.hpp"
#include "pipeline/base/redact.hpp"

namespace framelane {
namespace {

constexpr std::chrono::seconds kRepeatWindow{60};

/// Writes the line. If stderr is a pipe that nobody reads, the rest of the line is lost after 100
/// ms: an unread log must not stop the daemon. A pipe that poll() calls writable takes PIPE_BUF
/// bytes without blocking.
void write_stderr(std::string_view line) {
  while (!line.empty()) {
    pollfd writable{STDERR_FILENO, POLLOUT, 0};
    if (poll(&writable, 1, 100) <= 0) return;
    const ssize_t written =
        ::write(STDERR_FILENO, line.data(), std::min<std::size_t>(line.size(), PIPE_BUF));
    if (written >= 0) {
      line.remove_prefix(static_cast<std::size_t>(written));
    } else if (errno != EINTR && errno != EAGAIN) {
      return;
    }
  }
}

LogLevel from_spdlog(spdlog::level::level_enum level) {
  switch (level) {
    case spdlog::level::trace:
      return LogLevel::kTrace;
    case spdlog::level::debug:
      return LogLevel::kDebug;
    case spdlog::level::info:
      return LogLevel::kInfo;
    case spdlog::level::warn:
      return LogLevel::kWarn;
    default:
      return LogLevel::kError;
  }
}

spdlog::level::level_enum to_spdlog(LogLevel level) {
  constexpr std::array kLevels{spdlog::level::trace, spdlog::level::debug, spdlog::level::info,
                               spdlog::level::warn, spdlog::level::err};
  return kLevels[static_cast<std::size_t>(level)];
}

/// Takes lines from any thread and writes each as a whole. Repeats of the libraries' lines are only
/// summed up. Calls nothing that logs, so that no other lock is taken while its own is held.
class StderrSink : public spdlog::sinks::sink {
 public:
  void log(const spdlog::details::log_msg& message) override {
    const std::lock_guard lock(mutex_);
    write_ended_repeats();
    write({.level = from_spdlog(message.level),
           .time = message.time,
           .message = {message.payload.data(), message.payload.size()},
           .fault = log::present_fault()});
  }

  void log_library(std::uint64_t key, LogLevel level, std::string_view line) {
    const std::lock_guard lock(mutex_);
    write_ended_repeats();
    if (repeats_.admit(key, static_cast<int>(level), line, RateLimiter::Clock::now())) {
      write({.level = level, .time = std::chrono::system_clock::now(), .message = line});
    }
  }

  void set_style(LogStyle style) { style_ = style; }
  void flush() override {}
  void set_pattern(const std::string&) override {}
  void set_formatter(std::unique_ptr<spdlog::formatter>) override {}

 private:
  void write(const LogLine& line) {
    // journald learns a record's unit from the process, which may have ended by then; of stderr it
    // knows the unit. So what a process says that does not even start goes to stderr.
    if (style_ == LogStyle::kJournal) {
      const std::string record = journal_record(line);
      if (!record.empty() && journal_.send(record)) return;
    }
    write_stderr(format_log_line(style_, line));
  }

  void write_ended_repeats() {
    for (const auto& repeats : repeats_.take_ended(RateLimiter::Clock::now())) {
      const auto seconds = std::chrono::round<std::chrono::seconds>(repeats.span).count();
      const std::string text =
          fmt::format("{} (repeated {} times in {} s)", repeats.line, repeats.times, seconds);
      write({.level = static_cast<LogLevel>(repeats.tag),
             .time = std::chrono::system_clock::now(),
             .message = text});
    }
  }

  std::mutex mutex_;
  std::atomic<LogStyle> style_{LogStyle::kPlain};
  JournalSocket journal_;
  RateLimiter repeats_{kRepeatWindow};
};

/// Never destroyed: an abandoned thread may still log while the process exits.
struct Log {
  std::shared_ptr<StderrSink> sink = std::make_shared<StderrSink>();
  std::shared_ptr<spdlog::logger> logger = std::make_shared<spdlog::logger>("framelane", sink);
};
Log& the_log() {
  static Log& instance = *new Log;
  return instance;
}

/// One level lower than FFmpeg's: cameras cause what FFmpeg calls errors every day, and its
/// warnings help only somebody who looks for a fault.
LogLevel level_of(int av_level) {
  if (av_level <= AV_LOG_FATAL) return LogLevel::kError;
  if (av_level <= AV_LOG_ERROR) return LogLevel::kWarn;
  if (av_level <= AV_LOG_INFO) return LogLevel::kDebug;
  return LogLevel::kTrace;
}

/// What FFmpeg hands over. Its errors always, even if they are not to be written: AvLogCapture puts
/// them into our own messages.
int av_level_for(LogLevel level) {
  switch (level) {
    case LogLevel::kTrace:
      return AV_LOG_DEBUG;
    case LogLevel::kDebug:
      return AV_LOG_INFO;
    default:
      return AV_LOG_ERROR;
  }
}

/// A hash (FNV-1a) of a line without its numbers, and of the class of the component that logs it.
/// Lines with the same key are repeats. The component's address is left out, because every
/// connection to a camera makes new components.
std::uint64_t repeat_key(const void* context, std::string_view line) {
  std::uint64_t hash = 14695981039346656037u;
  const auto add = [&hash](char c) {
    hash = (hash ^ static_cast<unsigned char>(c)) * 1099511628211u;
  };
  const AVClass* const kind =
      context != nullptr ? *static_cast<const AVClass* const*>(context) : nullptr;
  if (kind != nullptr) std::ranges::for_each(std::string_view(kind->class_name), add);
  while (!line.empty()) {
    const bool hexadecimal = line.starts_with("0x");
    const char* const digits = hexadecimal ? "0123456789abcdefx" : "0123456789";
    const std::size_t number = std::min(line.find_first_not_of(digits), line.size());
    add(number > 0 ? '#' : line.front());
    line.remove_prefix(std::max<std::size_t>(number, 1));
  }
  return hash;
}

/// The beginning of a line that a thread of FFmpeg logs in parts.
struct PartialLine {
  std::array<char, 2048> text;
  std::size_t length;
  int level;
  int print_prefix;
};

/// The line whose last part does not fit into `part`, without its secrets and cut. A secret that is
/// cut before it is looked for would be shown in part. `length` and `print_prefix` are those of
/// `part` before that last part, which has `needed` characters.
std::string cut_line(const PartialLine& part, std::size_t length, int print_prefix, int needed,
                     void* context, int av_level, const char* format, va_list arguments) {
  std::string line(part.text.data(), length);
  line.resize(length + static_cast<std::size_t>(needed) + 1);
  av_log_format_line2(context, av_level, format, arguments, line.data() + length, needed + 1,
                      &print_prefix);
  line = redact(line.c_str());
  return line.substr(0, part.text.size());
}

/// `again`: a copy of `arguments`.
void take_av_log(void* context, int av_level, const char* format, va_list arguments,
                 va_list again) {
  // Plain data, so that no thread needs an allocation or a destructor for it.
  static thread_local PartialLine part{{}, 0, AV_LOG_TRACE, 1};
  constexpr std::string_view kPrefix = "ffmpeg: ";
  if (part.length == 0) {
    std::copy(kPrefix.begin(), kPrefix.end(), part.text.begin());
    part.length = kPrefix.size();
    part.level = av_level;
  }
  part.level = std::min(part.level, av_level);
  const std::size_t begin = part.length;
  const std::size_t room = part.text.size() - begin;
  const int print_prefix = part.print_prefix;
  const int needed =
      av_log_format_line2(context, av_level, format, arguments, part.text.data() + begin,
                          static_cast<int>(room), &part.print_prefix);
  if (needed > 0) part.length += std::min(static_cast<std::size_t>(needed), room - 1);

  std::string_view line(part.text.data(), part.length);
  const bool complete = line.back() == '\n' || line.back() == '\r';
  if (!complete && part.length + 1 < part.text.size()) return;
  part.length = 0;
  try {
    std::string cut;
    if (needed > 0 && static_cast<std::size_t>(needed) >= room) {
      cut = cut_line(part, begin, print_prefix, needed, context, av_level, format, again);
      line = cut;
    }
    while (line.ends_with('\n') || line.ends_with('\r')) line.remove_suffix(1);
    if (line.size() <= kPrefix.size()) return;
    if (part.level <= AV_LOG_ERROR && AvLogCapture::take(line.substr(kPrefix.size()))) return;
    const LogLevel level = level_of(part.level);
    if (!the_log().logger->should_log(to_spdlog(level))) return;
    the_log().sink->log_library(repeat_key(context, line), level, line);
  } catch (...) {  // out of memory: the line is lost, since nothing may be thrown through C code
  }
}

void on_av_log(void* context, int av_level, const char* format, va_list arguments) {
  av_level &= 0xff;  // the other bits are a colour
  if (av_level > av_log_get_level()) return;
  va_list again;
  va_copy(again, arguments);
  take_av_log(context, av_level, format, arguments, again);
  va_end(again);
}

void on_srt_log(void* /*opaque*/, int severity, const char* /*file*/, int /*line*/,
                const char* area, const char* message) {
  constexpr int kSyslogError = 3;
  const LogLevel level = severity <= kSyslogError ? LogLevel::kWarn : LogLevel::kDebug;
  if (!the_log().logger->should_log(to_spdlog(level))) return;
  try {
    const std::string line = fmt::format("srt: {}: {}", area, message);
    the_log().sink->log_library(repeat_key(nullptr, line), level, line);
  } catch (...) {  // as in on_av_log()
  }
}

/// libsrt, which FFmpeg may be linked to, has a log of its own, and writes errors to stderr.
void take_over_srt_log() {
  using Handler = void(void*, int, const char*, int, const char*, const char*);
  constexpr int kMessageAlone = 15;  // without time, thread, severity and end of line
  auto* const set_flags = reinterpret_cast<void (*)(int)>(dlsym(RTLD_DEFAULT, "srt_setlogflags"));
  auto* const set_handler =
      reinterpret_cast<void (*)(void*, Handler*)>(dlsym(RTLD_DEFAULT, "srt_setloghandler"));
  if (set_flags == nullptr || set_handler == nullptr) return;
  set_flags(kMessageAlone);
  set_handler(nullptr, on_srt_log);
}

/// journald sets JOURNAL_STREAM to the device and the inode of the stream that it reads.
bool stderr_goes_to_journal() {
  const char* stream = std::getenv("JOURNAL_STREAM");
  struct stat status {};
  if (stream == nullptr || fstat(STDERR_FILENO, &status) != 0) return false;
  return fmt::format("{}:{}", status.st_dev, status.st_ino) == stream;
}

}  // namespace

void set_up_logging(const LogConfig& config) {
  Log& log = the_log();
  const bool first = spdlog::default_logger() != log.logger;
  if (config.format == LogFormat::kJson) {
    log.sink->set_style(LogStyle::kJson);
  } else {
    log.sink->set_style(stderr_goes_to_journal() ? LogStyle::kJournal : LogStyle::kPlain);
  }
  log.logger->set_level(to_spdlog(config.level));
  if (first) spdlog::set_default_logger(log.logger);
  av_log_set_level(av_level_for(config.level));
  if (!first) return;
  av_log_set_callback(on_av_log);
  take_over_srt_log();
  take_over_fontconfig_log();
}

}  // namespace framelane
