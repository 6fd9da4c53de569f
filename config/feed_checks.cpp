#include <algorithm>
#include <array>
#include <filesystem>
#include <system_error>

#include "config/feed_keys.hpp"
#include "config/raw_formats.hpp"
#include "kernels/conversion.hpp"
#include "pipeline/url.hpp"

namespace framelane {
namespace {

constexpr std::array<std::string_view, 5> kRawKeys{"pixel_format", "size", "rate", "pitch",
                                                   "timestamps"};

/// A path that a muxer may write a file of its own to, as far as its name tells.
bool is_file(std::string_view url) {
  const auto path = local_path(url);
  return path && *path != "-" && !path->starts_with("/dev/");
}

bool writes_playlist(const OutputOptions& output) {
  return output.format == "hls" || output.format == "dash" || output.url.ends_with(".m3u8") ||
         output.url.ends_with(".mpd");
}

/// Whether strftime would put a part of the time into it.
bool has_time_field(std::string_view pattern) {
  for (std::size_t i = 0; i + 1 < pattern.size(); ++i) {
    if (pattern[i] != '%') continue;
    const std::size_t field = pattern.find_first_not_of("-_0^#EO", i + 1);
    if (field == std::string_view::npos) return false;
    constexpr std::string_view kNotTime = "%nt";
    if (kNotTime.find(pattern[field]) == std::string_view::npos) return true;
    i = field;
  }
  return false;
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
    if (const Node* segment = node->find("segment")) check_segment(output, *segment, *url);
    check_place(output, *url);
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

  void check_segment(const OutputOptions& output, const Node& segment, const Node& url) {
    if (!is_file(output.url) || writes_playlist(output)) {
      problems_.add(segment, "works on plain files alone, and this output writes none; remove it");
    } else if (!has_time_field(output.url)) {
      problems_.add(url,
                    "needs the time in it, so that every segment has a name of its own; for "
                    "example /srv/rec/${feed}/%Y-%m-%d/%H%M%S.mp4");
    }
  }

  void check_place(const OutputOptions& output, const Node& url) {
    if (url_scheme(output.url) == "null") return;
    const auto path = local_path(output.url);
    std::error_code error;
    const std::string place =
        path ? std::filesystem::absolute(*path, error).lexically_normal().string() : output.url;
    const std::string self =
        "output " + in_quotes(output.name) + " of feed " + in_quotes(feed_.name);
    const auto [taken, is_new] = places_.emplace(place, self);
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
