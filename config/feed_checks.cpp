#include <algorithm>
#include <array>
#include <chrono>
#include <filesystem>
#include <system_error>

#include "config/feed_keys.hpp"
#include "config/name_checks.hpp"
#include "config/raw_formats.hpp"
#include "kernels/conversion.hpp"
#include "kernels/luma_histogram.hpp"
#include "pipeline/base/failure.hpp"
#include "pipeline/base/redact.hpp"
#include "pipeline/base/url.hpp"
#include "pipeline/output/file_pattern.hpp"

namespace framelane {
namespace {

using namespace std::chrono_literals;

constexpr std::array<std::string_view, 5> kRawKeys{"pixel_format", "size", "rate", "pitch",
                                                   "timestamps"};

/// A path that a muxer may write a file of its own to, as far as its name tells.
bool is_file(std::string_view url) {
  const auto path = local_path(url);
  return path && *path != "-" && !path->starts_with("/dev/");
}

std::string full_path(const std::string& path) {
  std::error_code error;
  return std::filesystem::absolute(path, error).lexically_normal().string();
}

struct TimeUnit {
  std::string_view fields;  ///< strftime's letters that tell it
  std::string_view example;
  std::chrono::seconds length;  ///< at least
};
// Finest first.
constexpr std::array<TimeUnit, 6> kTimeUnits{{{"STs", "%S", std::chrono::seconds(1)},
                                              {"MR", "%M", std::chrono::minutes(1)},
                                              {"HI", "%H", std::chrono::hours(1)},
                                              {"djFu", "%d", std::chrono::days(1)},
                                              {"mV", "%m", std::chrono::days(7)},
                                              {"Yy", "%Y", std::chrono::days(365)}}};

/// How long a name stays the same; nothing when it never changes. `pattern` is one FilePattern
/// took.
std::optional<std::chrono::seconds> name_changes_after(std::string_view pattern) {
  for (const TimeUnit& unit : kTimeUnits) {
    for (std::size_t at = pattern.find('%'); at < pattern.size(); at = pattern.find('%', at + 2)) {
      if (unit.fields.find(pattern[at + 1]) != std::string_view::npos) return unit.length;
    }
  }
  return std::nullopt;
}

class FeedChecks {
 public:
  FeedChecks(const Node& node, FeedOptions& feed, Reader& reader, OutputPlaces& places)
      : node_(node),
        feed_(feed),
        reader_(reader),
        problems_(reader.problems()),
        places_(places),
        input_(node.find("input")) {}

  void run() {
    check_input();
    complete_encodes();
    for (const EncodeOptions& encode : feed_.encodes) check_encode(encode);
    check_analyse();
    for (OutputOptions& output : feed_.outputs) {
      reader_.scope().output = output.name;
      complete_output(output);
      reader_.scope().output.reset();
    }
  }

 private:
  bool is_raw() const { return feed_.input.format == "rawvideo"; }

  void check_input() {
    if (input_ == nullptr || (input_->is_map() && input_->find("url") == nullptr)) {
      problems_.add(node_.key_position, node_.path + ".input.url",
                    "is missing; give the feed's source, for example rtsp://10.0.0.4/stream1");
    }
    if (input_ == nullptr || !input_->is_map()) return;
    check_backoff(*input_, feed_.input.reconnect);
    check_loop();
    check_input_names();
    const Node* format = input_->find("format");
    if (is_raw()) {
      check_raw();
    } else if (format == nullptr || reader_.is_certain(*format)) {
      for (const std::string_view key : kRawKeys) {
        const Node* found = input_->find(key);
        if (found == nullptr) continue;
        problems_.add(found->key_position, found->path,
                      "is for raw video alone; remove it, or set format: rawvideo");
      }
    }
    if (!is_raw()) feed_.input.raw.reset();
  }

  void check_loop() {
    const Node* loop = input_->find("loop");
    const Node* url = input_->find("url");
    if (!feed_.input.loop || loop == nullptr || url == nullptr || !reader_.is_certain(*url)) return;
    if (!is_file(feed_.input.url)) {
      problems_.add(*loop, "works on files alone, and the url of feed " + in_quotes(feed_.name) +
                               " names none; remove it");
    }
  }

