#include "tests/pipeline/encode/held_encoder.hpp"

extern "C" {
#include <libavcodec/avcodec.h>
}

#include <dlfcn.h>

#include <atomic>

namespace framelane::testing {
namespace {

std::atomic<bool> g_held{false};

}  // namespace

void HeldEncoder::hold() { g_held = true; }

void HeldEncoder::release() {
  g_held = false;
  g_held.notify_all();
}

}  // namespace framelane::testing

/// Stands in front of FFmpeg's.
extern "C" int avcodec_send_frame(AVCodecContext* context, const AVFrame* frame) {
  framelane::testing::g_held.wait(true);
  static const auto next =
      reinterpret_cast<decltype(&avcodec_send_frame)>(dlsym(RTLD_NEXT, "avcodec_send_frame"));
  return next(context, frame);
}
