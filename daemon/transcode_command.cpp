#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <numeric>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "config/scalars.hpp"
#include "daemon/cli.hpp"
#include "daemon/commands.hpp"
#include "daemon/device_set.hpp"
#include "daemon/signals.hpp"
#include "daemon/supervisor.hpp"
#include "daemon/transcode_feed.hpp"
#include "pipeline/base/redact.hpp"
#include "pipeline/base/url.hpp"

namespace framelane {
namespace {

using Clock = std::chrono::steady_clock;

struct Totals {
  std::uint64_t frames_in = 0;
  std::uint64_t frames_out = 0;
  std::uint64_t frames_dropped = 0;
  std::uint64_t packets_dropped = 0;
  std::uint64_t decode_errors = 0;
  std::uint64_t bytes = 0;
  std::optional<std::uint64_t> sound_dropped;  ///< packets; empty: no sound is transcoded
};

std::uint64_t dropped_of(const AudioStats& audio) {
  const AudioCounts counts = audio.counts();
  return std::accumulate(counts.dropped.begin(), counts.dropped.end(), std::uint64_t{0});
}

Totals totals_of(const FeedStats& stats) {
  Totals totals;
  const FeedStats::Ledger ledger = stats.ledger();
  const EncodeCounts& encode = ledger.encodes.front();
  totals.frames_in = ledger.frames_in;
  totals.frames_out = encode.out;
  totals.frames_dropped =
      std::accumulate(encode.dropped.begin(), encode.dropped.end(), std::uint64_t{0});
  for (const auto& count : stats.decode_faults) totals.decode_errors += count;
  const std::shared_ptr<OutputStats> output = stats.outputs().front();
  for (const auto& count : output->packets_dropped) totals.packets_dropped += count;
  totals.bytes = output->bytes;
  const AudioStats& audio = stats.encode(0).audio;
  if (audio.transcodes) totals.sound_dropped = dropped_of(audio);
  return totals;
}

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

void print_progress(const Totals& totals, bool copies, double seconds) {
  if (copies) {
    std::fprintf(stderr, "\r%.1f MB in %.1f s\033[K", static_cast<double>(totals.bytes) / 1e6,
                 seconds);
  } else {
    std::fprintf(stderr, "\r%llu frames, %.1f fps, %.1f MB\033[K",
                 static_cast<unsigned long long>(totals.frames_out),
                 static_cast<double>(totals.frames_out) / seconds,
                 static_cast<double>(totals.bytes) / 1e6);
  }
  std::fflush(stderr);
}

void print_summary(const Totals& totals, bool copies, double seconds) {
  std::string sound;
  if (totals.sound_dropped) {
    sound = "; " + std::to_string(*totals.sound_dropped) + " packets of sound dropped";
  }
  if (copies) {
    std::fprintf(stderr, "%llu bytes copied in %.2f s, %llu packets dropped%s\n",
                 static_cast<unsigned long long>(totals.bytes), seconds,
                 static_cast<unsigned long long>(totals.packets_dropped), sound.c_str());
    return;
  }
  std::fprintf(stderr,
               "%llu frames in, %llu out, %llu dropped, %llu decode errors; %llu bytes in %.2f s "
               "(%.1f fps)%s\n",
               static_cast<unsigned long long>(totals.frames_in),
               static_cast<unsigned long long>(totals.frames_out),
               static_cast<unsigned long long>(totals.frames_dropped),
               static_cast<unsigned long long>(totals.decode_errors),
               static_cast<unsigned long long>(totals.bytes), seconds,
               static_cast<double>(totals.frames_out) / seconds, sound.c_str());
}

void print_json(const FeedStats& stats, const Totals& totals, bool succeeded, double seconds) {
  const FeedStats::Status status = stats.status();
  nlohmann::ordered_json summary{
      {"succeeded", succeeded},
      {"reason",
       succeeded ? nlohmann::ordered_json() : nlohmann::ordered_json(redact(status.reason))},
      {"decoder", status.decoder},
      {"codec", stats.encode(0).copy ? "copy" : stats.encode(0).codec()},
      {"frames_in", totals.frames_in},
      {"frames_out", totals.frames_out},
      {"frames_dropped", totals.frames_dropped},
      {"packets_dropped", totals.packets_dropped},
      {"decode_errors", totals.decode_errors},
      {"bytes", totals.bytes},
      {"seconds", seconds}};
  if (const AudioStats& audio = stats.encode(0).audio; audio.transcodes) {
    const AudioCounts counts = audio.counts();
    summary["audio"] = {{"codec", audio.codec()},
                        {"packets_in", counts.in},
                        {"packets_out", counts.out},
                        {"packets_dropped", dropped_of(audio)}};
  }
  std::printf("%s\n", summary.dump(2).c_str());
}

/// The URL of an output is a strftime pattern, but a name on the command line is meant literally.
void escape_strftime(OutputOptions& output) {
  if (!local_path(output.url)) return;
  for (std::size_t at = 0; (at = output.url.find('%', at)) != std::string::npos; at += 2) {
    output.url.insert(at, 1, '%');
  }
}

bool is_same_file(const FeedOptions& feed) {
  const std::optional<std::string> input = local_path(feed.input.url);
  const std::optional<std::string> output = local_path(feed.outputs.front().url);
  std::error_code ignored;  // a file that does not exist is not the same
  return input && output && std::filesystem::is_regular_file(*output, ignored) &&
         std::filesystem::equivalent(*input, *output, ignored);
}

std::optional<std::string> refuse_to_overwrite(const FeedOptions& feed) {
  const std::optional<std::string> path = local_path(feed.outputs.front().url);
  std::error_code ignored;
  if (!path || !std::filesystem::is_regular_file(*path, ignored)) return std::nullopt;
  return *path + " exists; use -y to overwrite it";
}

/// nohup sets SIGHUP to be ignored, so that a program survives the end of its terminal.
bool hangup_is_ignored() {
  struct sigaction action {};
  return sigaction(SIGHUP, nullptr, &action) == 0 && action.sa_handler == SIG_IGN;
}

}  // namespace

int transcode_command(const TranscodeArguments& arguments) {
  std::optional<StopsAtOnce> starting;
  starting.emplace(std::nullopt);
  std::variant<FeedOptions, TranscodeProblem> built = transcode_feed(arguments);
  if (const auto* problem = std::get_if<TranscodeProblem>(&built)) {
    for (const std::string& line : problem->lines) {
      std::fprintf(stderr, "framelane transcode: %s\n", redact(line).c_str());
    }
    return problem->exit_code;
  }
  FeedOptions& feed = std::get<FeedOptions>(built);
  if (is_same_file(feed)) {
    std::fprintf(stderr,
                 "framelane transcode: INPUT and OUTPUT are the same file; write to "
                 "another one\n");
    return kExitUsage;
  }
  OutputOptions& output = feed.outputs.front();
  if (const auto refusal = refuse_to_overwrite(feed); refusal && !arguments.overwrite) {
    std::fprintf(stderr, "framelane transcode: %s\n", redact(*refusal).c_str());
    return kExitFailed;
  }
  output.existing = arguments.overwrite ? Existing::kReplace : Existing::kRefuse;
  escape_strftime(output);
  const bool hangup_ignored = hangup_is_ignored();
  Value device_name;
  kDeviceName.parse(arguments.device, device_name);  // already checked by the command line
  const std::shared_ptr<DeviceSet> devices = open_devices(device_name.device, {&feed, 1}, true);
  if (devices == nullptr) return kExitFailed;
  starting.reset();

  const bool copies = feed.encodes.front().copy_video;
  std::vector<FeedOptions> feeds;
  feeds.push_back(std::move(feed));
  Supervisor supervisor(std::move(feeds), devices, {.once = true});
  const FeedView view = supervisor.feeds().front();
  const bool show_progress = !arguments.quiet && isatty(STDERR_FILENO) == 1;
  const auto start = Clock::now();
  supervisor.start();
  std::optional<int> interrupted;
  while (!supervisor.wait_done(std::chrono::milliseconds(0))) {
    if (show_progress) print_progress(totals_of(*view.stats), copies, seconds_since(start));
    // The waits are short because signals and progress come in between.
    const std::optional<int> signal = wait_signal(std::chrono::milliseconds(0));
    if (signal && *signal != SIGUSR1 && !(*signal == SIGHUP && hangup_ignored)) {
      interrupted = *signal;
      second_signal_ends_process();
      supervisor.request_stop();
    }
    if (supervisor.wait_done(std::chrono::milliseconds(50))) break;
  }
  if (show_progress) std::fprintf(stderr, "\r\033[K");

  const Totals totals = totals_of(*view.stats);
  const double seconds = seconds_since(start);
  const bool succeeded = supervisor.all_succeeded();
  const bool moved_something = totals.frames_in > 0 || totals.bytes > 0;
  if (!arguments.quiet && moved_something) print_summary(totals, copies, seconds);
  if (arguments.json) print_json(*view.stats, totals, succeeded, seconds);
  const int status = interrupted ? 128 + *interrupted : succeeded ? kExitDone : kExitFailed;
  return exit_past_hangs(status, devices.get());
}

}  // namespace framelane
