// framelane-bench: measures this machine's CPU and GPU, with framelane's own kernels among others.
#include <fmt/core.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "bench/harness/child_process.hpp"
#include "bench/harness/report.hpp"
#include "bench/harness/suite.hpp"
#include "bench/program.hpp"
#include "pipeline/base/standard_output.hpp"
#include "pipeline/stage/gpu.hpp"

namespace framelane::bench {
namespace {

constexpr const char* kAll = "all";  // for every suite

struct Arguments {
  std::vector<std::string> suites;
  Value device;
  std::string json, csv, plot;
  bool in_turns = false;
};

/// This program again, as --in-turns.
class OwnProcess final : public OtherProcess {
 public:
  OwnProcess(const Session& session, const char* suite, double seconds,
             const std::vector<std::string>& variables)
      : child_(own_path(),
               {suite, "--in-turns", "--device", session.gpu->name(), "--json", "/dev/fd/3",
                "--seconds", fmt::format("{}", seconds), "--rounds", std::to_string(session.rounds),
                "--bytes", std::to_string(session.bytes)},
               variables) {}

  void round() override { child_.step(); }
  Result result() override { return result_of_json(child_.finish()); }

 private:
  ChildProcess child_;
};

/// Makes this process wait for its parent before each round, as ChildProcess expects it.
void take_rounds_when_told(Session& session) {
  session.before_round = [] {
    char told = 0;
    return read(STDIN_FILENO, &told, 1) == 1;
  };
  session.after_round = [] {
    // A parent that no longer reads this has also closed our input, which ends the rounds.
    [[maybe_unused]] const ssize_t written = write(3, &ChildProcess::kStepDone, 1);
  };
}

int run(const Arguments& arguments, Session& session) {
  OutputFile json(arguments.json), csv(arguments.csv), plot(arguments.plot);
  if (!json.open() || !csv.open() || !plot.open()) return kExitFailed;
  // If the user has set this variable, it stays as it is. In the other process it is set, too.
  if (std::getenv(kCudaConnections) == nullptr) {
    session.other_process = [&session](const char* suite, double seconds,
                                       const std::vector<std::string>& variables) {
      return std::make_unique<OwnProcess>(session, suite, seconds, variables);
    };
  }
  if (arguments.in_turns) take_rounds_when_told(session);
  bool good = open_device(arguments.device.device, session);
  catch_signals();
  session.stop = &g_signal;
  // The other process reports only in its results.
  session.show_progress = !arguments.in_turns && isatty(STDERR_FILENO) == 1;
  std::vector<Result> results;
  for (const std::string& name : arguments.suites) {
    if (session.stopped()) break;
    results.push_back(run_suite(*find_suite(name), session));
    std::fputs(as_text(results.back()).c_str(), stdout);
    std::fflush(stdout);
    for (const std::string& problem : results.back().problems) {
      if (!arguments.in_turns) {
        std::fprintf(stderr, "framelane-bench: %s: %s\n", name.c_str(), problem.c_str());
      }
      good = false;
    }
  }
  good = json.write(as_json(results)) && good;
  good = csv.write(as_csv(results)) && good;
  good = plot.write(as_svg(results)) && good;
  if (g_signal != 0) return 128 + g_signal;
  return good ? 0 : kExitFailed;
}

/// "1280x720,854x480"
std::vector<PictureSize> sizes_of(const std::string& text) {
  std::vector<PictureSize> sizes;
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find(',', begin), text.size());
    Value size;
    if (!kImageSize.parse(std::string_view(text).substr(begin, end - begin), size)) {
      throw CLI::ValidationError("--renditions", text.substr(begin, end - begin) + " is not " +
                                                     std::string(kImageSize.expected));
    }
    sizes.push_back({size.width, size.height});
    begin = end + 1;
  }
  return sizes;
}

/// They would overwrite each other.
void refuse_one_file_twice(const std::vector<std::string>& paths) {
  for (std::size_t i = 0; i < paths.size(); ++i) {
    for (std::size_t k = 0; k < i; ++k) {
      if (paths[i].empty() || paths[i] != paths[k]) continue;
      throw CLI::ValidationError(paths[i], "only one of --json, --csv and --plot can be this file");
    }
  }
}

int run_cli(int argc, char** argv) {
  Arguments arguments;
  Session session;
  CLI::App app("Experiments on this machine's CPU and GPU; what comes out is checked in every run",
               "framelane-bench");
  std::vector<std::string> names;
  std::string footer = "Suites:\n  all        every one of them\n";
  for (const Suite& suite : suites()) {
    names.emplace_back(suite.name);
    footer += fmt::format("  {:<10} {}\n", suite.name, suite.title);
  }
  app.footer(footer);
  std::vector<std::string> known = names;
  known.emplace_back(kAll);
  app.add_option("SUITE", arguments.suites, "What to measure, one after the other")
      ->required()
      ->type_name("")
      ->check(CLI::IsMember(known));
  add_scalar(app, "--device", kDeviceName, "auto (a GPU if there is one), cpu, cuda or cuda:N", "D",
             [&](const Value& value) { arguments.device = value; });
  add_file(app, "--json", arguments.json, "Write the results there as JSON");
  add_file(app, "--csv", arguments.csv, "The same as CSV");
  add_file(app, "--plot", arguments.plot, "Draw them there as SVG");
  add_times(app, session, "How long a suite measures, about; 0: each contender works once a round");
  add_scalar(app, "--size", kImageSize,
             "Of pictures; without it convert takes 8K, reduce 512x512 (and 8K for luma), peers "
             "1080p (and 4K and 8K on a GPU), stage all three",
             "WxH", [&](const Value& value) {
               session.width = value.width;
               session.height = value.height;
             });
  add_scalar(app, "--renditions", kText,
             "What stage makes of each frame: pictures of these sizes, instead of one of its own",
             "WxH,...", [&](const Value& value) { session.renditions = sizes_of(value.text); });
  add_scalar(app, "--bytes", kSize, "Of data that is no picture, e.g. 64M; 4k to 4G", "N",
             [&](const Value& value) {
               if (value.number < 4000 || value.number > 4'000'000'000) {
                 throw CLI::ValidationError("--bytes", value.text + " is not between 4k and 4G");
               }
               session.bytes = static_cast<std::size_t>(value.number);
             });
  app.add_flag("--in-turns", arguments.in_turns)
      ->group("");  // for OwnProcess alone, so it is not in the help
  try {
    app.parse(argc, argv);
    refuse_one_file_twice({arguments.json, arguments.csv, arguments.plot});
  } catch (const CLI::Success& wanted) {  // help
    app.exit(wanted);
    return 0;
  } catch (const CLI::ParseError& error) {
    std::fprintf(stderr, "framelane-bench: %s; see framelane bench --help\n", error.what());
    return kExitUsage;
  }
  if (std::ranges::find(arguments.suites, kAll) != arguments.suites.end()) {
    arguments.suites = names;
  }
  try {
    return run(arguments, session);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "framelane-bench: %s\n", error.what());
    return kExitFailed;
  }
}

}  // namespace
}  // namespace framelane::bench

int main(int argc, char** argv) {
  const bool tune = argc > 1 && std::strcmp(argv[1], "tune") == 0;
  const int code =
      tune ? framelane::bench::tune_cli(argc - 1, argv + 1) : framelane::bench::run_cli(argc, argv);
  const bool printed = framelane::finish_standard_output("framelane-bench");
  return code == 0 && !printed ? framelane::bench::kExitFailed : code;
}
