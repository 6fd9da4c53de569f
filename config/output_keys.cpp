#include <chrono>
#include <limits>

#include "config/common_keys.hpp"
#include "config/feed_keys.hpp"
#include "config/name_checks.hpp"
#include "pipeline/output/output_options.hpp"

namespace framelane {
namespace {

const Section<SegmentOptions>& keep_keys() {
  using namespace std::chrono_literals;
  static const Section<SegmentOptions> keys{
      {scalar<SegmentOptions>("age", range(kDuration, micros(1s), micros(24h) * 3660),
                              "Delete segments older than this.",
                              [](SegmentOptions& s, const Value& v) {
                                s.keep_age = std::chrono::duration_cast<std::chrono::seconds>(
                                    v.microseconds());
                              }),
       scalar<SegmentOptions>(
           "size", range(kSize, 1, std::numeric_limits<std::int64_t>::max()),
           "Delete the oldest segments as long as all together are larger than this.",
           [](SegmentOptions& s, const Value& v) { s.keep_bytes = v.number; }),
       scalar<SegmentOptions>("min_free", of(kSizeOrPercent),
                              "Delete the oldest segments, of all outputs with min_free on the "
                              "file system, as long as less than this is free there.",
                              [](SegmentOptions& s, const Value& v) {
                                s.keep_free = DiskShare{.bytes = v.number, .part = v.part};
                              })}};
  return keys;
}

SegmentOptions& segment_of(OutputOptions& output) {
  if (!output.segment) output.segment.emplace();
  return *output.segment;
}

/// What a list says is read when the feed's encodes are known: make_renditions().
Key<OutputOptions> from_key() {
  Shape shape = of(kIdentifier);
  shape.list = true;
  shape.least_items = 2;
  return {{"from", shape,
           "Which encode to write (default: the feed's first). Or a list of encodes: renditions of "
           "one HLS master playlist, which url names."},
          [](const Node& node, OutputOptions& output, Reader& reader) {
            if (node.kind == Node::Kind::kSequence) return;
            if (const auto value = reader.scalar(node, of(kIdentifier))) output.from = value->text;
          }};
}

}  // namespace

const Section<OutputOptions>& output_keys() {
  using namespace std::chrono_literals;
  static const Section<OutputOptions> keys = [] {
    Section<OutputOptions> table{
        // No option may go unused: an output is inherited by its name, so that its options are
        // meant
        // for it alone.
        endpoint_keys<OutputOptions>(
            {.url = "Where to write: a file, a URL, or null: to discard. With segment, a strftime "
                    "pattern.",
             .format = "FFmpeg's name of the muxer (default: from the URL).",
             .options = "Options for FFmpeg's muxer and protocol. One that nothing uses takes "
                        "this output down.",
             .timeout = "The peer counts as lost if nothing can be written for this long (10s).",
             .reconnect = "How long to wait before the output is opened again."},
            unknown_muxer, false)};
    table.keys.insert(
        table.keys.end(),
        {from_key(),
         scalar<OutputOptions>(
             "queue", range(kInteger, 1, 65536), "Packets that may wait to be written (512).",
             [](OutputOptions& o, const Value& v) { o.queue = static_cast<int>(v.number); }),
         scalar<OutputOptions>(
             "segment", range(kDuration, micros(100ms), micros(24h)),
             "Begin a new file at the first keyframe after this long.",
             [](OutputOptions& o, const Value& v) { segment_of(o).length = v.milliseconds(); }),
         section<OutputOptions, SegmentOptions>(
             "keep", keep_keys(), "Which segments to keep (default: all).", segment_of)});
    return table;
  }();
  return keys;
}

}  // namespace framelane
