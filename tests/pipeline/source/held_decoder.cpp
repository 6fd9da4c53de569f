#include "tests/pipeline/source/held_decoder.hpp"

extern "C" {
#include <libavcodec/avcodec.h>
}

#include <dlfcn.h>

#include <atomic>

namespace framelane::testing {
namespace {

std::atomic<bool> g_decoder_held{false};

}  // namespace

HeldDecoder::HeldDecoder() { g_decoder_held = true; }

void HeldDecoder::release() {
  g_decoder_held = false;
  g_decoder_held.notify_all();
}

}  // namespace framelane::testing

/// Stands in front of FFmpeg's. Decoders that FFmpeg opens to look at a stream have no `opaque`.
extern "C" int avcodec_receive_frame(AVCodecContext* context, AVFrame* frame) {
  static const auto next =
      reinterpret_cast<decltype(&avcodec_receive_frame)>(dlsym(RTLD_NEXT, "avcodec_receive_frame"));
  const int result = next(context, frame);
  if (result == 0 && context->opaque != nullptr) framelane::testing::g_decoder_held.wait(true);
  return result;
}
