#include "pipeline/encode/codec_options.hpp"

extern "C" {
#include <libavutil/opt.h>
}

#include <string_view>

#include "pipeline/av/av_error.hpp"
#include "pipeline/av/av_log_capture.hpp"
#include "pipeline/base/av_option.hpp"

namespace framelane {

std::optional<std::string> apply_options(AVCodecContext& context, const CodecCandidate& candidate) {
  for (const AvOption& option : candidate.options) {
    const AvLogCapture log;
    const int result =
        av_opt_set(&context, option.key.c_str(), option.value.c_str(), AV_OPT_SEARCH_CHILDREN);
    if (result == AVERROR_OPTION_NOT_FOUND) {
      return candidate.name + " has no option \"" + option.key +
             "\"; see ffmpeg -h encoder=" + candidate.name;
    }
    if (result < 0) {
      return candidate.name + " rejects " + option.key + "=" + option.value + ": " +
             av_error_text(result);
    }
  }
  return std::nullopt;
}

bool needs_hardware(const AVCodec& codec) {
  return (codec.capabilities & (AV_CODEC_CAP_HARDWARE | AV_CODEC_CAP_HYBRID)) != 0 ||
         std::string_view(codec.name).ends_with("_omx");
}

bool counts_in_frames(AVCodecID id) {
  switch (id) {
    case AV_CODEC_ID_MPEG4:
    case AV_CODEC_ID_MPEG2VIDEO:
    case AV_CODEC_ID_MPEG1VIDEO:
    case AV_CODEC_ID_H263:
    case AV_CODEC_ID_H263P:
    case AV_CODEC_ID_MSMPEG4V2:
    case AV_CODEC_ID_MSMPEG4V3:
    case AV_CODEC_ID_WMV1:
    case AV_CODEC_ID_WMV2:
      return true;
    default:
      return false;
  }
}

bool takes_keyframe_requests(const AVCodec& codec) {
  const std::string_view name = codec.name;
  if (counts_in_frames(codec.id)) return true;
  for (const std::string_view known :
       {"libx264", "libx264rgb", "libx265", "libvpx", "libvpx-vp9", "libaom-av1", "libopenh264"}) {
    if (name == known) return true;
  }
  return name.ends_with("_nvenc") || name.ends_with("_qsv") || name.ends_with("_vaapi") ||
         name.ends_with("_v4l2m2m");
}

bool takes_keyframe_requests(const std::string& encoder) {
  const AVCodec* const codec = avcodec_find_encoder_by_name(encoder.c_str());
  return codec == nullptr || takes_keyframe_requests(*codec);
}

}  // namespace framelane
