#include "config/feed_keys.hpp"

#include <memory>
#include <optional>
#include <span>
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
    return Section<FeedOptions>{{scalar<FeedOptions>(
        "split_after", split_after,
        "A live source that is silent for longer counts as gone: recordings "
        "end, and begin anew when it is back (5s). never: they go on.",
        [](FeedOptions& f, const Value& v) {
          f.split_after = v.text == "never" ? std::nullopt : std::optional(v.milliseconds());
        })}};
  }();
  return keys;
}

/// A list of points, [x, y] each. What is wrong with it is reported.
void read_polygon(const Node& node, MaskShape& shape, Reader& reader) {
  const Shape coordinate = of(kFraction);
  if (node.kind != Node::Kind::kSequence) {
    reader.problems().add(node, "must be a list of points, such as [[0, 0], [0.5, 0], [0.5, 1]]");
    return;
  }
  bool complete = true;
  for (const Node& item : node.items) {
    if (item.kind != Node::Kind::kSequence || item.items.size() != 2) {
      reader.problems().add(item, "must be a point, such as [0.25, 0.5]");
      complete = false;
      continue;
    }
    const auto x = reader.scalar(item.items[0], coordinate);
    const auto y = reader.scalar(item.items[1], coordinate);
    complete = complete && x && y;
    if (complete) shape.polygon.push_back({x->part, y->part});
  }
  if (!complete) return;
  if (const char* const why = why_no_polygon(shape.polygon)) reader.problems().add(node, why);
}

const Section<MaskShape>& mask_keys() {
  static const Section<MaskShape> keys = [] {
    Shape point;
    point.items = std::make_shared<const Shape>(of(kFraction));
    point.least_items = point.most_items = 2;
    Shape polygon;
    polygon.items = std::make_shared<const Shape>(std::move(point));
    polygon.least_items = 3;
    polygon.most_items = kMostPolygonPoints;
    return Section<MaskShape>{
        {{{"polygon", polygon,
           "The part: its corners as [x, y], in fractions of the picture's width and height.",
           true},
          read_polygon},
         scalar<MaskShape>("style", words({"fill", "pixelate"}),
                           "fill: with a colour; pixelate: shows means of blocks (fill).",
                           [](MaskShape& m, const Value& v) {
                             m.style = static_cast<MaskShape::Style>(v.number);
                           }),
         scalar<MaskShape>("color", of(kColorCode), "The colour of fill (#000000).",
                           [](MaskShape& m, const Value& v) { m.color = color_of(v); })}};
  }();
  return keys;
}

Key<FeedOptions> mask_key() {
  Shape shape = mask_keys().shape();
  shape.list = true;
  return {{"mask", shape, "Parts of the picture that no encode shows. Needs encodes that decode."},
          [](const Node& node, FeedOptions& feed, Reader& reader) {
            const std::span<const Node> nodes = node.items_or_self();
            if (nodes.empty()) {
              reader.problems().add(node, "is empty; remove it if nothing is to be masked");
            }
            for (const Node& item : nodes) {
              MaskShape mask;
              mask_keys().read(item, mask, reader);
              if (item.is_map() && item.find("polygon") == nullptr) {
                reader.problems().add_missing(item, "polygon",
                                              "say what to cover, such as [[0, 0], [0.5, 0], "
                                              "[0.5, 1]]");
              }
              const Node* color = item.find("color");
              if (color != nullptr && mask.style == MaskShape::Style::kPixelate) {
                reader.problems().add(*color, "has no effect with style: pixelate; remove it");
              }
              feed.input.mask.push_back(std::move(mask));
            }
          }};
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
       mask_key(),
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
           [](FeedOptions& f, const Value& v) { f.analyse = v.number != 0; })}};
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
