#include "pipeline/av/av_log_capture.hpp"

#include <cassert>

namespace framelane {
namespace {

thread_local AvLogCapture* t_current = nullptr;

}  // namespace

AvLogCapture::AvLogCapture() {
  assert(t_current == nullptr);
  t_current = this;
}

AvLogCapture::~AvLogCapture() { t_current = nullptr; }

std::string AvLogCapture::reason(const std::string& otherwise) const {
  return last_.empty() ? otherwise : last_;
}

std::string AvLogCapture::first() { return t_current == nullptr ? "" : t_current->first_; }

bool AvLogCapture::take(std::string_view line) {
  if (t_current == nullptr) return false;
  // There may be several prefixes: "[libx264 @ 0x…] [Eval @ 0x…] text".
  while (line.starts_with('[')) {
    const std::size_t end = line.find("] ");
    if (end == std::string_view::npos) break;
    line.remove_prefix(end + 2);
  }
  while (line.ends_with('.') || line.ends_with(' ')) line.remove_suffix(1);
  if (line.empty()) return true;
  if (t_current->first_.empty()) t_current->first_ = line;
  t_current->last_ = line;
  return true;
}

}  // namespace framelane
