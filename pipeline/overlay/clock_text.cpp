#include "pipeline/overlay/clock_text.hpp"

#include <string_view>
#include <utility>

namespace framelane {
namespace {

// glibc's, without the modifiers E, O and of padding.
constexpr std::string_view kFields = "aAbBcCdDeFgGhHIjklmMpPrRsSTuUVwWxXyYzZ%";
constexpr std::size_t kLongestField = 64;

}  // namespace

ClockText::ClockText(std::string pattern)
    : pattern_(std::move(pattern)), changes_(pattern_.find('%') != std::string::npos) {
  if (!changes_) text_ = pattern_;
}

const std::string& ClockText::at(std::chrono::system_clock::time_point time) {
  if (!changes_) return text_;
  const std::time_t second = std::chrono::system_clock::to_time_t(time);
  if (second == second_) return text_;
  second_ = second;
  std::tm local{};
  localtime_r(&second, &local);
  // A dot is appended, so that an empty result means that the buffer was too small.
  std::string text(pattern_.size() * kLongestField + 1, '\0');
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
  text.resize(std::strftime(text.data(), text.size(), (pattern_ + '.').c_str(), &local));
#pragma GCC diagnostic pop
  if (!text.empty()) text.pop_back();
  text_ = std::move(text);
  return text_;
}

std::optional<std::string> ClockText::why_not(const std::string& pattern) {
  for (std::size_t i = pattern.find('%'); i != std::string::npos; i = pattern.find('%', i + 2)) {
    if (i + 1 == pattern.size()) return "ends in a single %; write %% for a percent sign";
    if (kFields.find(pattern[i + 1]) != std::string_view::npos) continue;
    return "has %" + pattern.substr(i + 1, 1) +
           ", which is none of the fields that a text may have; write %% for a percent sign, and "
           "see "
           "docs/configuration.md, Overlays, for the fields";
  }
  return std::nullopt;
}

}  // namespace framelane
