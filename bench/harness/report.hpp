// What a suite has found, as people and programs read it.
#pragma once

#include <span>
#include <string>

#include "bench/harness/result.hpp"

namespace framelane::bench {

/// Four digits that count.
std::string number(double value);

/// A table with what belongs to it, for a terminal.
std::string as_text(const Result& result);

/// {"suites":[{"suite","title","setup":{},"rows":[{"name","parameters":{},"unit","median","p10",
/// "p90","samples":[],"gigabytes_per_second","right","more":{NAME:{"unit","median","p10","p90",
/// "samples":[]}},"note"}],"published_by","published":[{"name",
/// "value","unit","here"}],"left_out":[],"verdict":[],"problems":[],"interrupted"}]}. "right":
/// true, false, or null where there is nothing to compare. "here": the median that stands beside
/// it, or null. Contenders that were not measured have no row.
std::string as_json(std::span<const Result> results);
/// The rows and problems of the one suite in such a text. Throws what says that it is none.
Result result_of_json(const std::string& json);

/// A line for each row and one for each further figure of it, "ROW: FIGURE"; "parameters" is one
/// column, "NAME=VALUE" with semicolons between. Published figures are lines too, whose "source"
/// tells them from ours.
std::string as_csv(std::span<const Result> results);

/// All charts, one below the other, and bars for the rows that are in none, as one SVG image that
/// needs nothing else.
std::string as_svg(std::span<const Result> results);

}  // namespace framelane::bench
