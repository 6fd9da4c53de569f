#pragma once

extern "C" {
#include <libavcodec/avcodec.h>
}

#include <memory>

namespace framelane {

/// Frees FFmpeg's objects with the functions that they need.
struct AvDeleter {
  void operator()(AVFrame* frame) const { av_frame_free(&frame); }
  void operator()(AVPacket* packet) const { av_packet_free(&packet); }
  void operator()(AVCodecContext* context) const { avcodec_free_context(&context); }
  void operator()(AVCodecParameters* parameters) const { avcodec_parameters_free(&parameters); }
};
using FramePtr = std::unique_ptr<AVFrame, AvDeleter>;
using PacketPtr = std::unique_ptr<AVPacket, AvDeleter>;
using CodecContextPtr = std::unique_ptr<AVCodecContext, AvDeleter>;
using CodecParametersPtr = std::unique_ptr<AVCodecParameters, AvDeleter>;

// These throw std::bad_alloc instead of returning null.
FramePtr make_frame();
PacketPtr make_packet();
CodecParametersPtr copy_parameters(const AVCodecParameters& from);

}  // namespace framelane
