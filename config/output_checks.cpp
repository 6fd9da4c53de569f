#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <filesystem>
#include <iterator>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "config/feed_checks.hpp"
#include "config/name_checks.hpp"
#include "config/output_places.hpp"
#include "pipeline/base/failure.hpp"
#include "pipeline/base/redact.hpp"
#include "pipeline/base/url.hpp"
#include "pipeline/feed/feed_options.hpp"
#include "pipeline/output/container.hpp"
#include "pipeline/output/file_pattern.hpp"
#include "pipeline/output/hls_files.hpp"
#include "pipeline/output/hls_options.hpp"

namespace framelane {
namespace {

using namespace std::chrono_literals;

/// The same of a pattern. The name of the current folder has no fields.
std::string full_pattern(const std::string& pattern) {
  std::error_code error;
  const std::string folder = std::filesystem::current_path(error).string();
  return (std::filesystem::path(pattern_of(folder)) / pattern).lexically_normal().string();
}

struct TimeField {
  std::string_view fields;  ///< strftime's letters that tell it
  std::string_view example;
  std::chrono::seconds length;  ///< the shortest one
};
// Finest first.
constexpr std::array<TimeField, 6> kTimeFields{{{"STs", "%S", std::chrono::seconds(1)},
                                                {"MR", "%M", std::chrono::minutes(1)},
                                                {"HI", "%H", std::chrono::hours(1)},
                                                {"djFu", "%d", std::chrono::days(1)},
                                                {"mV", "%m", std::chrono::days(7)},
                                                {"Yy", "%Y", std::chrono::days(365)}}};

/// How long a file name stays the same; nothing if it never changes. `pattern` has been accepted by
/// FilePattern.
std::optional<std::chrono::seconds> name_changes_after(std::string_view pattern) {
  for (const TimeField& unit : kTimeFields) {
    for (std::size_t at = pattern.find('%'); at < pattern.size(); at = pattern.find('%', at + 2)) {
      if (unit.fields.find(pattern[at + 1]) != std::string_view::npos) return unit.length;
    }
  }
  return std::nullopt;
}

/// The checks of one output. `node` is the map it was read from.
class OutputChecks {
 public:
  OutputChecks(const ReadFeed& read, const Node& node, OutputOptions& output, OutputPlaces& places)
      : node_(node),
        feed_node_(read.node),
        feed_(read.feed),
        output_(output),
        reader_(read.reader),
        problems_(read.problems()),
        places_(places) {}

  void run() {
    complete_from();
    check_backoff(node_, output_.reconnect, problems_);
    const Node* url = node_.find("url");
    if (url == nullptr) {
      problems_.add_missing(node_, "url", "say where to write; null: discards");
    }
    if (output_.segment && node_.find("segment") == nullptr) {
      const Node* keep = node_.find("keep");
      problems_.add(
          keep->key_position, keep->path,
          "deletes old segments, and without segment there are none; set segment, or remove keep");
    }
    if (url == nullptr || output_.url.empty() || !reader_.is_certain(*url)) return;
    check_container(*url);
    check_place_is_free(*url);
  }

 private:
  void complete_from() {
    const Node* from = node_.find("from");
    if (!output_.master.empty()) return;  // make_renditions() has set it
    if (from == nullptr) {
      output_.from = feed_.encodes.front().name;
      return;
    }
    if (output_.from.empty()) return;  // wrong and reported, or a variable without a value
    std::vector<std::string_view> names;
    for (const EncodeOptions& encode : feed_.encodes) names.emplace_back(encode.name);
    if (std::find(names.begin(), names.end(), output_.from) != names.end()) return;
    problems_.add(*from, "feed " + in_quotes(feed_.name) + " has no encode " +
                             in_quotes(from->text) + "; it has: " + join(names));
  }