  void check_input_names() {
    const Node* url = input_->find("url");
    const Node* options = input_->find("options");
    if (url == nullptr || feed_.input.url.empty() || !reader_.is_certain(*url)) return;
    if (const auto problem = unknown_scheme(feed_.input.url, false)) problems_.add(*url, *problem);
    if (options == nullptr || feed_.input.options.empty()) return;
    const AvNames known = is_raw() ? AvNames() : input_option_names(feed_.input);
    for (const AvOption& option : feed_.input.options) {
      const Node* node = options->find(option.key);
      if (is_raw() && !option.inherited) {
        problems_.add(node->key_position, node->path,
                      "has no effect on raw video, which is not read through FFmpeg; remove it");
      } else if (!known.empty()) {
        check_option(*node, option.key, known, "FFmpeg's protocols, demuxers and decoders");
      }
    }
  }

  void check_option(const Node& node, const std::string& name, const AvNames& known,
                    const std::string& owner) {
    if (const auto problem = unknown_option(name, known, owner)) {
      problems_.add(node.key_position, node.path, *problem);
    }
  }

  void check_raw() {
    struct Required {
      std::string_view key;
      std::string_view example;
    };
    for (const auto& [key, example] : {Required{"pixel_format", "bgra"},
                                       Required{"size", "1920x1080"}, Required{"rate", "30"}}) {
      if (input_->find(key) != nullptr) continue;
      problems_.add_missing(
          *input_, key,
          "raw video has no header that says it; for example " + std::string(example));
    }
    if (!feed_.input.raw) feed_.input.raw.emplace();
    const RawVideoOptions& raw = *feed_.input.raw;
    const Node* pitch = input_->find("pitch");
    const auto layout = raw_format_layout(raw.pixel_format);
    if (pitch == nullptr || raw.pitch == 0 || raw.width == 0 || !layout) return;
    const auto row = plane_row_bytes(*layout, 0, raw.width);
    if (static_cast<std::size_t>(raw.pitch) >= row) return;
    problems_.add(*pitch, "must be at least " + std::to_string(row) + ", the bytes of " +
                              std::to_string(raw.width) + " pixels of " + raw.pixel_format);
  }

  void check_backoff(const Node& owner, const BackoffOptions& backoff) {
    if (backoff.first <= backoff.max) return;
    if (const Node* first = owner.find({"reconnect", "first"})) {
      problems_.add(*first, "must not be longer than max, which is " +
                                kDuration.format(std::chrono::microseconds(backoff.max).count()));
    } else if (const Node* max = owner.find({"reconnect", "max"})) {
      problems_.add(*max, "must not be shorter than first, which is " +
                              kDuration.format(std::chrono::microseconds(backoff.first).count()));
    }
  }

  void complete_encodes() {
    if (feed_.encodes.empty()) {
      feed_.encodes.emplace_back();
      feed_.encodes.back().name = "main";
    }
    for (EncodeOptions& encode : feed_.encodes) {
      if (encode.copy_video || !encode.codecs.empty()) continue;
      encode.codecs.push_back({"libx264", {{"preset", "veryfast", false}}});
    }
  }

  void check_encode(const EncodeOptions& encode) {
    const Node* node = node_.find({"encodes", encode.name});
    if (node == nullptr) return;
    const Node* convert = node->find("convert");
    if (encode.copy_video && convert != nullptr) {
      problems_.add(convert->key_position, convert->path,
                    "has no effect with video: copy; remove one of the two");
    }
    if (encode.copy_video && is_raw()) {
      problems_.add(*node->find("video"),
                    "feed " + in_quotes(feed_.name) +
                        " has raw video, which must be encoded; give a codec, "
                        "or remove this encode from the feed with null");
    }
    if (!encode.copy_video && convert != nullptr && encode.format && is_raw()) {
      check_conversion(encode, *convert);
    }
  }

