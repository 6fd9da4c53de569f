#include "bench/harness/report.hpp"

#include <gmock/gmock.h>

#include <nlohmann/json.hpp>

namespace framelane::bench {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

Result sample_result() {
  Result result;
  result.suite = "convert";
  result.title = "a title";
  result.setup = {{"size", "64x36"}, {"rounds", std::int64_t{5}}};
  result.rows = {{.name = "GPU, sliced",
                  .parameters = {{"formula", "exact"}, {"streams", std::int64_t{8}}},
                  .bytes = 2e6,
                  .checked = Checked::kRight,
                  .samples = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11}},
                 {.name = "upload \"alone\"", .samples = {4}},
                 {.name = "never measured"}};
  result.published_by = "somebody";
  result.published = {{"default stream", 34.6, "ms"},
                      {"8 streams", 20.2, "ms", "GPU, sliced", {{"streams", std::int64_t{8}}}},
                      {"9 streams", 20.1, "ms", "GPU, sliced", {{"streams", std::int64_t{9}}}}};
  result.left_out = {"the GPU: there is none"};
  result.verdict = {"it is fast"};
  return result;
}

TEST(ResultTest, PercentilesLieBetweenSamples) {
  Row row{.name = "row", .samples = {30, 10, 20, 40}};
  EXPECT_DOUBLE_EQ(row.median(), 25);
  EXPECT_DOUBLE_EQ(row.percentile(0), 10);
  EXPECT_DOUBLE_EQ(row.percentile(0.1), 13);
  EXPECT_DOUBLE_EQ(row.percentile(1), 40);
  row.samples = {7};
  EXPECT_DOUBLE_EQ(row.percentile(0.9), 7);
}

TEST(ResultTest, TheFastestIsOfTheRowsThatWereMeasured) {
  Result result;
  result.rows = {{.name = "a", .parameters = {{"n", std::int64_t{1}}}, .samples = {3}},
                 {.name = "a", .parameters = {{"n", std::int64_t{2}}}, .samples = {2}},
                 {.name = "a", .parameters = {{"n", std::int64_t{4}}}},
                 {.name = "b", .samples = {1}}};
  ASSERT_NE(result.fastest("a"), nullptr);
  EXPECT_EQ(result.fastest("a")->median(), 2);
  EXPECT_EQ(result.fastest("a", {{"n", std::int64_t{1}}})->median(), 3);
  EXPECT_EQ(result.fastest("a", {{"n", std::int64_t{4}}}), nullptr);
  EXPECT_EQ(series_of(result, "", "a", {}, "n").points.size(), 2u);
}

TEST(ResultTest, FewerThatAreNearlyAsGoodAreEnough) {
  EXPECT_EQ(fewest_of_the_best({"", {{1, 3, 3, 3}, {2, 2.03, 2, 2}, {4, 2, 2, 2}}}).x, 2);
  EXPECT_EQ(fewest_of_the_best({"", {{1, 3, 3, 3}, {2, 2.05, 2, 2}, {4, 2, 2, 2}}}).x, 4);
}

TEST(ResultTest, AWrongRowDoesNotCount) {
  Result result;
  result.rows = {{.name = "a", .parameters = {{"n", std::int64_t{1}}}, .samples = {3}},
                 {.name = "a",
                  .parameters = {{"n", std::int64_t{2}}},
                  .checked = Checked::kWrong,
                  .samples = {1}}};
  EXPECT_EQ(result.fastest("a")->median(), 3);
  EXPECT_EQ(result.measured("a", {{"n", std::int64_t{2}}}), nullptr);
  EXPECT_EQ(series_of(result, "", "a", {}, "n").points.size(), 1u);
}