  void check_container(const Node& url) {
    if (const auto problem = unknown_scheme(output_.url, true)) return problems_.add(url, *problem);
    if (const auto problem = wrong_address(output_.url, output_.options, true)) {
      return problems_.add(url, *problem);
    }
    const Node* format = node_.find("format");
    const bool format_known =
        format == nullptr || (reader_.is_certain(*format) && !unknown_muxer(output_.format));
    if (!format_known) return;  // already reported, at the format
    const Container container = container_of(output_);
    const Node* segment = node_.find("segment");
    if (segment != nullptr && container.kind != OutputKind::kFile) {
      problems_.add(*segment,
                    "works only with plain files, and this output writes none; remove it");
    }
    if (container.kind == OutputKind::kNull) return;
    if (container.muxer == nullptr) {
      problems_.add(url,
                    "has no ending that names a container; use .mp4, .mkv, .ts, .m3u8 or "
                    "another known one, or set format");
      return;
    }
    const auto from = std::ranges::find(feed_.encodes, output_.from, &EncodeOptions::name);
    if (from != feed_.encodes.end()) {
      output_.gop = from->copy_video ? std::nullopt : from->gop;
      const auto no_video = video_not_held(*from, container);
      if (no_video && output_.master.empty()) {  // make_renditions() has reported it
        problems_.add(url, "takes encode " + in_quotes(from->name) + ", " + *no_video);
      }
      if (const auto problem = audio_not_held(*from, container)) {
        problems_.add(url,
                      "takes encode " + in_quotes(from->name) + ", whose audio.codec " + *problem);
      }
    }
    const bool playlist = container.kind == OutputKind::kPlaylist;
    if (container.kind == OutputKind::kFile) {
      check_file_pattern(url, container.url);
    } else if (playlist && container.local) {
      check_path(url, container.url);
      const auto time = time_in_playlist_path(container.url);
      if (time && output_.master.empty()) return problems_.add(url, *time);
      check_names_of_segments(url, container.url);
    } else if (playlist) {
      problems_.add(url, "is a playlist on a server; write it into a folder that a server serves");
    }
    const Node* options = node_.find("options");
    if (options == nullptr || output_.options.empty()) return;
    const AvNames known = output_option_names(container);
    const std::string owner = "the container " + std::string(name_of(container)) + " here";
    for (const AvOption& option : output_.options) {
      const Node& value = *options->find(option.key);
      const auto refused = playlist ? why_hls_option_refused(option.key) : std::nullopt;
      if (refused) {
        problems_.add(value.key_position, value.path, "is refused: " + std::string(*refused));
        continue;
      }
      check_option(value, option.key, known, owner, problems_);
      if (!playlist || !reader_.is_certain(value)) continue;
      if (const auto problem = wrong_hls_value(option)) {
        problems_.add(value, *problem);
      } else if (option.key == "hls_flags" && from != feed_.encodes.end() && lacks_gop(*from) &&
                 read_hls_options(output_.name, {option}).independent_segments) {
        problems_.add(value, std::string(kNeedsGop));
      }
    }
  }

  /// True if nothing says how far apart the encode's keyframes are.
  bool lacks_gop(const EncodeOptions& encode) const {
    const Node* video = feed_node_.find({"encodes", encode.name, "video"});
    const Node* gop = feed_node_.find({"encodes", encode.name, "video", "gop"});
    for (const Node* node : {video, gop}) {
      if (node != nullptr && !node->is_map() && !reader_.is_certain(*node)) return false;
    }
    return encode.copy_video || !encode.gop;
  }

  void check_path(const Node& url, const std::string& path) {
    if (const auto problem = wrong_file_path(path)) problems_.add(url, *problem);
  }

  /// The name of every output file is a pattern, also without segments.
  void check_file_pattern(const Node& url, const std::string& path) {
    try {
      check_path(url, FilePattern(path).name_at(std::chrono::system_clock::now()));
    } catch (const FeedError& error) {
      // Shown without the path, which may contain the value of a variable.
      const std::string_view text = error.what();
      const std::string path_shown = redact(path) + ": ";
      problems_.add(
          url, "has a wrong name: " +
                   std::string(text.substr(text.starts_with(path_shown) ? path_shown.size() : 0)));
      return;
    }
    const bool keeps = output_.segment && output_.segment->deletes();
    check_deletes_only_own_files(url, path, {path}, keeps ? "keep" : "");
    if (output_.segment && node_.find("segment") != nullptr) check_names_differ(url, path);
  }

  /// Segments that begin at different times must have different names.
  void check_names_differ(const Node& url, const std::string& path) {
    const auto change = name_changes_after(path);
    if (!change) {
      problems_.add(url,
                    "must contain the time, so that every segment gets a name of its own; for "
                    "example /srv/rec/${feed}/%Y-%m-%d/%H%M%S.mp4");
      return;
    }
    // No field is finer than a second. Segments shorter than that get numbers.
    const auto length = std::max<std::chrono::milliseconds>(output_.segment->length, 1s);
    if (*change <= length) return;
    const auto finer =
        std::ranges::find_if(kTimeFields.rbegin(), kTimeFields.rend(),
                             [&](const TimeField& unit) { return unit.length <= length; });
    problems_.add(url, "gives the same name to segments that begin within " +
                           kDuration.format(std::chrono::microseconds(*change).count()) +
                           "; add a finer part of the time, such as " +
                           std::string(finer->example));
  }

