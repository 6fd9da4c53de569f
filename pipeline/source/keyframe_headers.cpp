#include "pipeline/source/keyframe_headers.hpp"

extern "C" {
#include <libavcodec/bsf.h>
}

#include <new>

namespace framelane {

KeyframeHeaders::KeyframeHeaders(const AVCodecParameters& parameters) {
  const AVCodecDescriptor* codec = avcodec_descriptor_get(parameters.codec_id);
  if (codec == nullptr || (codec->props & AV_CODEC_PROP_INTRA_ONLY) != 0) return;
  parser_ = av_parser_init(parameters.codec_id);
  if (parser_ == nullptr) return;
  parser_->flags |= PARSER_FLAG_COMPLETE_FRAMES;
  context_.reset(avcodec_alloc_context3(nullptr));
  if (!context_ || avcodec_parameters_to_context(context_.get(), &parameters) < 0) {
    av_parser_close(parser_);
    throw std::bad_alloc();
  }
  width_ = parameters.width;
  height_ = parameters.height;
}

KeyframeHeaders::~KeyframeHeaders() { av_parser_close(parser_); }

std::optional<KeyframeHeaders::Change> KeyframeHeaders::read(const AVPacket& packet) {
  if (parser_ == nullptr || (packet.flags & AV_PKT_FLAG_KEY) == 0) return std::nullopt;
  std::uint8_t* frame = nullptr;
  int size = 0;
  av_parser_parse2(parser_, context_.get(), &frame, &size, packet.data, packet.size, packet.pts,
                   packet.dts, packet.pos);
  if (parser_->width <= 0 || parser_->height <= 0) return std::nullopt;
  if (parser_->width == width_ && parser_->height == height_) return std::nullopt;
  width_ = parser_->width;
  height_ = parser_->height;
  return Change{width_, height_, extradata_of(packet)};
}

std::vector<std::uint8_t> KeyframeHeaders::extradata_of(const AVPacket& packet) const {
  std::vector<std::uint8_t> extradata;
  const AVBitStreamFilter* filter = av_bsf_get_by_name("extract_extradata");
  AVBSFContext* bsf = nullptr;
  if (filter == nullptr || av_bsf_alloc(filter, &bsf) < 0) return extradata;
  const PacketPtr copy(av_packet_clone(&packet));
  if (copy && avcodec_parameters_from_context(bsf->par_in, context_.get()) >= 0 &&
      av_bsf_init(bsf) >= 0 && av_bsf_send_packet(bsf, copy.get()) >= 0 &&
      av_bsf_receive_packet(bsf, copy.get()) >= 0) {
    std::size_t size = 0;
    const std::uint8_t* data =
        av_packet_get_side_data(copy.get(), AV_PKT_DATA_NEW_EXTRADATA, &size);
    if (data != nullptr) extradata.assign(data, data + size);
  }
  av_bsf_free(&bsf);
  return extradata;
}

}  // namespace framelane
