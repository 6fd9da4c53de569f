#include "pipeline/source/frame_importer.hpp"

extern "C" {
#include <libavutil/imgutils.h>
#include <libavutil/pixdesc.h>
}

#include <algorithm>
#include <array>
#include <cerrno>
#include <string>

#include "pipeline/av/av_color.hpp"
#include "pipeline/av/av_ptr.hpp"
#include "pipeline/base/failure.hpp"
#include "pipeline/base/log.hpp"

namespace framelane {
namespace {

std::string name_of(AVPixelFormat format) {
  const char* name = av_get_pix_fmt_name(format);
  return name != nullptr ? name : "of an unknown pixel format";
}

/// The layout that loses least of a format that is none of our layouts; alpha does not count.
PixelFormat nearest_layout(AVPixelFormat format) {
  static constexpr std::array kCandidates{
      AV_PIX_FMT_YUV420P, AV_PIX_FMT_YUV422P, AV_PIX_FMT_YUV444P, AV_PIX_FMT_NV12,
      AV_PIX_FMT_BGRA,    AV_PIX_FMT_GRAY8,   AV_PIX_FMT_NONE};
  const AVPixelFormat best =
      avcodec_find_best_pix_fmt_of_list(kCandidates.data(), format, 0, nullptr);
  const std::optional<PixelFormat> layout = layout_of(best);
  if (!layout || sws_isSupportedInput(format) == 0) {
    throw FeedError(FeedFault::kConfiguration, "the source's pixel format " + name_of(format) +
                                                   " is not one framelane can convert");
  }
  return *layout;
}

int sws_matrix(Matrix matrix) {
  switch (matrix) {
    case Matrix::kBt601:
      return SWS_CS_ITU601;
    case Matrix::kBt2020:
      return SWS_CS_BT2020;
    case Matrix::kBt709:
    case Matrix::kRgb:
      break;
  }
  return SWS_CS_ITU709;
}

bool is_interlaced(const AVFrame& frame) {
#if LIBAVUTIL_VERSION_INT >= AV_VERSION_INT(58, 7, 100)
  return (frame.flags & AV_FRAME_FLAG_INTERLACED) != 0;
#else
  return frame.interlaced_frame != 0;
#endif
}

bool is_top_field_first(const AVFrame& frame) {
#if LIBAVUTIL_VERSION_INT >= AV_VERSION_INT(58, 7, 100)
  return (frame.flags & AV_FRAME_FLAG_TOP_FIELD_FIRST) != 0;
#else
  return frame.top_field_first != 0;
#endif
}

}  // namespace

InputFrame FrameImporter::import(const AVFrame& frame, bool in_place) {
  const bool on_device = frame.format == AV_PIX_FMT_CUDA;
  // FFmpeg crops a frame on a GPU only on the right and at the bottom.
  const Form form{.format = on_device ? AV_PIX_FMT_NV12 : static_cast<AVPixelFormat>(frame.format),
                  .memory = on_device ? FrameMemory::kDevice : FrameMemory::kHost,
                  .width = frame.width - (on_device ? static_cast<int>(frame.crop_left) : 0),
                  .height = frame.height - (on_device ? static_cast<int>(frame.crop_top) : 0),
                  .space = frame.colorspace,
                  .range = frame.color_range,
                  .location = frame.chroma_location,
                  .primaries = frame.color_primaries,
                  .transfer = frame.color_trc};
  if (form_ != form) adopt(form);

  InputFrame result;
  result.color = color_;
  result.sample_aspect_ratio = frame.sample_aspect_ratio;
  result.interlaced = is_interlaced(frame);
  result.top_field_first = is_top_field_first(frame);
  if (on_device) {
    refer_to_surface(frame, result);
    return result;
  }
  if (scaler_) {
    scale(frame, result);
    return result;
  }

  const int planes = info(layout_).plane_count;
  bool upright = true;
  for (int plane = 0; plane < planes; ++plane) upright = upright && frame.linesize[plane] > 0;
  const bool ours =
      frame.buf[0] != nullptr && frame.buf[1] == nullptr && (in_place || pool_.owns(frame.data[0]));
  if (!upright || !ours) {
    stats_.count(upright ? HostCopy::kDecoder : HostCopy::kAlignment);
    copy(frame, result);
    return result;
  }
  result.image = view_of(frame);
  AVBufferRef* reference = av_buffer_ref(frame.buf[0]);
  if (reference == nullptr) throw std::bad_alloc();
  result.buffer = BufferRef::adopt(reference);
  return result;
}

void FrameImporter::adopt(const Form& form) {
  const std::optional<PixelFormat> layout = layout_of(form.format);
  layout_ = layout ? *layout : nearest_layout(form.format);
  AvColorTags tags{.space = form.space,
                   .range = form.range,
                   .location = form.location,
                   .primaries = form.primaries,
                   .transfer = form.transfer};
  // A yuvj format says "full range" by its name. If it is none of our layouts, swscale converts to
  // one whose name does not say so.
  if (!layout && name_of(form.format).starts_with("yuvj")) tags.range = AVCOL_RANGE_JPEG;
  color_ =
      resolve_color(layout ? form.format : av_format(layout_), form.height, tags, color_override_);
  form_ = form;
  stats_.set_size(form.width, form.height);
  log::info("feed {}: video is {}x{} {}{}, {}", stats_.feed(), form.width, form.height,
            name_of(form.format), form.memory == FrameMemory::kDevice ? " on the GPU" : "",
            describe(color_));
  warn_of_siting();
  scaler_.reset();
  if (!layout) make_scaler();
}

// H.264 and HEVC have six places for chroma; conversions and tags have three.
void FrameImporter::warn_of_siting() const {
  const bool known = form_->location <= AVCHROMA_LOC_TOPLEFT || color_override_.siting;
  if (known || !info(layout_).chroma_half_height) return;
  log::warn(
      "feed {}: the source's chroma siting ({}) is not one framelane converts; it is treated and "
      "tagged as left. Set input.color.siting to left, center or topleft to say what comes nearest",
      stats_.feed(), av_chroma_location_name(form_->location));
}

void FrameImporter::make_scaler() {
  if (!scaling_logged_) {
    log::info(
        "feed {}: {} is not one of framelane's formats: swscale turns each frame into {} "
        "first",
        stats_.feed(), name_of(form_->format), info(layout_).name);
    scaling_logged_ = true;
  }
  constexpr int kFlags =
      SWS_BICUBIC | SWS_ACCURATE_RND | SWS_FULL_CHR_H_INT | SWS_FULL_CHR_H_INP | SWS_BITEXACT;
  scaler_.reset(sws_getContext(form_->width, form_->height, form_->format, form_->width,
                               form_->height, av_format(layout_), kFlags, nullptr, nullptr,
                               nullptr));
  if (!scaler_) {
    // swscale does not say why. What it knows, it can convert, if it gets memory.
    const bool known = sws_isSupportedInput(form_->format) != 0 &&
                       sws_isSupportedOutput(av_format(layout_)) != 0 &&
                       av_image_check_size(static_cast<unsigned>(form_->width),
                                           static_cast<unsigned>(form_->height), 0, nullptr) >= 0;
    if (known) throw FeedError(FeedFault::kMemory, shortage_text("swscale got no memory"));
    throw FeedError(FeedFault::kConfiguration,
                    "swscale cannot convert " + std::to_string(form_->width) + "x" +
                        std::to_string(form_->height) + " " + name_of(form_->format) + " frames");
  }
  // swscale changes the layout alone. Matrix and range stay as they are, for the stage to convert.
  const int* coefficients = sws_getCoefficients(sws_matrix(color_.matrix));
  const int full = color_.range == Range::kFull ? 1 : 0;
  sws_setColorspaceDetails(scaler_.get(), coefficients, full, coefficients, full, 0, 1 << 16,
                           1 << 16);
}

/// Refers to the surface that NVDEC decoded into. The InputFrame owns a clone of the AVFrame:
/// the surface goes back to NVDEC when the AVFrame's references are released.
void FrameImporter::refer_to_surface(const AVFrame& frame, InputFrame& to) const {
  const auto left = static_cast<std::ptrdiff_t>(frame.crop_left);
  const auto top = static_cast<std::ptrdiff_t>(frame.crop_top);
  to.image = {PixelFormat::kNv12, form_->width, form_->height, {}};
  to.image.planes[0] = {frame.data[0] + top * frame.linesize[0] + left, frame.linesize[0]};
  to.image.planes[1] = {frame.data[1] + top / 2 * frame.linesize[1] + left / 2 * 2,
                        frame.linesize[1]};
  to.memory = FrameMemory::kDevice;
  FramePtr clone(av_frame_clone(&frame));
  if (!clone) throw std::bad_alloc();
  const auto free_frame = [](void*, std::uint8_t* data) {
    const FramePtr owned(reinterpret_cast<AVFrame*>(data));
  };
  AVBufferRef* owner = av_buffer_create(reinterpret_cast<std::uint8_t*>(clone.get()),
                                        sizeof(AVFrame), free_frame, nullptr, 0);
  if (owner == nullptr) throw std::bad_alloc();
  static_cast<void>(clone.release());
  to.buffer = BufferRef::adopt(owner);
}

ConstImageView FrameImporter::view_of(const AVFrame& frame) const {
  ConstImageView view{layout_, frame.width, frame.height, {}};
  for (int plane = 0; plane < info(layout_).plane_count; ++plane) {
    view.planes[plane] = {frame.data[plane], frame.linesize[plane]};
  }
  return view;
}

void FrameImporter::copy(const AVFrame& frame, InputFrame& to) {
  PooledImage target = copy_into(pool_, view_of(frame));
  to.image = as_const(target.image);
  to.buffer = std::move(target.buffer);
}

void FrameImporter::scale(const AVFrame& frame, InputFrame& to) {
  PooledImage target = allocate_image(pool_, layout_, frame.width, frame.height);
  std::array<std::uint8_t*, 4> data{};
  std::array<int, 4> pitch{};
  for (int plane = 0; plane < info(layout_).plane_count; ++plane) {
    data[plane] = target.image.planes[plane].data;
    pitch[plane] = static_cast<int>(target.image.planes[plane].pitch);
  }
  const int rows = sws_scale(scaler_.get(), frame.data, frame.linesize, 0, frame.height,
                             data.data(), pitch.data());
  if (rows == AVERROR(ENOMEM)) {
    throw FeedError(FeedFault::kMemory, shortage_text("swscale got no memory"));
  }
  if (rows != frame.height) {
    throw FeedError(FeedFault::kInternal, "swscale converted " + std::to_string(std::max(rows, 0)) +
                                              " of " + std::to_string(frame.height) +
                                              " rows of a " + name_of(form_->format) + " frame");
  }
  stats_.count(HostCopy::kFormat);
  to.image = as_const(target.image);
  to.buffer = std::move(target.buffer);
}

}  // namespace framelane
