#include "daemon/format_watch.hpp"

#include <fmt/core.h>

#include <algorithm>

namespace framelane {

void FormatWatch::look(const std::string& format, Moment now) {
  if (!format.empty() && format != format_) {
    const std::string before = std::exchange(format_, format);
    if (before.empty()) return;
    if (id_ == 0 || now.steady - last_.steady >= kTogether) {
      end();
      first_ = now;
      before_ = before;
    }
    last_ = now;
    ++changes_;
  }
  const bool due = told_changes_ == 0 || now.steady - told_ >= kTold;
  if (changes_ > told_changes_ && due) tell(now);
}

void FormatWatch::tell(Moment now) {
  Incident incident = subject_;
  incident.id = id_;
  incident.begin = first_.wall;
  incident.end = std::max(first_.wall, last_.wall);
  incident.lasted =
      std::chrono::duration_cast<std::chrono::milliseconds>(last_.steady - first_.steady);
  if (changes_ == 1) {
    incident.text = fmt::format("the source sends {}, and no longer {}", format_, before_);
  } else {
    incident.text =
        fmt::format("the source's format changed {} times in {}: it sends {}, and first sent {}",
                    changes_, duration_text(incident.lasted), format_, before_);
  }
  told_ = now.steady;
  told_changes_ = changes_;
  incidents_.put(incident);
  id_ = incident.id;
}

void FormatWatch::end() {
  if (changes_ > told_changes_) tell(last_);
  changes_ = told_changes_ = 0;
  id_ = 0;
}

}  // namespace framelane
