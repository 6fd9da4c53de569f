#include "daemon/fontconfig_log.hpp"

#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstdio>
#include <exception>
#include <set>
#include <string>
#include <string_view>

#include "pipeline/base/log.hpp"

namespace framelane {
namespace {

constexpr std::string_view kBegin = "Fontconfig ";

/// What helps where fontconfig complains so.
std::string_view remedy_for(std::string_view complaint) {
  const auto says = [&](std::string_view words) { return complaint.find(words) != words.npos; };
  if (says("default config file")) {
    return "the fonts of /usr/share/fonts are used; install its configuration (Debian: "
           "fontconfig-config), or correct FONTCONFIG_FILE";
  }
  if (says("cache directories")) {
    return "all fonts are read at every start, which takes long if they are many; run fc-cache -s "
           "as root when fonts are installed, or set XDG_CACHE_HOME to a folder that this user may "
           "write to";
  }
  return "check the files in /etc/fonts";
}

void pass_on(std::string_view text) {
  while (!text.empty()) {
    const ssize_t written = write(STDERR_FILENO, text.data(), text.size());
    if (written < 0 && errno != EINTR) return;
    if (written > 0) text.remove_prefix(static_cast<std::size_t>(written));
  }
}

/// Takes the stream's text as it is written, while the stream is locked.
class FontconfigLines {
 public:
  void take(std::string_view text) {
    if (line_.empty() && !text.starts_with(kBegin)) return pass_on(text);
    line_ += text;  // it comes in pieces
    for (std::size_t end = 0; (end = line_.find('\n')) != line_.npos; line_.erase(0, end + 1)) {
      say(line_.substr(0, end));
    }
  }

 private:
  void say(std::string line) {
    if (!line.starts_with(kBegin)) return pass_on(line + '\n');
    line.erase(0, kBegin.size());
    if (!said_.insert(line).second) return;
    log::warn("fontconfig: {}; {}", line, remedy_for(line));
  }

  std::string line_;  // that is not complete
  std::set<std::string> said_;
};

ssize_t write_through(void* lines, const char* text, std::size_t size) {
  try {
    static_cast<FontconfigLines*>(lines)->take({text, size});
  } catch (const std::exception&) {  // out of memory: nothing may be thrown through C code
  }
  return static_cast<ssize_t>(size);
}

}  // namespace

void take_over_fontconfig_log() {
  static FILE* const stream = [] {
    // Stays: what is written at the end of the process comes here too.
    static auto* const lines = new FontconfigLines;
    FILE* const opened = fopencookie(
        lines, "w", {.read = nullptr, .write = &write_through, .seek = nullptr, .close = nullptr});
    if (opened == nullptr) return opened;
    setvbuf(opened, nullptr, _IONBF, 0);
    stderr = opened;  // glibc's is a variable like any other
    return opened;
  }();
  static_cast<void>(stream);
}

}  // namespace framelane
