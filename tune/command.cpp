// The command line of `framelane tune`, which starts `framelane-bench tune`.
#include <fmt/core.h>
#include <signal.h>
#include <unistd.h>

#include <cstdio>
#include <exception>
#include <filesystem>
#include <optional>
#include <string>
#include <system_error>
#include <vector>

#include "bench/harness/child_process.hpp"
#include "bench/product/stage_feed.hpp"
#include "bench/program.hpp"
#include "config/config.hpp"
#include "config/raw_formats.hpp"
#include "tune/tune.hpp"

namespace framelane::bench {
namespace {

struct TuneArguments {
  std::string config;
  std::optional<Value> size;  ///< if it is stated
  Value rate;
  int feeds = 1;
  std::string format = "bgra";
  std::optional<Value> device;
  bool check = false;
  std::string json;
};

/// framelane, which can read configurations, is installed beside this program.
std::string framelane_path() {
  return std::filesystem::path(own_path()).parent_path() / "framelane";
}

void complain(const std::string& what) {
  std::fprintf(stderr, "framelane-bench: tune: %s\n", what.c_str());
}

/// The feeds of the file. Nothing, with an exit code, if they cannot be had; the reason was
/// printed.
std::optional<ConfiguredFeeds> read_feeds(const TuneArguments& arguments, int& exit_code) {
  std::vector<std::string> asked{"tune-feeds", "-c", arguments.config, "--rate",
                                 arguments.rate.text};
  if (arguments.size) asked.insert(asked.end(), {"--size", arguments.size->text});
  asked.emplace_back("/dev/fd/3");
  std::optional<ChildProcess> framelane;
  try {
    framelane.emplace(framelane_path(), asked, std::vector<std::string>{});
  } catch (const std::exception& error) {
    complain(error.what());
    exit_code = kExitFailed;
    return std::nullopt;
  }
  std::string json;
  try {
    json = framelane->finish();
  } catch (const std::exception&) {  // it wrote nothing; its exit status says why
  }
  exit_code = framelane->exit_status();
  if (exit_code == 0 && !json.empty()) return configured_feeds(json);
  const bool has_said_why =
      exit_code == kExitFailed || exit_code == kExitUsage || exit_code == kExitConfiguration;
  if (!has_said_why) {
    complain(fmt::format("{} tune-feeds ended with status {} and without a word; try it by hand",
                         framelane_path(), exit_code));
    exit_code = kExitFailed;
  }
  return std::nullopt;
}

/// The feeds of --size, which must be there.
ConfiguredFeeds stated_feeds(const TuneArguments& arguments) {
  FeedKind kind;
  kind.feeds = arguments.feeds;
  kind.conversions = {conversion(*raw_format_layout(arguments.format), PixelFormat::kNv12,
                                 {"", arguments.size->width, arguments.size->height})};
  kind.rate = static_cast<double>(arguments.rate.ratio.num) / arguments.rate.ratio.den;
  return {"auto", {std::move(kind)}, {}};
}

/// The GPU to try: the one of --device, otherwise the one that the file names.
DeviceChoice device_for(const TuneArguments& arguments, const ConfiguredFeeds& feeds) {
  if (arguments.device) return arguments.device->device;
  Value set;
  kDeviceName.parse(feeds.device, set);
  set.device.kind = DeviceChoice::Kind::kAuto;
  return set.device;
}

/// Which of the two compared devices is set in the file. kNeither: neither of them.
Chosen present_device(const ConfiguredFeeds& feeds, const DeviceChoice& device) {
  Value set;
  kDeviceName.parse(feeds.device, set);
  switch (set.device.kind) {
    case DeviceChoice::Kind::kCpu:
      return Chosen::kOnCpu;
    case DeviceChoice::Kind::kCuda:
      return set.device.gpu.value_or(0) == device.gpu.value_or(0) ? Chosen::kOnGpu
                                                                  : Chosen::kNeither;
    case DeviceChoice::Kind::kAuto:
      break;
  }
  return Chosen::kNeither;
}

int run(const TuneArguments& arguments, Session& session) {
  OutputFile json(arguments.json);
  if (!json.open()) return kExitFailed;
  signal(SIGPIPE, SIG_IGN);
  int exit_code = 0;
  const std::optional<ConfiguredFeeds> feeds =
      arguments.config.empty() ? stated_feeds(arguments) : read_feeds(arguments, exit_code);
  if (!feeds) return exit_code;
  if (feeds->kinds.empty()) {
    for (const std::string& what : feeds->left_out) std::printf("left out: %s\n", what.c_str());
    std::printf("no feed converts anything: there is nothing to tune\n");
    return 0;
  }
  const DeviceChoice device = device_for(arguments, *feeds);
  if (!open_device(device, session)) return kExitFailed;
  const Chosen present = present_device(*feeds, device);
  if (!arguments.device && present == Chosen::kOnGpu && session.gpu == nullptr) {
    complain(fmt::format("{}: device is {}: {}; --device auto chooses without it", arguments.config,
                         feeds->device, session.no_gpu));
    return kExitFailed;
  }
  catch_signals();
  session.stop = &g_signal;
  session.show_progress = isatty(STDERR_FILENO) == 1;
  Tuning tuning = tune(session, device.kind == DeviceChoice::Kind::kCuda, feeds->kinds, present);
  tuning.measured.left_out.insert(tuning.measured.left_out.begin(), feeds->left_out.begin(),
                                  feeds->left_out.end());
  if (arguments.check && !tuning.kinds.empty()) check_tuning(session, tuning);
  std::fputs(as_text(tuning).c_str(), stdout);
  std::fflush(stdout);
  for (const std::string& problem : tuning.measured.problems) complain(problem);
  const bool written = tuning.measured.rows.empty() || json.write(as_json(tuning));
  if (g_signal != 0) return 128 + g_signal;
  if (!written || tuning.kinds.empty() || !tuning.measured.problems.empty()) return kExitFailed;
  return 0;
}

}  // namespace

int tune_cli(int argc, char** argv) {
  TuneArguments arguments;
  Session session;
  kFrameRate.parse("30", arguments.rate);
  arguments.rate.text = "30";
  CLI::App app(
      "Measures what device, lanes, ring and slices suit the feeds of a configuration on this "
      "machine, or those of a stated size and rate",
      "framelane tune");
  app.footer(
      "Raw feeds say their size and rate; streams, which are not opened, are taken to have those "
      "of "
      "--size and --rate.");
  app.add_option("-c,--config", arguments.config,
                 fmt::format("Configuration file; without it and --size: {}", kDefaultConfigFile))
      ->type_name("FILE");
  CLI::Option* size = add_scalar(app, "--size", kImageSize,
                                 "Of streams, or without a file of all feeds (1920x1080)", "WxH",
                                 [&](const Value& value) { arguments.size = value; });
  add_scalar(app, "--rate", kFrameRate, "Their frames a second (30)", "N",
             [&](const Value& value) { arguments.rate = value; });
  std::vector<std::string> formats;
  for (const std::string_view name : raw_format_names()) formats.emplace_back(name);
  CLI::Option* format =
      app.add_option("--format", arguments.format, "Without a file: what NV12 is made of (bgra)")
          ->type_name("F")
          ->check(CLI::IsMember(formats));
  CLI::Option* count = app.add_option("--feeds", arguments.feeds, "Without a file: how many (1)")
                           ->type_name("N")
                           ->check(CLI::Range(1, 64));
  add_scalar(app, "--device", kDeviceName,
             "cpu, cuda or cuda:N alone; auto: whichever carries more", "D",
             [&](const Value& value) { arguments.device = value; });
  app.add_flag("--check", arguments.check,
               "Measure combinations of settings as well, and fail if one is more than 2 % better");
  add_file(app, "--json", arguments.json, "Write what was found there as JSON");
  add_times(app, session, "How long to measure, about");
  try {
    app.parse(argc, argv);
    if (arguments.config.empty() && size->count() == 0) arguments.config = kDefaultConfigFile;
    if (!arguments.config.empty() && (format->count() > 0 || count->count() > 0)) {
      throw CLI::ValidationError(
          "--format and --feeds",
          arguments.config + " says them; to measure without it, give --size");
    }
    std::error_code missing;
    if (std::filesystem::equivalent(arguments.config, arguments.json, missing)) {
      throw CLI::ValidationError("--json", arguments.json + " is the configuration");
    }
  } catch (const CLI::Success& wanted) {  // help
    app.exit(wanted);
    return 0;
  } catch (const CLI::ParseError& error) {
    std::fprintf(stderr, "framelane-bench: %s; see framelane tune --help\n", error.what());
    return kExitUsage;
  }
  try {
    return run(arguments, session);
  } catch (const std::exception& error) {
    complain(error.what());
    return kExitFailed;
  }
}

}  // namespace framelane::bench
