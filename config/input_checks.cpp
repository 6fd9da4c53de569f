#include <algorithm>
#include <array>
#include <cstddef>
#include <filesystem>
#include <string>
#include <string_view>
#include <system_error>

#include "config/feed_checks.hpp"
#include "config/name_checks.hpp"
#include "config/raw_formats.hpp"
#include "kernels/picture_mask.hpp"
#include "kernels/pixel_format.hpp"
#include "pipeline/base/url.hpp"
#include "pipeline/feed/feed_options.hpp"

namespace framelane {
namespace {

constexpr std::array<std::string_view, 5> kRawKeys{"pixel_format", "size", "rate", "pitch",
                                                   "timestamps"};
/// They limit FFmpeg.
constexpr std::array<std::string_view, 5> kAccessKeys{"protocols", "formats", "decoders",
                                                      "addresses", "limits"};

/// Whether a URL names a plain file that can be read again from its start, as far as its text
/// shows. Under /dev, where devices are, the file system is asked.
bool is_file(std::string_view url) {
  const auto path = local_path(url);
  if (!path || *path == "-") return false;
  std::error_code error;
  return !path->starts_with("/dev/") || path->starts_with("/dev/shm/") ||
         std::filesystem::is_regular_file(*path, error);
}

/// Whether a value stands in the defaults, or in the file's own limits.
bool is_for_all_feeds(const Node& value) {
  return value.path.starts_with("defaults.") || value.path.starts_with("limits");
}

class InputChecks {
 public:
  /// `input` is the map that `read.feed.input` was read from.
  InputChecks(const ReadFeed& read, const Node& input)
      : node_(read.node),
        input_(input),
        feed_(read.feed),
        reader_(read.reader),
        problems_(read.problems()) {}

  void run() {
    check_backoff(input_, feed_.input.reconnect, problems_);
    check_loop();
    check_names();
    const Node* format = input_.find("format");
    if (is_raw(feed_)) {
      check_raw();
      check_mask();
    } else if (format == nullptr || reader_.is_certain(*format)) {
      refuse_raw_keys();
    }
  }

 private:
  /// Other pictures are known only when they come.
  void check_mask() {
    const RawVideoOptions& raw = *feed_.input.raw;
    const Node* const mask = node_.find("mask");
    const auto layout = raw_format_layout(raw.pixel_format);
    if (mask == nullptr || feed_.input.mask.empty() || !layout || raw.width == 0) return;
    const auto is_wrong = [](const MaskShape& one) { return why_no_polygon(one.polygon); };
    if (std::ranges::any_of(feed_.input.mask, is_wrong)) return;  // which is a problem of its own
    const ColorSpec color{.matrix = info(*layout).rgb ? Matrix::kRgb : Matrix::kBt709};
    const int shape = PictureMask(feed_.input.mask, *layout, {raw.width, raw.height}, color)
                          .first_without_cover();
    const auto shapes = mask->items_or_self();
    if (shape < 0 || static_cast<std::size_t>(shape) >= shapes.size()) return;
    problems_.add(shapes[static_cast<std::size_t>(shape)],
                  "lies between the pixels of " + std::to_string(raw.width) + 'x' +
                      std::to_string(raw.height) +
                      " and covers none; make its polygon larger, or remove it");
  }

  void check_loop() {
    const Node* loop = input_.find("loop");
    const Node* url = input_.find("url");
    if (!feed_.input.loop || loop == nullptr || url == nullptr || !reader_.is_certain(*url)) return;
    if (!is_file(feed_.input.url)) {
      problems_.add(*loop, "works only with files, and the url of feed " + in_quotes(feed_.name) +
                               " is not a file; remove it");
    }
  }

  void check_names() {
    const Node* url = input_.find("url");
    const Node* options = input_.find("options");
    if (url == nullptr || feed_.input.url.empty() || !reader_.is_certain(*url)) return;
    if (const auto problem = wrong_input_url(feed_.input.url, feed_.input.options)) {
      problems_.add(*url, *problem);
    } else if (is_raw(feed_) && !is_place_of_raw_video(feed_.input.url)) {
      problems_.add(*url, std::string(kNoPlaceOfRawVideo));
    } else if (!is_raw(feed_) && shm_socket(feed_.input.url)) {
      problems_.add(*url, std::string(kNeedsRawVideo));
    }
    if (options == nullptr || feed_.input.options.empty()) return;
    const bool raw = is_raw(feed_);
    const AvNames known = raw ? AvNames() : input_option_names(feed_.input);
    for (const AvOption& option : feed_.input.options) {
      const Node* node = options->find(option.key);
      if (raw && !option.inherited) {
        problems_.add(node->key_position, node->path,
                      "has no effect on raw video, which is not read through FFmpeg; remove it");
      } else if (!raw && option.key == "http_persistent") {
        problems_.add(node->key_position, node->path,
                      "is refused: framelane looks at each playlist before FFmpeg does, on a "
                      "connection of its own; remove it");
      } else if (option.key == "protocol_whitelist" && !feed_.input.protocols.empty()) {
        problems_.add(node->key_position, node->path,
                      "says what input.protocols says too; keep input.protocols");
      } else if (!known.empty()) {
        check_option(*node, option.key, known, "FFmpeg's protocols, demuxers and decoders",
                     problems_);
      }
    }
  }

