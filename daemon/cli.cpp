#include "daemon/cli.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <functional>
#include <new>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include "config/config.hpp"
#include "config/problems.hpp"
#include "config/scalars.hpp"
#include "config/schema.hpp"
#include "daemon/commands.hpp"
#include "daemon/logging.hpp"
#include "daemon/signals.hpp"
#include "daemon/version.hpp"
#include "pipeline/base/abandoned_threads.hpp"
#include "pipeline/base/failure.hpp"
#include "pipeline/base/redact.hpp"
#include "pipeline/base/standard_output.hpp"

namespace framelane {
namespace {

/// If a standard descriptor is closed at the start, the next file that is opened gets its number,
/// and log lines would be written into a recording.
void open_standard_descriptors() {
  int descriptor = open("/dev/null", O_RDWR);
  while (descriptor >= 0 && descriptor <= STDERR_FILENO) descriptor = open("/dev/null", O_RDWR);
  if (descriptor > STDERR_FILENO) close(descriptor);
}

/// True for the commands that take signals in order, from their first moment on.
bool runs_feeds(int argc, char** argv) {
  const std::string_view command = argc > 1 ? argv[1] : "";
  return command == "run" || command == "transcode";
}

/// argv is public (ps, /proc), so URLs, which may contain passwords, and all in which redact()
/// finds a secret (passphrase=…) are overwritten with stars.
void blank_secrets(int argc, char** argv) {
  for (int i = 1; i < argc; ++i) {
    const std::string_view argument = argv[i];
    const bool url = argument.find("://") != std::string_view::npos;
    if (url || redact(argument) != argument) std::memset(argv[i], '*', argument.size());
  }
}

/// The exit code of the process, after what it has printed is written.
int finish(int code) {
  if (!finish_standard_output("framelane") && code == kExitDone) code = kExitFailed;
  return exit_past_hangs(code);
}

/// What is wrong with the command line; nothing if its first argument is a command or an option.
std::optional<std::string> unknown_command(const CLI::App& app, int argc, char** argv) {
  if (argc < 2 || argv[1][0] == '-') return std::nullopt;
  const std::string_view word = argv[1];
  std::vector<std::string> names;
  for (const CLI::App* command : app.get_subcommands({})) {
    if (command->get_name() == word) return std::nullopt;
    if (!command->get_group().empty()) names.push_back(command->get_name());
  }
  const std::vector<std::string_view> known(names.begin(), names.end());
  const std::string_view guess = nearest(word, known);
  return in_quotes(word) + " is not a command; " +
         (guess.empty() ? "there are: " + join(known) : "did you mean " + in_quotes(guess) + "?");
}

/// Checks an option's value as the configuration does.
CLI::Validator valid(const ScalarType& type) {
  return {[&type](const std::string& text) {
            Value ignored;
            return type.parse(text, ignored) ? std::string()
                                             : text + " is not " + std::string(type.expected);
          },
          ""};
}

/// An encode without an output is allowed, since its counts and times may be all that is wanted.
void note_idle_encodes(const std::string& config, const FeedOptions& feed) {
  for (const EncodeOptions& encode : feed.encodes) {
    const bool used = std::ranges::any_of(
        feed.outputs, [&](const OutputOptions& output) { return output.from == encode.name; });
    if (used) continue;
    std::fprintf(
        stderr, "%s: note: feed %s: no output takes encode %s, so that its packets are discarded\n",
        config.c_str(), feed.name.c_str(), encode.name.c_str());
  }
}

void add_transcode(CLI::App& app, TranscodeArguments& arguments) {
  app.add_option("INPUT", arguments.input,
                 "File, URL, FIFO, shm:SOCKET, lavfi:GRAPH for a test source, or - for stdin")
      ->required();
  app.add_option("OUTPUT", arguments.output, "File, URL, null: to discard, or - for stdout")
      ->required();
  app.add_flag("-y", arguments.overwrite, "Overwrite the output file if it exists");
  app.add_option(
         "--codec", arguments.codecs,
         "Encoders, of which the first available one is used; copy: do not decode (libx264 with "
         "preset=veryfast; rawvideo for a container of raw video)")
      ->delimiter(',')
      ->type_name("NAME[,NAME]|copy");
  app.add_option("--option", arguments.options, "Option of the encoder; may be given several times")
      ->type_name("K=V");
  app.add_option("--bitrate", arguments.bitrate, "Bits per second, for example 2M")->type_name("R");
  app.add_option("--gop", arguments.gop, "Time between keyframes, for example 2s")->type_name("T");
  app.add_option("--audio", arguments.audio,
                 "What to do with the sound: copy, none, or encoders, of which the first one that "
                 "opens is used (copy)")
      ->delimiter(',')
      ->type_name("NAME[,NAME]|copy|none");
  app.add_option("--format", arguments.format, "Container, if the name of OUTPUT does not tell")
      ->type_name("F");
  app.add_option("--pixel-format", arguments.pixel_format,
                 "Pixel format that the encoder is given, for example nv12 (the source's, if the "
                 "encoder takes it)")
      ->type_name("F");
  app.add_option("--matrix", arguments.matrix, "Matrix of the output: bt601, bt709 or bt2020")
      ->type_name("M");
  app.add_option("--range", arguments.range, "Range of the output: limited or full")
      ->type_name("R");
  app.add_option("--siting", arguments.siting,
                 "Chroma siting of the output: left, center or topleft")
      ->type_name("S");
  app.add_option("--crop", arguments.crop,
                 "The part of the picture to encode, for example 640x480+0+120")
      ->type_name("WxH+X+Y");
  app.add_option("--size", arguments.size,
                 "Size of the output: 1280x720, 1280x-2 (the height that keeps the shape) or 50%")
      ->type_name("WxH|N%");
  app.add_option("--overlay-text", arguments.overlay_text,
                 "Text to write on the pictures, at the top left; strftime's fields tell when each "
                 "was taken, or read from a file")
      ->type_name("TEXT")
      ->check(valid(kLines));
  app.add_option("--device", arguments.device,
                 "Where frames are converted: auto, cpu, cuda or cuda:N")
      ->type_name("D")
      ->check(valid(kDeviceName));
  app.add_option("--lanes", arguments.lanes, "Frames converted at the same time")
      ->check(CLI::Range(1, 64));
  app.add_option("--ring", arguments.ring, "The most frames in flight")->check(CLI::Range(1, 256));
  app.add_option_function<std::string>(
         "--slices",
         [&arguments](const std::string& text) {
           if (text != "auto") arguments.slices = std::stoi(text);
         },
         "Into how many parts a frame's upload to a GPU is cut; no effect on the CPU")
      ->type_name("N|auto")
      ->check(CLI::IsMember({"auto"}) | CLI::Range(1, kMostSlices));
  app.add_option("--input-format", arguments.input_format,
                 "FFmpeg's demuxer of the input, or rawvideo")
      ->type_name("F");
  app.add_option("--input-pixel-format", arguments.input_pixel_format,
                 "Pixel format of raw video, for example bgra")
      ->type_name("F");
  app.add_option("--input-size", arguments.input_size, "Size of raw video in pixels")
      ->type_name("WxH");
  app.add_option("--input-rate", arguments.input_rate,
                 "Frames per second of raw video, or of a format without times (h264, mjpeg)")
      ->type_name("N");
  app.add_option("--duration", arguments.duration, "Stop after this much video, for example 10s")
      ->type_name("T");
  app.add_flag("--json", arguments.json, "Print a summary as JSON to stdout");
  app.add_flag("--quiet", arguments.quiet, "Print no progress and no summary");
}

}  // namespace

int exit_past_hangs(int status, const DeviceSet* devices) {
  if (threads_abandoned() == 0 && (devices == nullptr || !devices->any_lost())) return status;
  std::fflush(nullptr);
  std::_Exit(status);
}

int print_problems(const std::vector<Problem>& problems) {
  for (const Problem& problem : problems) std::fprintf(stderr, "%s\n", to_string(problem).c_str());
  return kExitConfiguration;
}

int check_command(const std::string& config, bool require_environment) {
  LoadOptions options;
  options.require_environment = require_environment;
  const LoadResult loaded = load_config_file(config, options);
  if (const auto* problems = std::get_if<std::vector<Problem>>(&loaded)) {
    return print_problems(*problems);
  }
  const std::vector<FeedOptions>& feeds = std::get<Config>(loaded).feeds;
  for (const FeedOptions& feed : feeds) note_idle_encodes(config, feed);
  std::printf("%s: ok, %zu feed%s\n", config.c_str(), feeds.size(), feeds.size() == 1 ? "" : "s");
  return kExitDone;
}

int bench_command(char** arguments) {
  std::error_code none;
  const std::filesystem::path own = std::filesystem::read_symlink("/proc/self/exe", none);
  const std::string program = own.parent_path() / "framelane-bench";
  std::vector<char*> handed_on{const_cast<char*>(program.c_str())};
  for (; *arguments != nullptr; ++arguments) handed_on.push_back(*arguments);
  handed_on.push_back(nullptr);
  execv(program.c_str(), handed_on.data());
  std::fprintf(stderr,
               "framelane: %s cannot be started: %s; it is installed with framelane, in the same "
               "folder\n",
               program.c_str(), std::strerror(errno));
  return kExitFailed;
}

namespace {

int run_arguments(int argc, char** argv) {
  // framelane-bench parses these arguments. It inherits the environment, which is still unchanged.
  if (argc > 1 && std::strcmp(argv[1], "bench") == 0) return bench_command(argv + 2);
  if (argc > 1 && std::strcmp(argv[1], "tune") == 0) return bench_command(argv + 1);
  // Limits the wait for DNS, which FFmpeg's timeouts do not cover. Before the first thread, because
  // setenv is not safe later.
  setenv("RES_OPTIONS", "timeout:1 attempts:1", 0);
  // Reads fontconfig's cache files instead of mapping them: one that is cut off would end the
  // process.
  setenv("FONTCONFIG_USE_MMAP", "no", 0);
  // FFmpeg's log tells why it refuses something in a configuration.
  set_up_logging({.level = LogLevel::kWarn, .format = LogFormat::kPlain});

  CLI::App app("Long-running GPU video daemon: exact colour, every frame accounted for",
               "framelane");
  // Only when it is wanted: it asks the GPU's driver.
  app.set_version_flag("--version", std::function<std::string()>(version_text));
  app.require_subcommand(1);

  RunArguments run;
  CLI::App* run_app = app.add_subcommand("run", "Run the daemon in the foreground");
  run_app->add_option("-c,--config", run.config, "Configuration file")->capture_default_str();
  run_app->add_flag("--once", run.once, "Exit when every feed has ended");

  TranscodeArguments transcode;
  CLI::App* transcode_app = app.add_subcommand(
      "transcode", "Convert one input to one output, without a configuration file");
  add_transcode(*transcode_app, transcode);

  std::string config = kDefaultConfigFile;
  bool no_env = false;
  CLI::App* check_app =
      app.add_subcommand("check",
                         "Print every problem of a configuration file and of the files that it "
                         "names; open no source, output or device");
  check_app->add_option("-c,--config", config, "Configuration file")->capture_default_str();
  check_app->add_flag("--no-env", no_env, "Accept unset variables and unreadable secret files");

  bool devices_json = false;
  CLI::App* devices_app = app.add_subcommand(
      "devices", "List the CPU, the GPUs, the encoders and the decoders of this machine");
  devices_app->add_flag("--json", devices_json, "Print JSON");

  std::string url;
  CLI::App* health_app = app.add_subcommand(
      "healthcheck", "Ask a running daemon whether it is ready; exit 0 if it is");
  auto* health_config =
      health_app->add_option("-c,--config", config, "Configuration file of the daemon")
          ->capture_default_str();
  health_app
      ->add_option("--url", url,
                   "Address of its admin listener, instead of the one in the configuration")
      ->excludes(health_config);

  TraceArguments trace;
  CLI::App* trace_app = app.add_subcommand(
      "trace", "Fetch what a running daemon has done in the last seconds, for ui.perfetto.dev");
  auto* trace_config =
      trace_app->add_option("-c,--config", trace.config, "Configuration file of the daemon")
          ->capture_default_str();
  trace_app
      ->add_option("--url", trace.url,
                   "Address of its admin listener, instead of the one in the configuration")
      ->excludes(trace_config);
  trace_app->add_option("--token-file", trace.token_file, "File with a token that may read");
  trace_app->add_option("--seconds", trace.seconds, "How many")->capture_default_str();
  trace_app->add_option("--feed", trace.feed, "One feed only");
  trace_app
      ->add_option("-o,--output", trace.output,
                   "File to write, packed if its name ends with .gz; - is standard output")
      ->required();

  app.add_subcommand("bench",
                     "Run benchmarks on this machine's CPU and GPU; bench --help lists them");

  app.add_subcommand(
      "tune", "Measure which device, lanes, ring and slices suit the feeds; see tune --help");

  // Called by framelane-bench, which is built without FFmpeg and cannot read configurations.
  std::string tuned_size, tuned_rate = "30", tuned_output;
  CLI::App* tune_feeds_app = app.add_subcommand("tune-feeds")->group("");
  tune_feeds_app->add_option("-c", config)->required();
  tune_feeds_app->add_option("--size", tuned_size);
  tune_feeds_app->add_option("--rate", tuned_rate);
  tune_feeds_app->add_option("OUTPUT", tuned_output)->required();

  CLI::App* schema_app = app.add_subcommand("schema", "Print the JSON Schema of the configuration");

  if (const auto problem = unknown_command(app, argc, argv)) {
    std::fprintf(stderr, "framelane: %s; see framelane --help\n", problem->c_str());
    return kExitUsage;
  }
  try {
    app.parse(argc, argv);
  } catch (const CLI::Success& wanted) {  // help or version
    app.exit(wanted);
    return finish(kExitDone);
  } catch (const CLI::ParseError& error) {
    // The message quotes arguments, which may contain a password.
    std::fprintf(stderr, "framelane: %s; see framelane --help\n", redact(error.what()).c_str());
    return kExitUsage;
  }
  blank_secrets(argc, argv);

  if (run_app->parsed()) return finish(run_command(run));
  if (transcode_app->parsed()) return finish(transcode_command(transcode));
  if (check_app->parsed()) return finish(check_command(config, !no_env));
  if (devices_app->parsed()) return finish(devices_command(devices_json));
  if (health_app->parsed()) return healthcheck_command(config, url);
  if (trace_app->parsed()) return trace_command(trace);
  if (tune_feeds_app->parsed()) {
    return tune_feeds_command(config, tuned_size, tuned_rate, tuned_output);
  }
  if (schema_app->parsed()) std::printf("%s\n", config_schema().c_str());
  return finish(kExitDone);
}

}  // namespace

int run_cli(int argc, char** argv) {
  open_standard_descriptors();
  if (runs_feeds(argc, argv)) block_signals();
  try {
    return run_arguments(argc, argv);
  } catch (const std::system_error& error) {
    if (error.code() != std::errc::resource_unavailable_try_again) throw;
    std::fprintf(stderr, "framelane: a thread does not start: %s\n",
                 shortage_text(error.code().message()).c_str());
  } catch (const std::bad_alloc&) {
    std::fprintf(stderr, "framelane: memory is short: %s\n", kShortageRemedy);
  }
  return kExitFailed;
}

}  // namespace framelane
