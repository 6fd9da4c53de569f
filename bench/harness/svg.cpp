// Line charts as SVG: axes with ticks, a line with markers and p10-p90 bars per series, dashed
// levels, a legend; and bars for what is in no chart. No script and no font of its own.
#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <iterator>

#include "bench/harness/report.hpp"

namespace framelane::bench {
namespace {

constexpr double kWidth = 860, kHeight = 440;
constexpr double kLeft = 70, kRight = 250, kTop = 40,
                 kBottom = 56;  // margins; the legend's is right
constexpr double kPlotWidth = kWidth - kLeft - kRight, kPlotHeight = kHeight - kTop - kBottom;
constexpr double kBarStep = 20;
// Okabe and Ito's palette, which colour-blind people can tell apart.
constexpr std::array kColors{"#0072B2", "#D55E00", "#009E73", "#CC79A7",
                             "#56B4E9", "#E69F00", "#000000", "#999933"};

std::string escaped(std::string_view text) {
  std::string result;
  for (const char c : text) {
    switch (c) {
      case '&':
        result += "&amp;";
        break;
      case '<':
        result += "&lt;";
        break;
      case '>':
        result += "&gt;";
        break;
      case '"':
        result += "&quot;";
        break;
      default:
        result += c;
    }
  }
  return result;
}

/// "64k", "32M", "1.5": with a binary unit if the value is a whole number of it.
std::string tick_text(double value) {
  for (const auto& [unit, name] : {std::pair(1048576.0, "M"), std::pair(1024.0, "k")}) {
    if (value >= unit && std::fmod(value, unit) == 0)
      return fmt::format("{:g}{}", value / unit, name);
  }
  return fmt::format("{:g}", value);
}

/// A step of 1, 2 or 5 times a power of ten that gives at most eight ticks up to `highest`.
double tick_step(double highest) {
  const double power = std::pow(10, std::floor(std::log10(highest / 8)));
  for (const double factor : {1.0, 2.0, 5.0}) {
    if (highest / (factor * power) <= 8) return factor * power;
  }
  return 10 * power;
}

/// Where the values of a chart lie in the picture. y begins at 0: heights can be compared.
class Scale {
 public:
  explicit Scale(const Chart& chart) : log_x_(chart.log_x) {
    bool first = true;
    for (const Series& series : chart.series) {
      for (const Point& point : series.points) {
        const double x = along(point.x);
        low_ = first ? x : std::min(low_, x);
        high_ = first ? x : std::max(high_, x);
        first = false;
        top_ = std::max(top_, point.high);
      }
    }
    for (const Level& level : chart.levels) top_ = std::max(top_, level.y);
    if (top_ <= 0) top_ = 1;
    if (high_ <= low_) high_ = low_ + 1;
    step_ = tick_step(top_);
    top_ = std::ceil(top_ / step_) * step_;
  }

  double x(double value) const {
    return kLeft + kPlotWidth * (0.03 + 0.94 * (along(value) - low_) / (high_ - low_));
  }
  double y(double value) const { return kTop + kPlotHeight * (1 - value / top_); }
  double y_step() const { return step_; }
  double y_top() const { return top_; }

 private:
  double along(double value) const { return log_x_ ? std::log2(value) : value; }

