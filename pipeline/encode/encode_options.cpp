#include "pipeline/encode/encode_options.hpp"

namespace framelane {

bool differ_only_in_overlays(const EncodeOptions& a, EncodeOptions b) {
  b.overlays = a.overlays;
  return a == b;
}

bool can_become(const EncodeOptions& a, const EncodeOptions& b) {
  return a.copy_video == b.copy_video && a.copy_audio == b.copy_audio &&
         a.audio_codecs == b.audio_codecs && a.audio_bitrate == b.audio_bitrate;
}

}  // namespace framelane