  void refuse_raw_keys() {
    for (const std::string_view key : kRawKeys) {
      const Node* found = input_.find(key);
      if (found == nullptr) continue;
      problems_.add(found->key_position, found->path,
                    "is only for raw video; remove it, or set format: rawvideo");
    }
  }

  void check_raw() {
    struct Required {
      std::string_view key;
      std::string_view example;
    };
    for (const auto& [key, example] : {Required{"pixel_format", "bgra"},
                                       Required{"size", "1920x1080"}, Required{"rate", "30"}}) {
      if (input_.find(key) != nullptr) continue;
      problems_.add_missing(
          input_, key, "raw video has no header that says it; for example " + std::string(example));
    }
    for (const std::string_view key : kAccessKeys) {
      const Node* found = input_.find(key);
      if (found == nullptr || is_for_all_feeds(*found)) continue;
      problems_.add(found->key_position, found->path,
                    "has no effect on raw video, which is not read through FFmpeg; remove it");
    }
    if (!feed_.input.raw) feed_.input.raw.emplace();
    const RawVideoOptions& raw = *feed_.input.raw;
    check_shared_memory();
    const Node* decoder = input_.find("decoder");
    if (decoder != nullptr && feed_.input.decoder == InputOptions::DecoderKind::kNvdec) {
      problems_.add(*decoder, "is nvdec, and raw video is not decoded; remove it");
    }
    const Node* skip = node_.find("skip");
    if (skip != nullptr && feed_.input.skip != Skip::kNone) {
      problems_.add(*skip, "is for compressed video, and raw video is not decoded; remove it");
    }
    const Node* pitch = input_.find("pitch");
    const auto layout = raw_format_layout(raw.pixel_format);
    if (pitch == nullptr || raw.pitch == 0 || raw.width == 0 || !layout) return;
    const auto row = plane_row_bytes(*layout, 0, raw.width);
    if (static_cast<std::size_t>(raw.pitch) >= row) return;
    problems_.add(*pitch, "must be at least " + std::to_string(row) + ", the bytes of " +
                              std::to_string(raw.width) + " pixels of " + raw.pixel_format);
  }

  void check_shared_memory() {
    const Node* url = input_.find("url");
    if (url == nullptr || !reader_.is_certain(*url)) return;
    const Node* pitch = input_.find("pitch");
    const Node* timestamps = input_.find("timestamps");
    const bool shared = shm_socket(feed_.input.url).has_value();
    const Node* pace = input_.find("pace");
    if (shared && pace != nullptr && feed_.input.pace == InputOptions::Pace::kRealtime) {
      problems_.add(*pace,
                    "is realtime, and shared memory is live already: its producer sends a frame as "
                    "each is due; remove it");
    }
    if (shared && pitch != nullptr) {
      problems_.add(*pitch,
                    "has no effect on shared memory, where rows are laid out as GStreamer does it; "
                    "remove it");
    }
    const bool producer = feed_.input.raw->timestamps == RawVideoOptions::Timestamps::kProducer;
    if (!shared && producer && timestamps != nullptr) {
      problems_.add(*timestamps,
                    "is producer, and only shared memory (shm:SOCKET) says when a frame was taken; "
                    "write arrival or rate");
    }
  }

  const Node& node_;
  const Node& input_;
  FeedOptions& feed_;
  Reader& reader_;
  Problems& problems_;
};

}  // namespace

void check_input(const ReadFeed& read) {
  const Node* input = read.node.find("input");
  if (input == nullptr || (input->is_map() && input->find("url") == nullptr)) {
    read.problems().add(read.node.key_position, read.node.path + ".input.url",
                        "is missing; give the feed's source, for example rtsp://10.0.0.4/stream1");
  }
  if (input == nullptr || !input->is_map()) return;
  InputChecks(read, *input).run();
  if (!is_raw(read.feed)) read.feed.input.raw.reset();
}

}  // namespace framelane