  void check_analyse() {
    const Node* node = node_.find("analyse");
    if (!feed_.analyse || node == nullptr) return;
    const auto encode =
        std::ranges::find(feed_.encodes, false, [](const auto& e) { return e.copy_video; });
    const std::string feed = "feed " + in_quotes(feed_.name);
    if (encode == feed_.encodes.end()) {
      problems_.add(*node, "needs frames, and every encode of " + feed +
                               " copies packets, so that nothing is decoded; set analyse: false "
                               "for it, or give an encode a codec");
    } else if (encode->format && !has_luma(*encode->format)) {
      problems_.add(*node, "measures luma, and encode " + in_quotes(encode->name) + " of " + feed +
                               ", the first that decodes, has convert.format " +
                               std::string(info(*encode->format).name) +
                               ", which has none; give it a YUV format, or set analyse: false");
    }
  }

  // Raw video is the one kind of source whose format is known before it is opened.
  void check_conversion(const EncodeOptions& encode, const Node& convert) {
    const RawVideoOptions& raw = *feed_.input.raw;
    const auto layout = raw_format_layout(raw.pixel_format);
    if (!layout || raw.width == 0) return;
    const auto yuv = [](const std::optional<Matrix>& matrix) {
      return matrix && *matrix != Matrix::kRgb ? *matrix : Matrix::kBt709;
    };
    Conversion conversion{raw.width, raw.height, *layout, {}, *encode.format, {}};
    ColorSpec& source = conversion.source_color;
    source.matrix = info(*layout).rgb ? Matrix::kRgb : yuv(feed_.input.color.matrix);
    source.siting = feed_.input.color.siting.value_or(Siting::kLeft);
    ColorSpec& target = conversion.target_color;
    target.matrix = info(*encode.format).rgb ? Matrix::kRgb : yuv(encode.color.matrix);
    target.siting = encode.color.siting.value_or(source.siting);
    if (const auto reason = why_unsupported(conversion)) {
      problems_.add(convert, "cannot be done for feed " + in_quotes(feed_.name) + ": " + *reason);
    }
  }

  void complete_output(OutputOptions& output) {
    const Node* node = node_.find({"outputs", output.name});
    if (node == nullptr || !node->is_map()) return;
    complete_from(output, *node);
    check_backoff(*node, output.reconnect);
    const Node* url = node->find("url");
    if (url == nullptr) {
      problems_.add_missing(*node, "url", "say where to write; null: discards");
    }
    if (output.segment && node->find("segment") == nullptr) {
      const Node* keep = node->find("keep");
      problems_.add(keep->key_position, keep->path,
                    "deletes old segments, and there are none without segment; set it, or remove "
                    "this");
    }
    if (url == nullptr || output.url.empty() || !reader_.is_certain(*url)) return;
    check_container(output, *node, *url);
    check_place(output, *url);
  }

  void check_container(const OutputOptions& output, const Node& node, const Node& url) {
    if (const auto problem = unknown_scheme(output.url, true)) return problems_.add(url, *problem);
    const Node* format = node.find("format");
    const bool format_known =
        format == nullptr || (reader_.is_certain(*format) && !unknown_muxer(output.format));
    if (!format_known) return;  // reported at the format
    const Container container = container_of(output);
    const Node* segment = node.find("segment");
    if (segment != nullptr && container.kind != OutputKind::kFile) {
      problems_.add(*segment, "works on plain files alone, and this output writes none; remove it");
    }
    if (container.kind == OutputKind::kNull) return;
    if (container.muxer == nullptr) {
      problems_.add(url,
                    "has no ending that tells its container; use .mp4, .mkv, .ts, .m3u8 or "
                    "another known one, or set format");
      return;
    }
    if (container.kind == OutputKind::kFile) check_name(output, url, container.url);
    const Node* options = node.find("options");
    if (options == nullptr || output.options.empty()) return;
    const AvNames known = output_option_names(container);
    const std::string owner = "the container " + std::string(container.muxer->name) + " here";
    for (const AvOption& option : output.options) {
      check_option(*options->find(option.key), option.key, known, owner);
    }
  }

