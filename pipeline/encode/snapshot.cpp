#include "pipeline/encode/snapshot.hpp"

extern "C" {
#include <libavcodec/avcodec.h>
#include <libavutil/imgutils.h>
#include <libavutil/pixdesc.h>
#include <libswscale/swscale.h>
}

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>
#include <utility>

#include "pipeline/av/av_error.hpp"
#include "pipeline/base/failure.hpp"

namespace framelane {
namespace {

/// A larger picture is made smaller: JPEG has no more than 65,500 a side, and memory is limited,
/// too.
constexpr double kMostSide = 8192;
constexpr double kMostPixels = 32 << 20;
/// A few percent of the picture's bytes, and no blocks that one sees.
constexpr int kQuality = 4 * FF_QP2LAMBDA;

struct FreeScaler {
  void operator()(SwsContext* scaler) const { sws_freeContext(scaler); }
};

FeedError failure(const std::string& what, int error) {
  return {FeedFault::kInternal, what + ": " + av_error_text(error)};
}

/// As wide as asked for, in square pixels, and as high as the picture's shape on a screen makes it.
std::pair<int, int> size_of(const AVFrame& frame, int width) {
  const AVRational shape = frame.sample_aspect_ratio;
  const bool known = shape.num > 0 && shape.den > 0;
  const double shown_width = frame.width * (known ? av_q2d(shape) : 1.0);
  const double wanted = width > 0 ? width / shown_width : 1.0;
  const double scale = std::min({wanted, kMostSide / std::max<double>(shown_width, frame.height),
                                 std::sqrt(kMostPixels / (shown_width * frame.height))});
  const auto side = [](double pixels) {
    return std::max(1, static_cast<int>(std::lround(pixels)));
  };
  return {side(shown_width * scale), side(frame.height * scale)};
}

/// JPEG is full range with the matrix of BT.601 (JFIF).
FramePtr scaled(const AVFrame& frame, int width, int height) {
  const auto format = static_cast<AVPixelFormat>(frame.format);
  const std::unique_ptr<SwsContext, FreeScaler> scaler(
      sws_getContext(frame.width, frame.height, format, width, height, AV_PIX_FMT_YUVJ420P,
                     SWS_AREA | SWS_ACCURATE_RND, nullptr, nullptr, nullptr));
  if (scaler == nullptr) {
    throw FeedError(FeedFault::kInternal, std::string("no JPEG can be made of ") +
                                              av_get_pix_fmt_name(format) + " pictures");
  }
  const AVPixFmtDescriptor& described = *av_pix_fmt_desc_get(format);
  const bool full =
      frame.color_range == AVCOL_RANGE_JPEG || (described.flags & AV_PIX_FMT_FLAG_RGB) != 0;
  const bool named = frame.colorspace != AVCOL_SPC_UNSPECIFIED && frame.colorspace != AVCOL_SPC_RGB;
  constexpr int kOne = 1 << 16;  // of sws: no change
  sws_setColorspaceDetails(scaler.get(),
                           sws_getCoefficients(named ? frame.colorspace : SWS_CS_DEFAULT), full,
                           sws_getCoefficients(SWS_CS_ITU601), 1, 0, kOne, kOne);
  FramePtr picture = make_frame();
  picture->format = AV_PIX_FMT_YUVJ420P;
  picture->color_range = AVCOL_RANGE_JPEG;
  picture->width = width;
  picture->height = height;
  if (const int error = av_frame_get_buffer(picture.get(), 0); error < 0) {
    throw failure("no memory for a snapshot", error);
  }
  const int rows = sws_scale(scaler.get(), frame.data, frame.linesize, 0, frame.height,
                             picture->data, picture->linesize);
  if (rows != height) throw failure("a snapshot cannot be scaled", rows < 0 ? rows : AVERROR_BUG);
  return picture;
}

}  // namespace

std::string make_jpeg(const AVFrame& frame, int width) {
  const auto [wide, high] = size_of(frame, width);
  const FramePtr picture = scaled(frame, wide, high);
  const AVCodec* const codec = avcodec_find_encoder(AV_CODEC_ID_MJPEG);
  if (codec == nullptr) throw FeedError(FeedFault::kInternal, "FFmpeg has no JPEG encoder");
  const CodecContextPtr encoder(avcodec_alloc_context3(codec));
  if (encoder == nullptr) throw FeedError(FeedFault::kMemory, "no memory for a JPEG encoder");
  encoder->width = wide;
  encoder->height = high;
  encoder->pix_fmt = AV_PIX_FMT_YUVJ420P;
  encoder->color_range = AVCOL_RANGE_JPEG;
  encoder->time_base = {1, 1};
  encoder->thread_count = 1;
  encoder->flags |= AV_CODEC_FLAG_QSCALE;
  encoder->global_quality = picture->quality = kQuality;
  picture->pts = 0;
  const PacketPtr packet = make_packet();
  int error = avcodec_open2(encoder.get(), codec, nullptr);
  if (error >= 0) error = avcodec_send_frame(encoder.get(), picture.get());
  if (error >= 0) error = avcodec_receive_packet(encoder.get(), packet.get());
  if (error < 0) throw failure("a snapshot cannot be made a JPEG", error);
  return {reinterpret_cast<const char*>(packet->data), static_cast<std::size_t>(packet->size)};
}

std::shared_ptr<const AVFrame> decode_keyframe(const SnapshotTap::Keyframe& keyframe,
                                               std::int64_t most_pixels) {
  const AVCodecParameters& parameters = *keyframe.format->video.parameters;
  const AVCodec* const codec = avcodec_find_decoder(parameters.codec_id);
  if (codec == nullptr) {
    throw FeedError(FeedFault::kConfiguration,
                    std::string("no decoder here takes ") + avcodec_get_name(parameters.codec_id));
  }
  const CodecContextPtr decoder(avcodec_alloc_context3(codec));
  if (decoder == nullptr) throw FeedError(FeedFault::kMemory, "no memory for a decoder");
  int error = avcodec_parameters_to_context(decoder.get(), &parameters);
  decoder->thread_count = 1;
  decoder->max_pixels = most_pixels;
  const FramePtr frame = make_frame();
  if (error >= 0) error = avcodec_open2(decoder.get(), codec, nullptr);
  if (error >= 0) error = avcodec_send_packet(decoder.get(), keyframe.packet.get());
  if (error >= 0) error = avcodec_send_packet(decoder.get(), nullptr);  // no frame is held back
  if (error >= 0) error = avcodec_receive_frame(decoder.get(), frame.get());
  if (error < 0) throw failure("the newest keyframe cannot be decoded", error);
  FramePtr own = make_frame();
  av_frame_move_ref(own.get(), frame.get());
  // The stream may leave the pixels' shape to its container.
  if (own->sample_aspect_ratio.num <= 0) {
    own->sample_aspect_ratio = parameters.sample_aspect_ratio;
  }
  return {own.release(), AvDeleter()};
}

}  // namespace framelane
