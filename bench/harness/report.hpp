// Results of suites as text, JSON, CSV and SVG.
#pragma once

#include <span>
#include <string>

#include "bench/harness/result.hpp"

namespace framelane::bench {

/// With four significant digits.
std::string number(double value);

/// A table with everything that belongs to it, for a terminal.
std::string as_text(const Result& result);

/// {"suites":[{"suite","title","setup":{},"rows":[{"name","parameters":{},"unit","median","p10",
/// "p90","samples":[],"gigabytes_per_second","right","more":{NAME:{"unit","median","p10","p90",
/// "samples":[]}},"note"}],"published_by","published":[{"name",
/// "value","unit","here"}],"left_out":[],"verdict":[],"problems":[],"interrupted"}]}. "right" is
/// true, false, or null if there is nothing to compare. "here" is our median for the published
/// figure, or null. Contenders that were not measured have no row.
std::string as_json(std::span<const Result> results);
/// Reads back the rows and problems of a text with one suite. Throws if it is not such a text.
Result result_of_json(const std::string& json);

/// A line for each row, and one for each further figure of it, named "ROW: FIGURE". The column
/// "parameters" holds "NAME=VALUE" pairs with semicolons between them. Published figures are lines
/// too; the column "source" tells them from ours.
std::string as_csv(std::span<const Result> results);

/// All charts, one below the other, and bars for the rows that are in no chart. One SVG image that
/// needs no other file.
std::string as_svg(std::span<const Result> results);

}  // namespace framelane::bench
