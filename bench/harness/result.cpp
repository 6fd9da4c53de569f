#include "bench/harness/result.hpp"

#include <algorithm>
#include <cassert>
#include <cmath>

namespace framelane::bench {
namespace {

const Parameter* find(const std::vector<Parameter>& parameters, std::string_view name) {
  const auto found = std::ranges::find(parameters, name, &Parameter::name);
  return found == parameters.end() ? nullptr : &*found;
}

}  // namespace

std::string to_string(const Parameter& parameter) {
  if (const auto* number = std::get_if<std::int64_t>(&parameter.value)) {
    return std::to_string(*number);
  }
  return std::get<std::string>(parameter.value);
}

const Parameter& parameter(const std::vector<Parameter>& parameters, std::string_view name) {
  const Parameter* found = find(parameters, name);
  assert(found != nullptr);
  return *found;
}

double percentile(std::vector<double> values, double share) {
  assert(!values.empty());
  std::ranges::sort(values);
  const double place = share * static_cast<double>(values.size() - 1);
  const auto below = static_cast<std::size_t>(place);
  const std::size_t above = std::min(below + 1, values.size() - 1);
  return std::lerp(values[below], values[above], place - static_cast<double>(below));
}

std::string Row::full_name() const {
  std::string text = name;
  for (const Parameter& parameter : parameters) {
    text += ", " + parameter.name + ' ' + to_string(parameter);
  }
  return text;
}

bool Row::is(std::string_view name_is, const std::vector<Parameter>& has) const {
  return name == name_is && std::ranges::all_of(has, [this](const Parameter& wanted) {
           const Parameter* found = find(parameters, wanted.name);
           return found != nullptr && found->value == wanted.value;
         });
}

std::optional<double> Row::median_of(std::string_view figure) const {
  const auto found = std::ranges::find(more, figure, &Figure::name);
  if (found == more.end() || found->samples.empty()) return std::nullopt;
  return bench::percentile(found->samples, 0.5);
}

const Row* Result::measured(std::string_view name, const std::vector<Parameter>& has) const {
  const auto found =
      std::ranges::find_if(rows, [&](const Row& row) { return row.counts() && row.is(name, has); });
  return found == rows.end() ? nullptr : &*found;
}

const Row* Result::fastest(std::string_view name, const std::vector<Parameter>& has) const {
  const Row* best = nullptr;
  for (const Row& row : rows) {
    if (!row.counts() || !row.is(name, has)) continue;
    if (best == nullptr || row.median() < best->median()) best = &row;
  }
  return best;
}

Series series_of(const Result& result, std::string title, std::string_view name,
                 const std::vector<Parameter>& has, std::string_view x) {
  Series series{std::move(title), {}, std::string(name)};
  for (const Row& row : result.rows) {
    if (!row.counts() || !row.is(name, has)) continue;
    const Parameter* at = find(row.parameters, x);
    const auto* number = at != nullptr ? std::get_if<std::int64_t>(&at->value) : nullptr;
    if (number == nullptr) continue;
    series.points.push_back(
        {static_cast<double>(*number), row.median(), row.percentile(0.1), row.percentile(0.9)});
  }
  std::ranges::sort(series.points, {}, &Point::x);
  return series;
}

const Point& fewest_of_the_best(const Series& series) {
  const double best = std::ranges::min(series.points, {}, &Point::y).y;
  return *std::ranges::find_if(series.points,
                               [best](const Point& point) { return point.y <= kSameTime * best; });
}

}  // namespace framelane::bench
