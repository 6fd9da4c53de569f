#include "pipeline/base/utc_time.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdio>
#include <ctime>

namespace framelane {

std::string utc_time(std::chrono::system_clock::time_point time) {
  const auto whole = std::chrono::floor<std::chrono::seconds>(time);
  const auto millis = std::chrono::floor<std::chrono::milliseconds>(time - whole).count();
  const std::time_t seconds = std::chrono::system_clock::to_time_t(whole);
  std::tm utc{};
  gmtime_r(&seconds, &utc);
  std::array<char, 32> date{};
  const std::size_t length = std::strftime(date.data(), date.size(), "%Y-%m-%dT%H:%M:%S", &utc);
  std::array<char, 8> fraction{};
  std::snprintf(fraction.data(), fraction.size(), ".%03dZ", static_cast<int>(millis));
  return std::string(date.data(), length) + fraction.data();
}

std::optional<std::chrono::system_clock::time_point> parse_utc_time(std::string_view text) {
  using namespace std::chrono;
  // The next so many digits, and the character behind them, if there is to be one.
  const auto number = [&text](std::size_t digits, std::string_view behind) {
    int value = -1;
    const char* const end = text.data() + std::min(digits, text.size());
    const bool starts = !text.empty() && text.front() >= '0' && text.front() <= '9';
    const bool whole = starts && std::from_chars(text.data(), end, value).ptr == end;
    if (!whole || text.size() < digits + behind.size()) return -1;
    text.remove_prefix(digits);
    if (behind.empty()) return value;
    if (behind.find(text.front()) == std::string_view::npos) return -1;
    text.remove_prefix(1);
    return value;
  };
  const int y = number(4, "-");
  const int m = number(2, "-");
  const int d = number(2, "Tt");
  const int hour = number(2, ":");
  const int minute = number(2, ":");
  const int second = number(2, "");
  const year_month_day date{year(y), month(static_cast<unsigned>(m)),
                            day(static_cast<unsigned>(d))};
  if (y < 1970 || y > 2199 || m < 0 || d < 0 || !date.ok()) return std::nullopt;
  // A leap second counts as the one after it.
  if (hour < 0 || hour > 23 || minute < 0 || minute > 59 || second < 0 || second > 60) {
    return std::nullopt;
  }
  milliseconds time = hours(hour) + minutes(minute) + seconds(second);
  if (!text.empty() && text.front() == '.') {
    text.remove_prefix(1);
    milliseconds unit(100);
    if (text.empty() || text.front() < '0' || text.front() > '9') return std::nullopt;
    for (; !text.empty() && text.front() >= '0' && text.front() <= '9'; unit /= 10) {
      time += (text.front() - '0') * unit;
      text.remove_prefix(1);
    }
  }
  if (text.empty()) return std::nullopt;
  const char zone = text.front();
  text.remove_prefix(1);
  if (zone == '+' || zone == '-') {
    const int hours_off = number(2, ":");
    const int minutes_off = number(2, "");
    if (hours_off < 0 || hours_off > 23 || minutes_off < 0 || minutes_off > 59) return std::nullopt;
    const minutes off = hours(hours_off) + minutes(minutes_off);
    time -= zone == '+' ? off : -off;
  } else if (zone != 'Z' && zone != 'z') {
    return std::nullopt;
  }
  if (!text.empty()) return std::nullopt;
  return system_clock::time_point(sys_days(date)) + time;
}

}  // namespace framelane
