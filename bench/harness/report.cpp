#include "bench/harness/report.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <utility>

namespace framelane::bench {
namespace {

using Json = nlohmann::ordered_json;
using Cells = std::vector<std::string>;

std::string word_of(Checked checked) {
  switch (checked) {
    case Checked::kRight:
      return "yes";
    case Checked::kWrong:
      return "WRONG";
    case Checked::kNothing:
      break;
  }
  return "-";
}

bool has_rate(const Row& row) { return row.bytes > 0; }

std::string title_of(const Figure& figure) {
  return figure.unit.empty() ? figure.name : fmt::format("{} [{}]", figure.name, figure.unit);
}

/// The names of all rows' parameters, in order of appearance.
Cells parameter_names(const Result& result) {
  Cells names;
  for (const Row& row : result.rows) {
    for (const Parameter& parameter : row.parameters) {
      if (std::ranges::find(names, parameter.name) == names.end()) names.push_back(parameter.name);
    }
  }
  return names;
}

/// The names of all rows' figures, with their units.
Cells figure_titles(const Result& result) {
  Cells titles;
  for (const Row& row : result.rows) {
    for (const Figure& figure : row.more) {
      const std::string title = title_of(figure);
      if (std::ranges::find(titles, title) == titles.end()) titles.push_back(title);
    }
  }
  return titles;
}

std::string figure_of(const Row& row, const std::string& title) {
  const auto found = std::ranges::find(row.more, title, title_of);
  if (found == row.more.end() || found->samples.empty()) return "";
  return number(percentile(found->samples, 0.5));
}

std::string value_of(const Row& row, const std::string& name) {
  const auto found = std::ranges::find(row.parameters, name, &Parameter::name);
  return found == row.parameters.end() ? "" : to_string(*found);
}

/// Makes columns as wide as their content. The first `left` columns and the last are text, aligned
/// left.
std::string table_of(const std::vector<Cells>& lines, std::size_t left) {
  std::vector<std::size_t> widths(lines.front().size());
  for (const Cells& line : lines) {
    for (std::size_t i = 0; i < line.size(); ++i) widths[i] = std::max(widths[i], line[i].size());
  }
  std::string text;
  for (const Cells& line : lines) {
    std::string row;
    for (std::size_t i = 0; i < line.size(); ++i) {
      const bool text_column = i < left || i + 1 == line.size();
      row += "  " + (text_column ? fmt::format("{:<{}}", line[i], widths[i])
                                 : fmt::format("{:>{}}", line[i], widths[i]));
    }
    row.resize(row.find_last_not_of(' ') + 1);
    text += row + '\n';
  }
  return text;
}

std::string rows_of(const Result& result) {
  const Cells parameters = parameter_names(result);
  std::vector<Cells> lines(1, {""});
  lines[0].insert(lines[0].end(), parameters.begin(), parameters.end());
  for (const char* title : {"median", "p10", "p90", "unit", "GB/s"}) lines[0].emplace_back(title);
  const Cells figures = figure_titles(result);
  lines[0].insert(lines[0].end(), figures.begin(), figures.end());
  for (const char* title : {"right", ""}) lines[0].emplace_back(title);
  for (const Row& row : result.rows) {
    if (row.samples.empty()) continue;
    Cells line{row.name};
    for (const std::string& name : parameters) line.push_back(value_of(row, name));
    line.insert(line.end(),
                {number(row.median()), number(row.percentile(0.1)), number(row.percentile(0.9)),
                 row.unit, has_rate(row) ? fmt::format("{:.2f}", row.rate()) : ""});
    for (const std::string& title : figures) line.push_back(figure_of(row, title));
    line.insert(line.end(), {word_of(row.checked), row.note});
    lines.push_back(std::move(line));
  }
  return lines.size() == 1 ? "" : table_of(lines, 1);
}

Json json_of(const std::vector<Parameter>& parameters) {
  Json json = Json::object();
  for (const Parameter& parameter : parameters) {
    std::visit([&](const auto& value) { json[parameter.name] = value; }, parameter.value);
  }
  return json;
}

Json json_of(const Figure& figure) {
  return {{"unit", figure.unit},
          {"median", percentile(figure.samples, 0.5)},
          {"p10", percentile(figure.samples, 0.1)},
          {"p90", percentile(figure.samples, 0.9)},
          {"samples", figure.samples}};
}

Json json_of(const Row& row) {
  Json json{{"name", row.name},           {"parameters", json_of(row.parameters)},
            {"unit", row.unit},           {"median", row.median()},
            {"p10", row.percentile(0.1)}, {"p90", row.percentile(0.9)},
            {"samples", row.samples},     {"right", nullptr}};
  if (has_rate(row)) json["gigabytes_per_second"] = row.rate();
  if (row.checked != Checked::kNothing) json["right"] = row.checked == Checked::kRight;
  for (const Figure& figure : row.more) {
    if (!figure.samples.empty()) json["more"][figure.name] = json_of(figure);
  }
  if (!row.note.empty()) json["note"] = row.note;
  return json;
}

Json json_of(const Result& result) {
  Json json{{"suite", result.suite},
            {"title", result.title},
            {"setup", json_of(result.setup)},
            {"rows", Json::array()},
            {"published_by", result.published_by},
            {"published", Json::array()},
            {"left_out", result.left_out},
            {"verdict", result.verdict},
            {"problems", result.problems},
            {"interrupted", result.interrupted}};
  for (const Row& row : result.rows) {
    if (!row.samples.empty()) json["rows"].push_back(json_of(row));
  }
  for (const Published& figure : result.published) {
    const Row* const here = result.fastest(figure.row, figure.parameters);
    json["published"].push_back({{"name", figure.name},
                                 {"value", figure.value},
                                 {"unit", figure.unit},
                                 {"here", here == nullptr ? Json() : Json(here->median())}});
  }
  return json;
}

/// RFC 4180.
std::string quoted(const std::string& text) {
  if (text.find_first_of(",\"\r\n") == std::string::npos) return text;
  std::string result = "\"";
  for (const char c : text) {
    if (c == '"') result += '"';
    result += c;
  }
  return result + '"';
}

std::string line_of(const Cells& cells) {
  std::string line = quoted(cells.front());
  for (std::size_t i = 1; i < cells.size(); ++i) line += ',' + quoted(cells[i]);
  return line + '\n';
}

}  // namespace

std::string number(double value) {
  if (value == 0) return "0";
  const double size = std::abs(value);
  const int digits = size >= 1000 ? 0 : size >= 100 ? 1 : size >= 10 ? 2 : size >= 1 ? 3 : 4;
  return fmt::format("{:.{}f}", value, digits);
}

std::string as_text(const Result& result) {
  std::string text = fmt::format("{}: {}\n", result.suite, result.title);
  for (const Parameter& parameter : result.setup) {
    text += fmt::format("  {}: {}\n", parameter.name, to_string(parameter));
  }
  text += rows_of(result);
  if (!result.published_by.empty()) {
    text +=
        fmt::format("  published{} ({}){}\n", result.published.empty() ? " without figures" : "",
                    result.published_by, result.published.empty() ? "" : ":");
    for (const Published& figure : result.published) {
      const Row* const here = result.fastest(figure.row, figure.parameters);
      text += fmt::format("    {}: {:g} {}{}\n", figure.name, figure.value, figure.unit,
                          here == nullptr ? ""
                                          : fmt::format("; here {} ({})", number(here->median()),
                                                        here->full_name()));
    }
  }
  for (const std::string& what : result.left_out) text += fmt::format("  left out: {}\n", what);
  for (const std::string& sentence : result.verdict) text += fmt::format("  {}\n", sentence);
  if (result.interrupted) text += "  interrupted: this is what was measured so far\n";
  return text;
}

std::string as_json(std::span<const Result> results) {
  Json suites = Json::array();
  for (const Result& result : results) suites.push_back(json_of(result));
  return Json{{"suites", std::move(suites)}}.dump(2) + '\n';
}

Result result_of_json(const std::string& json) {
  const Json suite = Json::parse(json).at("suites").at(0);
  Result result;
  result.suite = suite.at("suite");
  result.problems = suite.at("problems").get<std::vector<std::string>>();
  result.interrupted = suite.at("interrupted");
  for (const Json& from : suite.at("rows")) {
    Row row{.name = from.at("name"),
            .unit = from.at("unit"),
            .samples = from.at("samples").get<std::vector<double>>()};
    for (const auto& [name, value] : from.at("parameters").items()) {
      if (value.is_number()) {
        row.parameters.push_back({name, value.get<std::int64_t>()});
      } else {
        row.parameters.push_back({name, value.get<std::string>()});
      }
    }
    if (const Json& right = from.at("right"); right.is_boolean()) {
      row.checked = right.get<bool>() ? Checked::kRight : Checked::kWrong;
    }
    result.rows.push_back(std::move(row));
  }
  return result;
}

std::string as_csv(std::span<const Result> results) {
  std::string text =
      "suite,source,name,parameters,unit,median,p10,p90,samples,gigabytes_per_second,right,note\n";
  for (const Result& result : results) {
    for (const Row& row : result.rows) {
      if (row.samples.empty()) continue;
      std::string parameters;
      for (const Parameter& parameter : row.parameters) {
        parameters += fmt::format("{}{}={}", parameters.empty() ? "" : ";", parameter.name,
                                  to_string(parameter));
      }
      text +=
          line_of({result.suite, "measured", row.name, parameters, row.unit,
                   fmt::format("{:.6g}", row.median()), fmt::format("{:.6g}", row.percentile(0.1)),
                   fmt::format("{:.6g}", row.percentile(0.9)), std::to_string(row.samples.size()),
                   has_rate(row) ? fmt::format("{:.6g}", row.rate()) : "",
                   row.checked == Checked::kNothing ? "" : word_of(row.checked), row.note});
      for (const Figure& figure : row.more) {
        if (figure.samples.empty()) continue;
        text += line_of({result.suite, "measured", row.name + ": " + figure.name, parameters,
                         figure.unit, fmt::format("{:.6g}", percentile(figure.samples, 0.5)),
                         fmt::format("{:.6g}", percentile(figure.samples, 0.1)),
                         fmt::format("{:.6g}", percentile(figure.samples, 0.9)),
                         std::to_string(figure.samples.size()), "", "", ""});
      }
    }
    for (const Published& figure : result.published) {
      text += line_of({result.suite, result.published_by, figure.name, "", figure.unit,
                       fmt::format("{:g}", figure.value), "", "", "", "", "", ""});
    }
  }
  return text;
}

}  // namespace framelane::bench
