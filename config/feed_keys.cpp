#include "config/feed_keys.hpp"

#include <optional>
#include <string>
#include <utility>

#include "config/common_keys.hpp"
#include "pipeline/feed/feed_options.hpp"

namespace framelane {
namespace {

/// A key with a map from names to values. `read` reads one entry.
template <typename T>
Key<T> named(std::string_view name, Shape element, std::string_view help,
             void (*read)(const Node::Entry&, T&, Reader&)) {
  const Shape shape = map_of(std::move(element));
  return {{name, shape, help}, [shape, read](const Node& node, T& target, Reader& reader) {
            if (!reader.require_map(node, shape)) return;
            for (const Node::Entry& entry : node.entries) {
              if (!is_identifier(entry.key)) {
                reader.problems().add(entry.value.key_position, entry.value.path,
                                      "must be " + std::string(kIdentifier.expected));
              } else if (entry.value.kind == Node::Kind::kNull) {
                reader.wrong_type(entry.value, *shape.element);
              } else {
                read(entry, target, reader);
              }
            }
          }};
}

void read_encode(const Node::Entry& entry, FeedOptions& feed, Reader& reader) {
  EncodeOptions encode;
  encode.name = entry.key;
  encode_keys().read(entry.value, encode, reader);
  feed.encodes.push_back(std::move(encode));
}

void read_output(const Node::Entry& entry, FeedOptions& feed, Reader& reader) {
  OutputOptions output;
  output.name = entry.key;
  reader.scope().output = entry.key;
  output_keys().read(entry.value, output, reader);
  reader.scope().output.reset();
  feed.outputs.push_back(std::move(output));
}

const Section<FeedOptions>& on_gap_keys() {
  using namespace std::chrono_literals;
  static const Section<FeedOptions> keys = [] {
    Shape split_after = range(kDuration, micros(100ms), micros(24h));
    split_after.words = {"never"};
    return Section<FeedOptions>{
        {scalar<FeedOptions>("split_after", split_after,
                             "A live source that is silent for longer counts as gone: recordings "
                             "end, and begin anew when it is back (5s). never: they go on.",
                             [](FeedOptions& f, const Value& v) {
                               f.split_after = v.text == "never" ? std::nullopt
                                                                 : std::optional(v.milliseconds());
                             })},
        {}};
  }();
  return keys;
}

Shape slices_shape() {
  Shape shape = range(kInteger, 1, kMostSlices);
  shape.words = {"auto"};
  return shape;
}

}  // namespace

const Section<FeedOptions>& layer_keys() {
  static const Section<FeedOptions> keys{
      {section<FeedOptions, InputOptions>("input", input_keys(), "Where the video comes from.",
                                          [](FeedOptions& f) -> InputOptions& { return f.input; }),
       named<FeedOptions>(
           "encodes", encode_keys().shape(),
           "How the video is encoded or copied, by name (default: main, with libx264).",
           read_encode),
       named<FeedOptions>("outputs", output_keys().shape(),
                          "Where the encodes are written, by name.", read_output),
       scalar<FeedOptions>("device", of(kDeviceName),
                           "Where this feed's frames are converted, if not where the file's own "
                           "device says. cuda: on any one GPU.",
                           [](FeedOptions& f, const Value& v) { f.device = v.device; }),
       scalar<FeedOptions>(
           "ring", range(kInteger, 1, 256), "The most frames in flight (8).",
           [](FeedOptions& f, const Value& v) { f.ring = static_cast<int>(v.number); }),
       scalar<FeedOptions>(
           "lanes", range(kInteger, 1, 64), "Frames converted at once (3).",
           [](FeedOptions& f, const Value& v) { f.lanes = static_cast<int>(v.number); }),
       scalar<FeedOptions>("slices", slices_shape(),
                           "Into how many ranges of rows a frame's upload to a GPU is cut. More "
                           "slices mean less latency (auto: by the frame's size). No effect on "
                           "the CPU.",
                           [](FeedOptions& f, const Value& v) {
                             f.slices = v.text == "auto"
                                            ? std::nullopt
                                            : std::optional(static_cast<int>(v.number));
                           }),
       scalar<FeedOptions>(
           "on_full", words({"auto", "block", "drop"}),
           "What to do if the ring is full: block the source, or drop the frame. auto: drop if the "
           "source is live.",
           [](FeedOptions& f, const Value& v) { f.on_full = static_cast<OnFull>(v.number); }),
       scalar<FeedOptions>(
           "skip", words({"none", "nonref", "nonkey"}),
           "Pictures that are not decoded. nonref: those that no other picture needs; nonkey: all "
           "but keyframes (none).",
           [](FeedOptions& f, const Value& v) { f.input.skip = static_cast<Skip>(v.number); }),
       section<FeedOptions, FeedOptions>("on_gap", on_gap_keys(),
                                         "What becomes of recordings and playlists when the source "
                                         "is gone.",
                                         [](FeedOptions& f) -> FeedOptions& { return f; }),
       scalar<FeedOptions>(
           "analyse", of(kBoolean),
           "Whether to measure the brightness of frames, as the first encode that decodes gets "
           "them, for the metric framelane_feed_luma_mean (false).",
           [](FeedOptions& f, const Value& v) { f.analyse = v.number != 0; })},
      {"recorder", "limits", "mask"}};
  return keys;
}

const Section<FeedOptions>& feed_keys() {
  static const Section<FeedOptions> keys = [] {
    Section<FeedOptions> section = layer_keys();
    section.keys.push_back(
        scalar<FeedOptions>("profile", of(kIdentifier),
                            "The profile that is merged between the defaults and this feed.",
                            [](FeedOptions&, const Value&) {}));
    return section;
  }();
  return keys;
}

}  // namespace framelane
