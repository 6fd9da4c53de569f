// The results of a suite, before they are printed. No threads, no clocks.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace framelane::bench {

/// Times that differ by a smaller factor count as equal.
inline constexpr double kSameTime = 1.02;

struct Parameter {
  std::string name;
  std::variant<std::int64_t, std::string> value;
};
std::string to_string(const Parameter& parameter);  ///< the value alone
/// The one of this name, which has to be there.
const Parameter& parameter(const std::vector<Parameter>& parameters, std::string_view name);

/// Whether the result of the work was right.
enum class Checked { kNothing, kRight, kWrong };  // kNothing: the work gives nothing to compare

/// The value below which `share` (0..1) of the values are, interpolated linearly. Requires values.
double percentile(std::vector<double> values, double share);

/// A further figure of a contender, beside its time.
struct Figure {
  std::string name;
  std::string unit;                  ///< empty: a ratio
  std::vector<double> samples = {};  ///< empty: not measured
};

/// One contender and what was measured of it, over all rounds.
struct Row {
  std::string name;
  std::vector<Parameter> parameters = {};
  double bytes = 0;  ///< that the work moves in a sample's time, which is in ms; 0: no rate
  std::string note = {};
  Checked checked = Checked::kNothing;
  std::string unit = "ms";
  std::vector<double> samples = {};  ///< in `unit`; empty: not measured
  std::vector<Figure> more = {};

  /// Requires samples.
  double percentile(double share) const { return bench::percentile(samples, share); }
  double median() const { return percentile(0.5); }
  /// In GB/s, by the median time. Requires samples and bytes.
  double rate() const { return bytes / (median() * 1e6); }
  /// With its parameters: "GPU, sliced, formula exact, streams 2".
  std::string full_name() const;
  bool is(std::string_view name_is, const std::vector<Parameter>& has = {}) const;
  /// Whether it was measured and never wrong.
  bool counts() const { return !samples.empty() && checked != Checked::kWrong; }
  /// Of `more`: the median of that figure, or nothing where it was not measured.
  std::optional<double> median_of(std::string_view figure) const;
};

/// A figure that somebody else has published for the same experiment.
struct Published {
  std::string name;
  double value;
  std::string unit;
  /// The fastest row of this name and parameters is shown beside it. Empty: none is.
  std::string row = {};
  std::vector<Parameter> parameters = {};
};

struct Point {
  double x, y;
  double low, high;  ///< p10 and p90
};
struct Series {
  std::string name;
  std::vector<Point> points;  ///< by x
  std::string rows = {};      ///< whose points they are: a Row's name
};
/// A line across the chart.
struct Level {
  std::string name;
  double y;
};
struct Chart {
  std::string title;
  std::string x_title, y_title;
  bool log_x = false;
  std::vector<Series> series;
  std::vector<Level> levels;
};

struct Result {
  std::string suite;
  std::string title;
  std::vector<Parameter> setup;  ///< sizes and machine
  std::vector<Row> rows;
  std::string published_by;  ///< the machine, and where
  std::vector<Published> published;
  std::vector<std::string> left_out;  ///< "WHAT: WHY"
  std::vector<std::string> verdict;   ///< sentences
  std::vector<Chart> charts;
  /// Why the suite has failed: what was wrong and where, or what was missing. Empty: it has not
  /// failed.
  std::vector<std::string> problems;
  bool interrupted = false;

  /// The first such row that counts, or null.
  const Row* measured(std::string_view name, const std::vector<Parameter>& has = {}) const;
  /// The fastest of these rows that count, or null.
  const Row* fastest(std::string_view name, const std::vector<Parameter>& has = {}) const;
};

/// The rows of that name that count, as points over the parameter `x`. Rows in which `x` is no
/// number are left out.
Series series_of(const Result& result, std::string title, std::string_view name,
                 const std::vector<Parameter>& has, std::string_view x);

/// The point with the smallest x among those that are within 2 % of the best. Requires points.
const Point& fewest_of_the_best(const Series& series);

}  // namespace framelane::bench
