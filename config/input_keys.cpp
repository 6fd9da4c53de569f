#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "config/common_keys.hpp"
#include "config/feed_keys.hpp"
#include "config/name_checks.hpp"
#include "config/raw_formats.hpp"
#include "pipeline/source/input_options.hpp"

namespace framelane {
namespace {

/// A key of raw video.
Key<InputOptions> raw(std::string_view name, const Shape& shape, std::string_view help,
                      void (*set)(RawVideoOptions&, const Value&)) {
  return {{name, shape, help}, [shape, set](const Node& node, InputOptions& input, Reader& reader) {
            // Whether the input is raw is known only when all its keys have been read.
            const auto value = reader.scalar(node, shape);
            if (!input.raw) {
              input.raw.emplace();
              input.raw->rate = {0, 1};  // stays if a variable has no value, as size 0 does
            }
            if (value) set(*input.raw, *value);
          }};
}

const Section<ColorOverride>& input_color_keys() {
  static const Section<ColorOverride> keys{
      {matrix_key({"auto", "rgb", "bt601", "bt709", "bt2020"},
                  "The matrix of the source's pixels (auto: from its tags)."),
       range_key("The range of the source's pixels (auto: from its tags)."),
       siting_key("The position of the source's chroma samples (auto: from its tags).")}};
  return keys;
}

/// A key with a list of names that FFmpeg knows, or "default" or "all". `unknown` returns what is
/// wrong with a name.
Key<InputOptions> allowed_names(std::string_view name, std::string_view help,
                                std::vector<std::string> InputOptions::*names,
                                std::optional<std::string> (*unknown)(const std::string&)) {
  Shape shape = of(kText);
  shape.list = true;
  return {{name, shape, help}, [=](const Node& node, InputOptions& input, Reader& reader) {
            const std::span<const Node> nodes = node.items_or_self();
            if (nodes.empty()) {
              reader.problems().add(node, "is empty; name what is allowed, or remove it");
            }
            for (const Node& item : nodes) {
              const auto value = reader.scalar(item, of(kText));
              if (!value) continue;
              (input.*names).push_back(value->text);
              const bool word = value->text == "default" || value->text == "all";
              if (word || !reader.is_certain(item)) continue;
              if (const auto problem = unknown(value->text)) {
                reader.problems().add(item, in_quotes(item.text) + " " + *problem);
              }
            }
          }};
}

Key<InputOptions> addresses_key() {
  Shape shape = words({"loopback", "link_local"});
  shape.list = true;
  return {{"addresses", shape,
           "Addresses that redirects, playlists and names may lead to, although the host of url is "
           "no such address (none)."},
          [](const Node& node, InputOptions& input, Reader& reader) {
            for (const Node& item : node.items_or_self()) {
              const auto value = reader.scalar(item, words({"loopback", "link_local"}));
              if (!value) continue;
              (value->number == 0 ? input.reach_loopback : input.reach_link_local) = true;
            }
          }};
}

const Section<InputLimits>& limit_keys() {
  constexpr std::int64_t kLeastProbed = 2048;  // FFmpeg's own limit
  constexpr std::int64_t kMostBytes = 1'000'000'000;
  static const Section<InputLimits> keys{
      {scalar<InputLimits>(
           "pixels", of(kImageSize),
           "Pictures may have as many pixels as one of this size, whatever their "
           "shape (8192x8192).",
           [](InputLimits& l, const Value& v) { l.pixels = std::int64_t{v.width} * v.height; }),
       scalar<InputLimits>(
           "streams", range(kInteger, 1, 10'000), "Streams of video, sound and data (128).",
           [](InputLimits& l, const Value& v) { l.streams = static_cast<int>(v.number); }),
       scalar<InputLimits>("probe_size", range(kSize, kLeastProbed, kMostBytes),
                           "Bytes that are read to find the format and the streams (5M).",
                           [](InputLimits& l, const Value& v) { l.probe_size = v.number; }),
       scalar<InputLimits>("playlist_size", range(kSize, 1000, kMostBytes),
                           "Bytes of one playlist, unpacked (16M).",
                           [](InputLimits& l, const Value& v) { l.playlist_size = v.number; })}};
  return keys;
}

}  // namespace

const Section<InputOptions>& input_keys() {
  using Pace = InputOptions::Pace;
  using Decoder = InputOptions::DecoderKind;
  using Timestamps = RawVideoOptions::Timestamps;
  static const Section<InputOptions> keys = [] {
    Section<InputOptions> table{
        // Options in the defaults may go unused: rtsp_transport must not fail a feed that reads a
        // file.
        endpoint_keys<InputOptions>(
            {.url = "Where the video comes from: a URL, a file, a FIFO, - for standard input, "
                    "shm:SOCKET for shared memory, or lavfi:GRAPH for a test source.",
             .format = "FFmpeg's name of the demuxer (default: probed); rawvideo for frames "
                       "without a container.",
             .options = "Options for FFmpeg's protocol, demuxer and decoder. One that nothing uses "
                        "fails the feed, unless it comes from the defaults.",
             .timeout = "The source counts as lost if no data comes for this long (10s).",
             .reconnect = "How long to wait before the source is opened again."},
            unknown_demuxer, true)};
    table.keys.insert(
        table.keys.end(),
        {scalar<InputOptions>(
             "decoder", words({"auto", "software", "nvdec"}), "Which decoder to use (auto).",
             [](InputOptions& i, const Value& v) { i.decoder = static_cast<Decoder>(v.number); }),
         scalar<InputOptions>("loop", of(kBoolean),
                              "Read a file again from its start when it ends (false).",
                              [](InputOptions& i, const Value& v) { i.loop = v.number != 0; }),
         scalar<InputOptions>(
             "pace", words({"asap", "realtime"}),
             "asap: as fast as it can be read (the default); realtime: at its own "
             "frame rate, as a camera would.",
             [](InputOptions& i, const Value& v) { i.pace = static_cast<Pace>(v.number); }),
         section<InputOptions, ColorOverride>(
             "color", input_color_keys(),
             "The colour of the source. Replaces what the source says about itself.",
             [](InputOptions& i) -> ColorOverride& { return i.color; }),
         allowed_names("protocols",
                       "Protocols of the URLs that playlists and redirects may name. default: "
                       "those that the kind of url has; all: every one (default).",
                       &InputOptions::protocols, unknown_protocol),
         allowed_names("formats",
                       "FFmpeg's demuxers that may read the input. default: those that the kind "
                       "of url has; all: every one (default).",
                       &InputOptions::formats, unknown_demuxer),
         allowed_names("decoders",
                       "FFmpeg's decoders that may decode it. default: those that the kind of "
                       "url has; all: every one (default).",
                       &InputOptions::decoders, unknown_decoder),
         addresses_key(),
         section<InputOptions, InputLimits>(
             "limits", limit_keys(), "How much the input may make framelane read and hold.",
             [](InputOptions& i) -> InputLimits& { return i.limits; }),
         raw("pixel_format", words(raw_format_names()),
             "Raw video: FFmpeg's name of the pixel format.",
             [](RawVideoOptions& r, const Value& v) { r.pixel_format = v.text; }),
         raw("size", of(kImageSize), "Raw video: width x height in pixels.",
             [](RawVideoOptions& r, const Value& v) {
               r.width = v.width;
               r.height = v.height;
             }),
         raw("rate", of(kFrameRate), "Raw video: frames per second.",
             [](RawVideoOptions& r, const Value& v) { r.rate = v.ratio; }),
         raw("pitch", range(kInteger, 1, 1 << 20),
             "Raw video: bytes from one row of the first plane to the next (default: no padding).",
             [](RawVideoOptions& r, const Value& v) { r.pitch = static_cast<int>(v.number); }),
         raw("timestamps", words({"rate", "arrival", "producer"}),
             "Raw video: rate: from the frame's number and the rate (the default); arrival: the "
             "time at which the frame arrives; producer: the time at which it was taken, which a "
             "producer with framelane_capture.h leaves behind it (shm: alone).",
             [](RawVideoOptions& r, const Value& v) {
               r.timestamps = static_cast<Timestamps>(v.number);
             })});
    return table;
  }();
  return keys;
}

}  // namespace framelane
