#include <chrono>
#include <span>

#include "config/common_keys.hpp"
#include "config/feed_keys.hpp"
#include "config/name_checks.hpp"
#include "config/raw_formats.hpp"
#include "kernels/scale_filter_names.hpp"
#include "pipeline/encode/encode_options.hpp"
#include "pipeline/packets/media.hpp"

namespace framelane {
namespace {

const Section<CodecCandidate>& codec_keys() {
  static const Section<CodecCandidate> keys = [] {
    Section<CodecCandidate> section{
        {scalar<CodecCandidate>("name", of(kText), "FFmpeg's name of the encoder.",
                                [](CodecCandidate& c, const Value& v) { c.name = v.text; }),
         av_options<CodecCandidate>(
             "Options of that encoder. One that it refuses is an error when the encoder is opened.",
             [](CodecCandidate& c) -> AvOptions& { return c.options; }, false)}};
    section.keys.front().property.required = true;
    return section;
  }();
  return keys;
}

Shape codec_shape() {
  Shape shape = codec_keys().shape();
  shape.scalar = &kText;
  shape.list = true;
  return shape;
}

/// `example`: an encoder, for messages.
void read_codec(const Node& node, std::vector<CodecCandidate>& codecs, std::string_view example,
                Reader& reader) {
  CodecCandidate codec;
  if (node.is_map()) {
    codec_keys().read(node, codec, reader);
    if (node.find("name") == nullptr) {
      reader.problems().add(
          node.position, node.path + ".name",
          "is missing; give FFmpeg's name of the encoder, such as " + std::string(example));
    }
  } else {
    Shape name;
    name.scalar = &kText;
    if (node.kind != Node::Kind::kScalar) {
      Shape shape = codec_shape();
      shape.list = false;
      reader.wrong_type(node, shape);
    } else if (const auto value = reader.scalar(node, name)) {
      codec.name = value->text;
    }
  }
  codecs.push_back(std::move(codec));
}

/// The node with the name of an encoder: a codec is a map with a name, or the name itself.
const Node& name_node(const Node& codec) {
  const Node* name = codec.find("name");
  return name != nullptr ? *name : codec;
}

/// `codecs[i]` was read from `nodes[i]`.
void check_codecs(std::span<const Node> nodes, std::span<const CodecCandidate> codecs,
                  StreamKind kind, Reader& reader) {
  // A name with a variable that has no value may still be right, so it counts as usable.
  const auto is_open = [&](std::size_t i) {
    return codecs[i].name.empty() || !reader.is_certain(name_node(nodes[i]));
  };
  std::size_t usable = 0;
  for (std::size_t i = 0; i < codecs.size(); ++i) {
    if (is_open(i) || !unknown_encoder(codecs[i].name, kind, false)) ++usable;
  }
  for (std::size_t i = 0; i < codecs.size(); ++i) {
    if (is_open(i)) continue;
    const CodecCandidate& codec = codecs[i];
    if (const auto problem = unknown_encoder(codec.name, kind, usable > 0)) {
      reader.problems().add(name_node(nodes[i]),
                            in_quotes(name_node(nodes[i]).text) + " " + *problem);
      continue;
    }
    if (unknown_encoder(codec.name, kind, false))
      continue;  // not in this FFmpeg, nor are its options
    for (const AvOption& option : codec.options) {
      const Node& node = *nodes[i].find({"options", option.key});
      if (!reader.is_certain(node)) continue;
      // FFmpeg quotes the value in its message, and the value of a variable must not be shown.
      const bool as_written = node.text == option.value;
      const auto problem =
          as_written ? wrong_encoder_option(codec.name, option)
                     : unknown_option(option.key, encoder_option_names(codec.name), codec.name);
      if (problem) {
        reader.problems().add(node.key_position, node.path, *problem);
      }
    }
  }
}

/// `example`: an encoder, for messages.
Key<EncodeOptions> codec_key(StreamKind kind, std::vector<CodecCandidate> EncodeOptions::*codecs,
                             std::string_view example, std::string_view help) {
  return {{"codec", codec_shape(), help},
          [=](const Node& node, EncodeOptions& encode, Reader& reader) {
            const std::span<const Node> nodes = node.items_or_self();
            if (nodes.empty()) {
              reader.problems().add(
                  node, "is empty; name at least one encoder, such as " + std::string(example));
            }
            for (const Node& item : nodes) read_codec(item, encode.*codecs, example, reader);
            check_codecs(nodes, encode.*codecs, kind, reader);
          }};
}

const Section<EncodeOptions>& video_keys() {
  static const Section<EncodeOptions> keys{
      {codec_key(StreamKind::kVideo, &EncodeOptions::codecs, "libx264",
                 "The encoder, or a list of encoders, of which the first available one is used. "
                 "Each is a name, or a map of name and options (default: libx264 with preset "
                 "veryfast)."),
       scalar<EncodeOptions>("bitrate", bitrate_shape(),
                             "Bits per second (default: the encoder's).",
                             [](EncodeOptions& e, const Value& v) { e.bitrate = v.number; }),
       scalar<EncodeOptions>("gop", gop_shape(),
                             "The time between keyframes (default: the encoder's).",
                             [](EncodeOptions& e, const Value& v) { e.gop = v.microseconds(); })}};
  return keys;
}

Key<EncodeOptions> video_key() {
  Shape shape = video_keys().shape();
  shape.words = {"copy"};
  return {{"video", shape,
           "copy: the source's own stream, not decoded. Or a map that says how to encode it."},
          [shape](const Node& node, EncodeOptions& encode, Reader& reader) {
            if (node.is_map()) {
              video_keys().read(node, encode, reader);
            } else if (reader.scalar(node, shape)) {
              encode.copy_video = true;
            }
          }};
}

const Section<EncodeOptions>& audio_keys() {
  static const Section<EncodeOptions> keys{
      {codec_key(StreamKind::kAudio, &EncodeOptions::audio_codecs, "aac",
                 "The audio encoder, or a list of encoders, of which the first one that opens is "
                 "used. Each is a name, or a map of name and options (default: aac)."),
       scalar<EncodeOptions>(
           "bitrate", range(kBitrate, 1'000, 10'000'000),
           "Bits per second of the sound (default: the encoder's).",
           [](EncodeOptions& e, const Value& v) { e.audio_bitrate = v.number; })}};
  return keys;
}

Key<EncodeOptions> audio_key() {
  Shape shape = audio_keys().shape();
  shape.words = {"none", "copy"};
  return {{"audio", shape,
           "copy: the source's own sound, if the container can hold it. Or a map that says how to "
           "transcode it (default: none)."},
          [shape](const Node& node, EncodeOptions& encode, Reader& reader) {
            if (node.is_map()) {
              audio_keys().read(node, encode, reader);
              if (node.find("codec") == nullptr) encode.audio_codecs.push_back({"aac"});
            } else if (const auto value = reader.scalar(node, shape)) {
              encode.copy_audio = value->number != 0;
            }
          }};
}

std::vector<std::string_view> auto_or_target_format() {
  std::vector<std::string_view> names = target_format_names();
  names.insert(names.begin(), "auto");
  return names;
}

// The words of `flip`, `fit` and `filter` are in the order of Flip, Fit and ScaleFilter.
const Section<EncodeOptions>& convert_keys() {
  // The colour keys set fields of encode.color, though they stand beside format.
  const auto lift = [](const Key<ColorOverride>& key) {
    return Key<EncodeOptions>{key.property,
                              [read = key.read](const Node& node, EncodeOptions& e, Reader& r) {
                                read(node, e.color, r);
                              }};
  };
  static const Section<EncodeOptions> keys{
      {scalar<EncodeOptions>(
           "format", words(auto_or_target_format()),
           "The pixel format to encode (auto: the source's if the encoder takes it). An RGB or "
           "packed "
           "format must be the same as the source's.",
           [](EncodeOptions& e, const Value& v) { e.format = pixel_format_from_name(v.text); }),
       lift(matrix_key({"auto", "bt601", "bt709", "bt2020"},
                       "The matrix to encode in (auto: the source's; bt709 for RGB).")),
       lift(range_key("The range to encode in (auto: the source's; limited for RGB).")),
       lift(siting_key("The position of the chroma samples (auto: the source's; left for RGB).")),
       scalar<EncodeOptions>(
           "crop", of(kImagePart),
           "The part of the picture to encode: WIDTHxHEIGHT+LEFT+TOP in pixels "
           "of the source (default: all of it).",
           [](EncodeOptions& e, const Value& v) { e.picture.crop = image_part(v); }),
       scalar<EncodeOptions>(
           "rotate", of(kQuarterTurns),
           "Turns the picture: 0, 90, 180 or 270 degrees, clockwise (default: 0).",
           [](EncodeOptions& e, const Value& v) {
             e.picture.rotation = static_cast<int>(v.number);
           }),
       scalar<EncodeOptions>(
           "flip", words({"none", "horizontal", "vertical"}),
           "horizontal: left and right change places; vertical: top and bottom. After rotate "
           "(default: none).",
           [](EncodeOptions& e, const Value& v) { e.picture.flip = static_cast<Flip>(v.number); }),
       scalar<EncodeOptions>(
           "size", of(kSizeOrShape),
           "The size to encode: WIDTHxHEIGHT, of which one may be -2 (what keeps "
           "the shape, even), or percent (default: the source's).",
           [](EncodeOptions& e, const Value& v) { e.picture.size = size_option(v); }),
       scalar<EncodeOptions>(
           "fit", words({"stretch", "contain", "cover"}),
           "How a picture gets into a size of another shape. stretch: players show it as before, "
           "with pixels of another shape; contain: with bars; cover: its borders are cut off "
           "(default: stretch).",
           [](EncodeOptions& e, const Value& v) { e.picture.fit = static_cast<Fit>(v.number); }),
       scalar<EncodeOptions>(
           "background", of(kColorCode), "The colour of bars (default: #000000).",
           [](EncodeOptions& e, const Value& v) { e.picture.background = color_of(v); }),
       scalar<EncodeOptions>("filter", words({kScaleFilterNames.begin(), kScaleFilterNames.end()}),
                             "How samples are weighted where the size changes (default: bicubic).",
                             [](EncodeOptions& e, const Value& v) {
                               e.picture.filter = static_cast<ScaleFilter>(v.number);
                             }),
       scalar<EncodeOptions>(
           "rate", of(kFrameRate),
           "Frames per second to encode, at most: others are left out evenly (default: all).",
           [](EncodeOptions& e, const Value& v) { e.rate = v.ratio; })}};
  return keys;
}

}  // namespace

Shape bitrate_shape() { return range(kBitrate, 1'000, 10'000'000'000); }

Rect image_part(const Value& value) { return {value.x, value.y, value.width, value.height}; }

SizeOption size_option(const Value& value) {
  return {value.width, value.height, static_cast<int>(value.number)};
}

Shape gop_shape() {
  using namespace std::chrono_literals;
  return range(kDuration, micros(10ms), micros(10min));
}

const Section<EncodeOptions>& encode_keys() {
  static const Section<EncodeOptions> keys{
      {video_key(),
       section<EncodeOptions, EncodeOptions>("convert", convert_keys(),
                                             "The pictures that the encoder is given.",
                                             [](EncodeOptions& e) -> EncodeOptions& { return e; }),
       overlay_key(), audio_key()}};
  return keys;
}

}  // namespace framelane
