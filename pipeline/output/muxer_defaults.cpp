#include "pipeline/output/muxer_defaults.hpp"

#include <string>
#include <string_view>

#include "pipeline/output/whole_end.hpp"

namespace framelane {
namespace {

/// The user's flags, to which more can be added.
std::string flags_of(const Dictionary& options, const char* key) {
  const AVDictionaryEntry* entry = av_dict_get(options.get(), key, nullptr, 0);
  return entry ? entry->value : "";
}

/// If the process is killed, only an MP4 in fragments can be read. With delay_moov the header waits
/// for the first fragment, and can describe edit lists and AC-3. These flags come after
/// the user's, so that none of them can be switched off.
constexpr const char* kFragmented = "+frag_keyframe+empty_moov+delay_moov+default_base_moof";

void set_mp4_defaults(Dictionary& options, const AVCodecParameters& video) {
  std::string flags = flags_of(options, "movflags") + kFragmented;
  // An MPEG-4 part 2 stream does not carry its colour, and FFmpeg writes it to the container by
  // itself only if it knows the primaries too.
  const bool without_color = video.codec_id == AV_CODEC_ID_MPEG4;
  if (without_color && video.color_space != AVCOL_SPC_UNSPECIFIED) flags += "+write_colr";
  options.set("movflags", flags);
  options.set_default("frag_duration", "1000000");
  // Otherwise every frame of an intra-only codec would become a fragment.
  options.set_default("min_frag_duration", "500000");
}

/// A segment is one fragment, which ends where Muxer::end_fragment() says. No file could hold an
/// index of them all.
constexpr const char* kSegments =
    "+frag_custom+empty_moov+delay_moov+default_base_moof+skip_trailer"
    "-frag_keyframe-frag_every_frame-faststart";

}  // namespace

void set_muxer_defaults(Dictionary& options, const Container& container,
                        const AVCodecParameters& video) {
  if (container.kind == OutputKind::kPlaylist) {
    if (container.fmp4_segments) options.set("movflags", flags_of(options, "movflags") + kSegments);
  } else if (is_mp4(container)) {
    set_mp4_defaults(options, video);
  } else if (is_matroska(container)) {
    // A cluster is written when it ends: if the process is killed, at most so much is lost (ms).
    options.set_default("cluster_time_limit", "1000");
  }
}

}  // namespace framelane
