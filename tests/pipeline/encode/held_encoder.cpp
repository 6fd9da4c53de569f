#include "tests/pipeline/encode/held_encoder.hpp"

extern "C" {
#include <libavcodec/avcodec.h>
#include <libavutil/error.h>
}

#include <dlfcn.h>

#include <atomic>
#include <initializer_list>

namespace framelane::testing {
namespace {

std::atomic<bool> g_held{false};
std::atomic<bool> g_opening_held{false};
std::atomic<int> g_waiting{0};
std::atomic<int> g_error = 0;  // of FailingEncoder

void wait_while(const std::atomic<bool>& held) {
  ++g_waiting;
  held.wait(true);
  --g_waiting;
}
std::atomic<bool> g_audio_fails{false};

}  // namespace

void HeldEncoder::hold() { g_held = true; }
void HeldEncoder::hold_opening() { g_opening_held = true; }

void HeldEncoder::release() {
  for (std::atomic<bool>* held : {&g_held, &g_opening_held}) {
    *held = false;
    held->notify_all();
  }
}

int HeldEncoder::waiting() const { return g_waiting; }

FailingEncoder::FailingEncoder() : FailingEncoder(AVERROR_EXTERNAL) {}
FailingEncoder::FailingEncoder(int error) { g_error = error; }

FailingEncoder::~FailingEncoder() { g_error = 0; }

FailingAudioEncoder::FailingAudioEncoder() { g_audio_fails = true; }
FailingAudioEncoder::~FailingAudioEncoder() { g_audio_fails = false; }

}  // namespace framelane::testing

// These stand in front of FFmpeg's.

extern "C" int avcodec_open2(AVCodecContext* context, const AVCodec* codec,
                             AVDictionary** options) {
  if (codec != nullptr && av_codec_is_encoder(codec) != 0) {
    framelane::testing::wait_while(framelane::testing::g_opening_held);
  }
  static const auto next =
      reinterpret_cast<decltype(&avcodec_open2)>(dlsym(RTLD_NEXT, "avcodec_open2"));
  return next(context, codec, options);
}

extern "C" int avcodec_send_frame(AVCodecContext* context, const AVFrame* frame) {
  framelane::testing::wait_while(framelane::testing::g_held);
  if (const int error = framelane::testing::g_error) return error;
  if (framelane::testing::g_audio_fails && context->codec_type == AVMEDIA_TYPE_AUDIO) {
    return AVERROR_EXTERNAL;
  }
  static const auto next =
      reinterpret_cast<decltype(&avcodec_send_frame)>(dlsym(RTLD_NEXT, "avcodec_send_frame"));
  return next(context, frame);
}