  /// The name of a file is a pattern, whether it is cut into segments or not.
  void check_name(const OutputOptions& output, const Node& url, const std::string& path) {
    try {
      const FilePattern pattern(path);
    } catch (const FeedError& error) {
      // Without the path, which may hold what a variable holds.
      const std::string_view text = error.what();
      const std::string path_shown = redact(path) + ": ";
      problems_.add(
          url, "has a wrong name: " +
                   std::string(text.substr(text.starts_with(path_shown) ? path_shown.size() : 0)));
      return;
    }
    check_names_of_others(output, url, path);
    if (!output.segment || node_.find({"outputs", output.name})->find("segment") == nullptr) return;
    const auto change = name_changes_after(path);
    if (!change) {
      problems_.add(url,
                    "needs the time in it, so that every segment has a name of its own; for "
                    "example /srv/rec/${feed}/%Y-%m-%d/%H%M%S.mp4");
      return;
    }
    // Nothing tells less than a second; segments of less are numbered.
    const auto length = std::max<std::chrono::milliseconds>(output.segment->length, 1s);
    if (*change <= length) return;
    const auto finer =
        std::ranges::find_if(kTimeUnits.rbegin(), kTimeUnits.rend(),
                             [&](const TimeUnit& unit) { return unit.length <= length; });
    problems_.add(url, "gives the same name to segments that begin within " +
                           kDuration.format(std::chrono::microseconds(*change).count()) +
                           "; put a finer part of the time into it, " +
                           std::string(finer->example));
  }

  /// Which files are whose is told by their names alone.
  void check_names_of_others(const OutputOptions& output, const Node& url,
                             const std::string& path) {
    const bool deletes = output.segment && (output.segment->keep_age || output.segment->keep_bytes);
    const OutputPlaces::Files own{full_path(path), deletes, in_words(output)};
    for (const OutputPlaces::Files& other : places_.files) {
      if (own.pattern == other.pattern) continue;  // the same place, which is reported as that
      if (!(own.deletes || other.deletes) || !names_meet(own.pattern, other.pattern)) continue;
      const bool by_own = own.deletes;
      problems_.add(url, "can give the same names as " + other.output + ", so that keep of " +
                             (by_own ? own : other).output + " would delete files of " +
                             (by_own ? other : own).output +
                             "; put them into folders of their own, for example with ${feed}/");
      break;
    }
    places_.files.push_back(own);
  }

  std::string in_words(const OutputOptions& output) const {
    return "output " + in_quotes(output.name) + " of feed " + in_quotes(feed_.name);
  }

  void complete_from(OutputOptions& output, const Node& node) {
    const Node* from = node.find("from");
    if (from == nullptr) {
      output.from = feed_.encodes.front().name;
      return;
    }
    if (output.from.empty()) return;  // wrong, and reported, or open
    std::vector<std::string_view> names;
    for (const EncodeOptions& encode : feed_.encodes) names.emplace_back(encode.name);
    if (std::find(names.begin(), names.end(), output.from) != names.end()) return;
    problems_.add(*from, "feed " + in_quotes(feed_.name) + " has no encode " +
                             in_quotes(from->text) + "; it has: " + join(names));
  }

  void check_place(const OutputOptions& output, const Node& url) {
    if (url_scheme(output.url) == "null") return;
    const auto path = local_path(output.url);
    const std::string place = path ? full_path(*path) : output.url;
    const std::string self = in_words(output);
    const auto [taken, is_new] = places_.taken.emplace(place, self);
    if (is_new) return;
    problems_.add(url, self + " would write to the same place as " + taken->second +
                           "; put ${feed} or ${output} into the url");
  }

  const Node& node_;
  FeedOptions& feed_;
  Reader& reader_;
  Problems& problems_;
  OutputPlaces& places_;
  const Node* input_;
};

}  // namespace

void complete_feed(const Node& node, FeedOptions& feed, Reader& reader, OutputPlaces& places) {
  FeedChecks(node, feed, reader, places).run();
}

}  // namespace framelane