  bool log_x_;
  double low_ = 0, high_ = 1, top_ = 0, step_ = 1;
};

std::string text_at(double x, double y, const char* anchor, std::string_view text,
                    const char* more = "") {
  return fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"{}\"{}>{}</text>\n", x, y,
                     anchor, more, escaped(text));
}
std::string line_at(double x1, double y1, double x2, double y2, const char* stroke,
                    const char* more = "") {
  return fmt::format(
      "<line x1=\"{:.1f}\" y1=\"{:.1f}\" x2=\"{:.1f}\" y2=\"{:.1f}\" stroke=\"{}\"{}/>\n", x1, y1,
      x2, y2, stroke, more);
}

std::string axes(const Chart& chart, const Scale& scale) {
  std::string svg;
  const auto ticks = static_cast<int>(std::lround(scale.y_top() / scale.y_step()));
  for (int i = 0; i <= ticks; ++i) {
    const double value = i * scale.y_step();
    svg += line_at(kLeft, scale.y(value), kLeft + kPlotWidth, scale.y(value), "#dddddd");
    svg += text_at(kLeft - 8, scale.y(value) + 4, "end", fmt::format("{:g}", value));
  }
  std::vector<double> xs;
  for (const Series& series : chart.series) {
    for (const Point& point : series.points) xs.push_back(point.x);
  }
  std::ranges::sort(xs);
  double last = -1e9;
  for (const double x : xs) {
    if (scale.x(x) - last < 26) continue;  // the numbers would run into each other
    last = scale.x(x);
    svg += line_at(last, kTop + kPlotHeight, last, kTop + kPlotHeight + 5, "#333333");
    svg += text_at(last, kTop + kPlotHeight + 20, "middle", tick_text(x));
  }
  svg += line_at(kLeft, kTop, kLeft, kTop + kPlotHeight, "#333333");
  svg += line_at(kLeft, kTop + kPlotHeight, kLeft + kPlotWidth, kTop + kPlotHeight, "#333333");
  svg += text_at(kLeft + kPlotWidth / 2, kHeight - 14, "middle", chart.x_title);
  svg += fmt::format("<g transform=\"translate(18 {:.1f}) rotate(-90)\">{}</g>\n",
                     kTop + kPlotHeight / 2, text_at(0, 0, "middle", chart.y_title));
  svg += text_at(kLeft, 22, "start", chart.title, " font-size=\"15\"");
  return svg;
}

/// The n-th line of the legend; `dash` as in the plot.
std::string legend_line(std::size_t n, const char* color, std::string_view name, const char* dash) {
  const double y = kTop + 10 + 20 * static_cast<double>(n);
  const double x = kLeft + kPlotWidth + 16;
  return line_at(x, y, x + 24, y, color, dash) + text_at(x + 32, y + 4, "start", name);
}

std::string draw(const Chart& chart) {
  const Scale scale(chart);
  std::string svg = axes(chart, scale);
  std::size_t entry = 0;
  for (const Series& series : chart.series) {
    const char* color = kColors[entry % kColors.size()];
    std::string path;
    for (const Point& point : series.points) {
      const double x = scale.x(point.x);
      path += fmt::format("{:.1f},{:.1f} ", x, scale.y(point.y));
      svg +=
          line_at(x, scale.y(point.low), x, scale.y(point.high), color, " stroke-opacity=\"0.5\"");
      svg += fmt::format("<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"3\" fill=\"{}\"/>\n", x,
                         scale.y(point.y), color);
    }
    svg +=
        fmt::format("<polyline points=\"{}\" fill=\"none\" stroke=\"{}\" stroke-width=\"1.8\"/>\n",
                    path, color);
    svg += legend_line(entry++, color, series.name, " stroke-width=\"1.8\"");
  }
  constexpr const char* kDash = " stroke-dasharray=\"6 4\"";
  for (const Level& level : chart.levels) {
    const char* color = kColors[entry % kColors.size()];
    svg += line_at(kLeft, scale.y(level.y), kLeft + kPlotWidth, scale.y(level.y), color, kDash);
    svg += legend_line(entry++, color, level.name, kDash);
  }
  return svg;
}

/// The rows that no chart of the suite shows.
std::vector<Row> rows_without_chart(const Result& result) {
  std::vector<Row> rows;
  std::ranges::copy_if(result.rows, std::back_inserter(rows), [&](const Row& row) {
    return row.counts() && std::ranges::none_of(result.charts, [&](const Chart& chart) {
             return std::ranges::find(chart.series, row.name, &Series::rows) != chart.series.end();
           });
  });
  return rows;
}

/// A drawing and its size.
struct Drawing {
  std::string svg;
  double width, height;
};

/// A bar for each row; all rows have the same unit. Logarithmic if most bars would be too short to
/// be seen.
Drawing draw_bars(const std::string& title, const std::vector<Row>& rows) {
  constexpr double kLetter = 6.8;  // the widest that a font's letters are on average
  constexpr double kBars = 440, kNumbers = 150, kGap = 8;
  constexpr double kVeryDifferent = 200;
  double names = 0;
  double top = 0;
  double least = rows.front().median();
  for (const Row& row : rows) {
    names = std::max(names, kLetter * static_cast<double>(row.full_name().size()) + 2 * kGap);
    top = std::max(top, row.percentile(0.9));
    least = std::min({least, row.median(), row.percentile(0.1)});
  }
  const bool logarithmic = least > 0 && top > kVeryDifferent * least;
  const auto length = [=](double value) {
    if (top <= 0) return 0.0;
    if (!logarithmic) return kBars * value / top;
    const double begin = least / 2;
    return kBars * std::log(value / begin) / std::log(top / begin);
  };
  std::string svg =
      text_at(20, 22, "start", title + (logarithmic ? " (logarithmic)" : ""), " font-size=\"15\"");
  double y = kTop;
  for (const Row& row : rows) {
    const double end = names + length(row.percentile(0.9));
    svg += text_at(names - kGap, y + 14, "end", row.full_name());
    svg += fmt::format(
        "<rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"14\" fill=\"{}\"/>\n", names,
        y + 3, length(row.median()), kColors[0]);
    svg += line_at(names + length(row.percentile(0.1)), y + 10, end, y + 10, kColors[1]);
    svg += text_at(end + kGap, y + 14, "start", number(row.median()) + ' ' + row.unit);
    y += kBarStep;
  }
  return {std::move(svg), names + kBars + kNumbers, y + 10};
}

}  // namespace

std::string as_svg(std::span<const Result> results) {
  std::string charts;
  double width = kWidth;
  double height = 0;
  const auto add = [&](const Drawing& drawing) {
    charts += fmt::format("<g transform=\"translate(0 {})\">\n{}</g>\n", height, drawing.svg);
    width = std::max(width, drawing.width);
    height += drawing.height;
  };
  for (const Result& result : results) {
    for (const Chart& chart : result.charts) add({draw(chart), kWidth, kHeight});
    const std::vector<Row> rows = rows_without_chart(result);
    if (!rows.empty()) add(draw_bars(result.title, rows));
  }
  return fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0}\" height=\"{1}\" viewBox=\"0 0 {0} "
      "{1}\" "
      "font-family=\"sans-serif\" font-size=\"12\">\n<rect width=\"{0}\" height=\"{1}\" "
      "fill=\"#ffffff\"/>\n{2}</svg>\n",
      width, std::max(height, kTop), charts);
}

}  // namespace framelane::bench
