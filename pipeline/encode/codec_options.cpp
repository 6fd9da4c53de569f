#include "pipeline/encode/codec_options.hpp"

extern "C" {
#include <libavutil/opt.h>
}

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

}  // namespace framelane