TEST(ReportTest, FurtherFiguresAreColumnsOfTheTableAndLinesOfTheCsv) {
  Result result = sample_result();
  result.rows[0].more = {{"p99", "ms", {5, 7, 9}}, {"share", "", {0.5}}, {"unmeasured", "s"}};
  const std::string text = as_text(result);
  EXPECT_THAT(text, HasSubstr("GB/s  p99 [ms]   share  unmeasured [s]  right"));
  EXPECT_THAT(text, ::testing::ContainsRegex("0\\.33 +7\\.000 +0\\.5000 +yes"));
  const auto json = nlohmann::json::parse(as_json({&result, 1}));
  const auto& more = json.at("suites").at(0).at("rows").at(0).at("more");
  EXPECT_EQ(more.size(), 2u);
  EXPECT_EQ(more.at("p99").at("median"), 7);
  EXPECT_EQ(more.at("p99").at("samples"), (std::vector<double>{5, 7, 9}));
  EXPECT_THAT(as_csv({&result, 1}),
              HasSubstr("convert,measured,\"GPU, sliced: p99\",formula=exact;streams=8,ms,7,"));
}

TEST(ReportTest, TheTableHasWhatWasMeasuredAndNothingElse) {
  const std::string text = as_text(sample_result());
  EXPECT_THAT(text, ::testing::ContainsRegex(
                        "GPU, sliced +exact +8 +6\\.000 +2\\.000 +10\\.00 +ms +0\\.33 +yes"));
  EXPECT_THAT(text, HasSubstr("published (somebody):\n    default stream: 34.6 ms\n"
                              "    8 streams: 20.2 ms; here 6.000 (GPU, sliced, formula exact, "
                              "streams 8)\n    9 streams: 20.1 ms\n"));
  EXPECT_THAT(text, HasSubstr("left out: the GPU: there is none\n"));
  EXPECT_THAT(text, HasSubstr("it is fast\n"));
  EXPECT_THAT(text, Not(HasSubstr("never measured")));
  EXPECT_THAT(text, Not(HasSubstr("interrupted")));
}

TEST(ReportTest, JsonSaysTheSame) {
  Result wrong = sample_result();
  wrong.rows[0].checked = Checked::kWrong;
  const auto json =
      nlohmann::json::parse(as_json(std::vector<Result>{sample_result(), wrong}))["suites"];
  ASSERT_EQ(json.size(), 2u);
  ASSERT_EQ(json[0]["rows"].size(), 2u);
  const auto& row = json[0]["rows"][0];
  EXPECT_EQ(row["parameters"]["streams"], 8);
  EXPECT_EQ(row["parameters"]["formula"], "exact");
  EXPECT_EQ(row["median"], 6.0);
  EXPECT_EQ(row["p10"], 2.0);
  EXPECT_EQ(row["p90"], 10.0);
  EXPECT_EQ(row["samples"].size(), 11u);
  EXPECT_EQ(row["right"], true);
  EXPECT_TRUE(json[0]["rows"][1]["right"].is_null());
  EXPECT_EQ(json[1]["rows"][0]["right"], false);
  EXPECT_EQ(json[0]["published"][0]["value"], 34.6);
  EXPECT_TRUE(json[0]["published"][0]["here"].is_null());
  EXPECT_EQ(json[0]["published"][1]["here"], 6.0);
  EXPECT_EQ(json[0]["setup"]["size"], "64x36");
}

TEST(ReportTest, WhatIsWrittenAsJsonIsReadBack) {
  Result written = sample_result();
  written.problems = {"wrong result"};
  written.rows[1].checked = Checked::kWrong;
  const Result read = result_of_json(as_json(std::vector<Result>{written}));
  EXPECT_EQ(read.suite, "convert");
  EXPECT_EQ(read.problems, written.problems);
  ASSERT_EQ(read.rows.size(), 2u);  // the third was not measured
  EXPECT_TRUE(read.rows[0].is("GPU, sliced", written.rows[0].parameters));
  EXPECT_EQ(read.rows[0].samples, written.rows[0].samples);
  EXPECT_EQ(read.rows[0].checked, Checked::kRight);
  EXPECT_EQ(read.rows[1].checked, Checked::kWrong);
  EXPECT_ANY_THROW(result_of_json("{}"));
}