  /// A playlist replaces and deletes whatever has the name of one of its segments. Their names are
  /// URIs too.
  void check_names_of_segments(const Node& url, const std::string& path) {
    constexpr std::string_view kKey = "hls_segment_filename";
    constexpr std::string_view kBaseUrl = "hls_base_url";
    const auto named = std::ranges::find(output_.options, kKey, &AvOption::key);
    std::string segment_filename;
    if (named != output_.options.end()) {
      // A wrong one is reported elsewhere.
      const Node& node = *node_.find("options")->find(named->key);
      if (!reader_.is_certain(node) || wrong_hls_value(*named)) return;
      segment_filename = named->value;
      const std::string first = NumberSeries::parse(segment_filename)->name(0);
      if (const auto problem = wrong_file_path(first)) return problems_.add(node, *problem);
    }
    const HlsFiles files(path, segment_filename);
    const auto base_url = std::ranges::find(output_.options, kBaseUrl, &AvOption::key);
    const std::string_view before =
        base_url == output_.options.end() ? std::string_view() : base_url->value;
    if (const auto problem = files.why_not_found(before)) return problems_.add(url, *problem);
    check_deletes_only_own_files(url, path, files.patterns(), "the playlist");
  }

  /// Outputs recognise their files by their names alone, so no other output may use names that fit
  /// the patterns of one that deletes.
  void check_deletes_only_own_files(const Node& url, const std::string& path,
                                    const std::vector<std::string>& patterns,
                                    std::string_view deleted_by) {
    bool reported = false;
    for (const std::string& pattern : patterns) {
      OutputPlaces::Files own{full_path(path), FilePattern(full_pattern(pattern)), deleted_by,
                              described()};
      for (const OutputPlaces::Files* other : places_.near(own.pattern)) {
        if (reported) break;
        reported = report_if_deleted(url, own, *other);
      }
      places_.add(std::move(own));
    }
  }

  bool report_if_deleted(const Node& url, const OutputPlaces::Files& own,
                         const OutputPlaces::Files& other) {
    if (own.place == other.place) return false;  // reported by check_place_is_free
    if (own.deleted_by.empty() && other.deleted_by.empty()) return false;
    if (!own.pattern.meets(other.pattern)) return false;
    const bool by_own = !own.deleted_by.empty();
    const OutputPlaces::Files& by = by_own ? own : other;
    problems_.add(url, "can give the same names as " + other.output + ", so that " +
                           std::string(by.deleted_by) + " of " + by.output +
                           " would delete files of " + (by_own ? other : own).output +
                           "; use separate folders, for example with ${feed}/");
    return true;
  }

  void check_place_is_free(const Node& url) {
    if (url_scheme(output_.url) == "null") return;
    const auto path = local_path(output_.url);
    const std::string place = path ? full_path(*path) : output_.url;
    const std::string self = described();
    const std::string& owner = places_.take(place, self);
    if (owner == self) return;
    problems_.add(url, self + " would write to the same place as " + owner +
                           "; put ${feed} or ${output} into the url");
  }

  /// The output's name in a message.
  std::string described() const {
    return "output " + in_quotes(output_.name) + " of feed " + in_quotes(feed_.name);
  }

  const Node& node_;
  const Node& feed_node_;
  const FeedOptions& feed_;
  OutputOptions& output_;
  Reader& reader_;
  Problems& problems_;
  OutputPlaces& places_;
};

}  // namespace

std::optional<std::string> time_in_playlist_path(std::string_view path) {
  for (std::size_t at = path.find('%'); at < path.size(); at = path.find('%', at + 1)) {
    if (at + 1 == path.size()) break;
    const bool is_field = std::ranges::any_of(kTimeFields, [&](const TimeField& unit) {
      return unit.fields.find(path[at + 1]) != std::string_view::npos;
    });
    if (is_field) {
      return "has " + std::string(path.substr(at, 2)) +
             ", and a playlist stays where it is: there would be a folder or file of that very "
             "name; remove it";
    }
  }
  return {};
}

std::string full_path(const std::string& path) {
  std::error_code error;
  return std::filesystem::absolute(path, error).lexically_normal().string();
}

void check_output(const ReadFeed& read, const Node& node, OutputOptions& output,
                  OutputPlaces& places) {
  OutputChecks(read, node, output, places).run();
}

void complete_outputs(const ReadFeed& read, OutputPlaces& places) {
  std::vector<OutputOptions> outputs;
  for (OutputOptions& output : read.feed.outputs) {
    const Node* node = read.node.find({"outputs", output.name});
    if (node == nullptr || !node->is_map()) {
      outputs.push_back(std::move(output));
      continue;
    }
    read.reader.scope().output = output.name;
    const Node* from = node->find("from");
    if (from != nullptr && from->kind == Node::Kind::kSequence) {
      std::ranges::move(make_renditions(read, *node, output, places), std::back_inserter(outputs));
    } else {
      check_output(read, *node, output, places);
      outputs.push_back(std::move(output));
    }
    read.reader.scope().output.reset();
  }
  read.feed.outputs = std::move(outputs);
}

}  // namespace framelane
