#include "daemon/recordings_request.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "daemon/file_answer.hpp"
#include "daemon/json_text.hpp"
#include "daemon/query.hpp"
#include "pipeline/av/av_log_capture.hpp"
#include "pipeline/base/failure.hpp"
#include "pipeline/base/utc_time.hpp"
#include "pipeline/output/container.hpp"
#include "pipeline/output/recording_list.hpp"
#include "pipeline/output/recording_span.hpp"

namespace framelane {
namespace {

using Json = nlohmann::ordered_json;
using std::chrono::hours;
using std::chrono::system_clock;

constexpr hours kDefaultSpan{24};
constexpr hours kMostListed{31 * 24};
/// Longer gaps would not fit into an MP4's durations.
constexpr hours kMostInOneFile{6};
constexpr std::string_view kSpanSuffix = ".mp4";

RequestError wrong_time(const std::string& key, const std::string& why) {
  return {400, "wrong_parameter", key + ": " + why, key};
}

/// The request's from and to.
TimeSpan span_in(const HttpRequest& request, system_clock::time_point now, hours most) {
  TimeSpan span;
  span.to = time_in(request, "to").value_or(now);
  span.from = time_in(request, "from").value_or(span.to - kDefaultSpan);
  if (span.from >= span.to) throw wrong_time("from", "must be before to");
  if (span.to - span.from > most) {
    throw wrong_time("from", fmt::format("is more than {} hours before to", most.count()));
  }
  return span;
}

bool writes_files(const OutputOptions& output) {
  return container_of(output).kind == OutputKind::kFile;
}

OutputOptions require_output(const FeedOptions& feed, const std::string& name,
                             const std::string& key) {
  const auto output = std::ranges::find(feed.outputs, name, &OutputOptions::name);
  if (output != feed.outputs.end() && writes_files(*output)) return *output;
  throw RequestError(404, "no_such_output",
                     "the feed has no output '" + name + "' that writes files", key);
}

/// What an output's files cannot be read for.
RequestError cannot_read(const std::string& why) {
  return {500, "unreadable", "the recordings cannot be read: " + redact(why)};
}

/// One for the process: what is read once need not be read again for another page.
const std::shared_ptr<RecordingCache>& recording_cache() {
  static const auto cache = std::make_shared<RecordingCache>();
  return cache;
}

double seconds_of(const TimeSpan& span) {
  return static_cast<double>(
             std::chrono::duration_cast<std::chrono::milliseconds>(span.to - span.from).count()) /
         1000;
}

Json json_of(const std::string& output, const RecordingList& list) {
  Json files = Json::array();
  for (const Recording& recording : list.recordings) {
    files.push_back({{"file", recording.file},
                     {"begin", utc_time(recording.times.begin)},
                     {"end", utc_time(recording.times.end)},
                     {"bytes", recording.bytes},
                     {"complete", recording.complete}});
  }
  Json gaps = Json::array();
  for (const TimeSpan& gap : list.gaps) {
    gaps.push_back(
        {{"begin", utc_time(gap.from)}, {"end", utc_time(gap.to)}, {"seconds", seconds_of(gap)}});
  }
  return {{"output", output}, {"files", std::move(files)}, {"gaps", std::move(gaps)}};
}

HttpResponse list_of(const std::vector<OutputOptions>& outputs, const TimeSpan& span,
                     system_clock::time_point now, const ReadingEnds& ends) {
  Json all = Json::array();
  for (const OutputOptions& output : outputs) {
    all.push_back(
        json_of(output.name, list_recordings(output, span, now, *recording_cache(), ends)));
  }
  const Json json{
      {"from", utc_time(span.from)}, {"to", utc_time(span.to)}, {"outputs", std::move(all)}};
  HttpResponse response;
  response.body = json_text(json) + "\n";
  return response;
}

void send_file(const HttpRequest& request, const OutputOptions& output, const std::string& file,
               DiskAnswer& answer) {
  const FileDescriptor opened = open_recording(output, file);
  if (const int error = errno; opened.get() < 0) {
    throw open_error(error, file,
                     {404, "no_such_recording",
                      "the output has no recording '" + file + "'; it may have been deleted"});
  }
  answer_with_file(request, opened, file, answer);
}

struct ClientGone {};

void send_span(const HttpRequest& request, const std::string& feed, const OutputOptions& output,
               const TimeSpan& span, const std::shared_ptr<DiskAnswer>& answer) {
  const ReadingEnds ends = [answer] { return answer->is_gone(); };
  RecordingList list = list_recordings(output, span, system_clock::now(), *recording_cache(), ends);
  RecordingSpan made(output, std::move(list.recordings), span, ends);
  const std::string begin = utc_time(made.begin());
  std::string name = feed + "-" + output.name + "-" + begin.substr(0, 19) + "Z.mp4";
  std::erase(name, ':');
  HttpResponse response{.content_type = "video/mp4"};
  response.headers = {{"Accept-Ranges", "none"},
                      {"Content-Disposition", "inline; filename=\"" + name + "\""},
                      {"X-Framelane-Begin", begin}};
  if (!made.left_out().empty()) {
    response.headers.emplace("X-Framelane-Left-Out", made.left_out());
  }
  answer->begin(std::move(response));
  if (request.method == "HEAD") return;
  try {
    made.write([&](std::string_view piece) {
      if (!answer->send(std::string(piece))) throw ClientGone();
    });
  } catch (const ClientGone&) {
  }
}

/// Has a disk's thread answer, with its failures as what the client is told.
HttpResponse read_with(DiskReaders& readers, const std::string& feed, DiskReaders::Read read) {
  return readers.answer("feed " + feed,
                        [read = std::move(read)](const std::shared_ptr<DiskAnswer>& answer) {
                          const AvLogCapture log;  // the client is told
                          try {
                            read(answer);
                          } catch (const RecordingsRefused& refusal) {
                            if (refusal.code == "too_large") {
                              throw wrong_time("from", refusal.what());
                            }
                            const int status = refusal.code == "no_recording" ? 404 : 409;
                            throw RequestError(status, refusal.code, refusal.what());
                          } catch (const IoError& error) {
                            throw cannot_read(error.what());
                          }
                        });
}

}  // namespace

HttpResponse answer_recordings(const HttpRequest& request, const Supervisor& supervisor,
                               DiskReaders& readers, const std::string& feed_name,
                               const std::string& path) {
  const FeedView feed = require_feed(supervisor, feed_name);
  const auto now = system_clock::now();
  if (path.empty()) {
    require_known(request, {"from", "to", "output"});
    const TimeSpan span = span_in(request, now, kMostListed);
    const std::string name = text_in(request, "output");
    std::vector<OutputOptions> outputs;
    if (!name.empty()) {
      outputs.push_back(require_output(*feed.options, name, "output"));
    } else {
      std::ranges::copy_if(feed.options->outputs, std::back_inserter(outputs), writes_files);
    }
    return read_with(readers, feed_name, [=](const std::shared_ptr<DiskAnswer>& answer) {
      answer->answer(list_of(outputs, span, now, [&] { return answer->is_gone(); }));
    });
  }
  const std::string rest = path.substr(1);
  if (const std::size_t slash = rest.find('/'); slash != std::string::npos) {
    require_known(request, {});
    const OutputOptions output = require_output(*feed.options, rest.substr(0, slash), {});
    return read_with(readers, feed_name,
                     [=, file = rest.substr(slash + 1)](const std::shared_ptr<DiskAnswer>& answer) {
                       send_file(request, output, file, *answer);
                     });
  }
  if (!rest.ends_with(kSpanSuffix)) {
    throw RequestError(404, "not_found",
                       "there is nothing here; ask for OUTPUT/FILE, or for OUTPUT.mp4");
  }
  require_known(request, {"from", "to"});
  for (const char* const key : {"from", "to"}) {
    if (!request.query.contains(key)) throw wrong_time(key, "is needed here");
  }
  const TimeSpan span = span_in(request, now, kMostInOneFile);
  const OutputOptions output =
      require_output(*feed.options, rest.substr(0, rest.size() - kSpanSuffix.size()), {});
  return read_with(readers, feed_name, [=](const std::shared_ptr<DiskAnswer>& answer) {
    send_span(request, feed_name, output, span, answer);
  });
}

}  // namespace framelane