TEST(ReportTest, CsvQuotesWhatNeedsIt) {
  const std::string csv = as_csv(std::vector<Result>{sample_result()});
  EXPECT_THAT(csv, HasSubstr("\nconvert,measured,\"GPU, sliced\",formula=exact;streams=8,ms,6,2,10,"
                             "11,0.333333,yes,\n"));
  EXPECT_THAT(csv, HasSubstr("\nconvert,measured,\"upload \"\"alone\"\"\",,ms,4,4,4,1,,,\n"));
  EXPECT_THAT(csv, HasSubstr("\nconvert,somebody,default stream,,ms,34.6,,,,,,\n"));
}

TEST(ReportTest, AChartShowsEverySeriesAndLevel) {
  Result result;
  result.charts = {{"time < limit",
                    "streams",
                    "ms",
                    true,
                    {{"exact", {{1, 4, 3, 5}, {2, 2, 2, 2}, {4, 1, 1, 1}}}},
                    {{"alone & idle", 0.5}}}};
  const std::string svg = as_svg(std::vector<Result>{result});
  EXPECT_THAT(svg, HasSubstr("time &lt; limit"));
  EXPECT_THAT(svg, HasSubstr("alone &amp; idle"));
  // By its logarithm, 2 is as far from 1 as 4 is from 2.
  double x[3], y[3];
  const std::size_t at = svg.find("points=\"");
  ASSERT_NE(at, std::string::npos);
  ASSERT_EQ(std::sscanf(svg.c_str() + at, "points=\"%lf,%lf %lf,%lf %lf,%lf", &x[0], &y[0], &x[1],
                        &y[1], &x[2], &y[2]),
            6);
  EXPECT_NEAR(x[1] - x[0], x[2] - x[1], 0.2);
  // And heights are to scale, from 0 on.
  EXPECT_NEAR((y[1] - y[0]) / 2, y[2] - y[1], 0.2);
}

TEST(ReportTest, WhatIsInNoChartHasABar) {
  Result result;
  result.title = "a title";
  result.rows = {{.name = "curve", .parameters = {{"n", std::int64_t{1}}}, .samples = {3}},
                 {.name = "copy and kernel", .parameters = {{"how", "at once"}}, .samples = {2}},
                 {.name = "copy and host"}};
  EXPECT_THAT(as_svg({&result, 1}), HasSubstr("curve, n 1"));
  result.charts = {{"chart", "n", "ms", true, {series_of(result, "all", "curve", {}, "n")}, {}}};
  const std::string svg = as_svg({&result, 1});
  EXPECT_THAT(svg, HasSubstr(">chart<"));
  EXPECT_THAT(svg, Not(HasSubstr("curve, n 1")));
  EXPECT_THAT(svg, HasSubstr("copy and kernel, how at once"));
  EXPECT_THAT(svg, Not(HasSubstr("copy and host")));
}

TEST(ReportTest, NamesOfBarsHaveRoom) {
  Result result;
  const std::string name(100, 'm');
  result.rows = {{.name = name, .samples = {1}}};
  const std::string svg = as_svg({&result, 1});
  double x = 0, width = 0;
  const std::size_t text = svg.rfind("<text", svg.find(name));
  ASSERT_EQ(std::sscanf(svg.c_str() + text, "<text x=\"%lf", &x), 1);
  EXPECT_GE(x, 600);  // where it ends
  ASSERT_EQ(std::sscanf(svg.c_str() + svg.find("width="), "width=\"%lf", &width), 1);
  EXPECT_GE(width, x + 400);
}

TEST(ReportTest, BarsOfVeryDifferentLengthsCanAllBeSeen) {
  Result result;
  result.rows = {{.name = "slow", .samples = {30000}}, {.name = "fast", .samples = {2}}};
  const std::string svg = as_svg({&result, 1});
  EXPECT_THAT(svg, HasSubstr("(logarithmic)"));
  double width = 0;
  const std::size_t bar = svg.find("<rect x=", svg.find(">fast<"));
  ASSERT_EQ(std::sscanf(svg.c_str() + svg.find("width=", bar), "width=\"%lf", &width), 1);
  EXPECT_GE(width, 10);
}

}  // namespace
}  // namespace framelane::bench
