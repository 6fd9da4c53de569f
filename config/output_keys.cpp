#include "config/common_keys.hpp"
#include "config/feed_keys.hpp"
#include "config/name_checks.hpp"

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
       scalar<SegmentOptions>("size", range(kSize, 1, std::numeric_limits<std::int64_t>::max()),
                              "Delete the oldest segments beyond this many bytes.",
                              [](SegmentOptions& s, const Value& v) { s.keep_bytes = v.number; })},
      {}};
  return keys;
}

SegmentOptions& segment_of(OutputOptions& output) {
  if (!output.segment) output.segment.emplace();
  return *output.segment;
}

}  // namespace

const Section<OutputOptions>& output_keys() {
  using namespace std::chrono_literals;
  static const Section<OutputOptions> keys = [] {
    Section<OutputOptions> section_of_all{
        // Outputs have names and are inherited one by one, so an option of one is meant for it.
        end_keys<OutputOptions>(
            {.url = "Where to write: a file, a URL, or null: to discard. With segment, a strftime "
                    "pattern.",
             .format = "FFmpeg's name of the muxer (default: from the URL).",
             .options = "Options for FFmpeg's muxer and protocol. One that nothing uses fails the "
                        "feed.",
             .timeout = "The peer is lost when nothing could be written for so long (10s).",
             .reconnect = "How long to wait before opening it again."},
            unknown_muxer, false),
        {}};
    section_of_all.keys.insert(
        section_of_all.keys.end(),
        {scalar<OutputOptions>("from", of(kIdentifier),
                               "Which encode to write (default: the feed's first).",
                               [](OutputOptions& o, const Value& v) { o.from = v.text; }),
         scalar<OutputOptions>(
             "queue", range(kInteger, 1, 65536), "Packets that may wait to be written (512).",
             [](OutputOptions& o, const Value& v) { o.queue = static_cast<int>(v.number); }),
         scalar<OutputOptions>(
             "segment", range(kDuration, micros(100ms), micros(24h)),
             "Begin a new file at the first keyframe after this time.",
             [](OutputOptions& o, const Value& v) { segment_of(o).length = v.milliseconds(); }),
         section<OutputOptions, SegmentOptions>(
             "keep", keep_keys(), "Which segments to keep (default: all).", segment_of)});
    return section_of_all;
  }();
  return keys;
}

}  // namespace framelane
