#include "daemon/query.hpp"

#include <fmt/core.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <utility>

#include "pipeline/base/utc_time.hpp"

namespace framelane {
namespace {

RequestError wrong(const std::string& name, const std::string& why) {
  return {400, "wrong_parameter", name + ": " + why, name};
}

}  // namespace

RequestError no_such_feed(const std::string& name) {
  return {404, "no_such_feed", "no feed is named '" + name + "'", "feeds." + name};
}

FeedView require_feed(const Supervisor& supervisor, const std::string& name) {
  for (FeedView& feed : supervisor.feeds()) {
    if (feed.stats->feed() == name) return std::move(feed);
  }
  throw no_such_feed(name);
}

void require_known(const HttpRequest& request, std::initializer_list<std::string_view> names) {
  for (const auto& [name, value] : request.query) {
    if (std::ranges::find(names, name) != names.end()) continue;
    throw wrong(name, names.size() == 0 ? "is no parameter here, where there are none"
                                        : fmt::format("is no parameter here; there are: {}",
                                                      fmt::join(names, ", ")));
  }
}

std::int64_t number_in(const HttpRequest& request, const std::string& name, std::int64_t standard,
                       std::int64_t least, std::int64_t most) {
  const auto found = request.query.find(name);
  if (found == request.query.end()) return standard;
  const std::string& text = found->second;
  std::int64_t number = 0;
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, number);
  if (error != std::errc{} || stop != end || number < least || number > most) {
    throw wrong(name, fmt::format("must be a whole number from {} to {}", least, most));
  }
  return number;
}

std::optional<std::chrono::system_clock::time_point> time_in(const HttpRequest& request,
                                                             const std::string& name) {
  using namespace std::chrono;
  constexpr double kLatest = 7'258'118'400;  // the year 2200
  const auto found = request.query.find(name);
  if (found == request.query.end()) return std::nullopt;
  std::string text = found->second;
  double number = 0;
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, number, std::chars_format::fixed);
  if (error == std::errc{} && stop == end && number >= 0 && number < kLatest) {
    return system_clock::time_point(round<milliseconds>(duration<double>(number)));
  }
  // A '+' in a query stands for a space.
  if (const std::size_t space = text.find(' '); space != std::string::npos) text[space] = '+';
  if (const auto time = parse_utc_time(text)) return time;
  throw wrong(name, "must be a time such as 2026-01-02T03:04:05Z, or seconds since 1970");
}

std::string text_in(const HttpRequest& request, const std::string& name) {
  const auto found = request.query.find(name);
  return found != request.query.end() ? found->second : std::string();
}

}  // namespace framelane
