#include "pipeline/encode/encoder_frame.hpp"

#include <cstdint>

#include "pipeline/encode/encode_plan.hpp"

namespace framelane {
namespace {

void refer_to(AVFrame& frame, const ConstImageView& image, const BufferRef& buffer) {
  frame.buf[0] = BufferRef(buffer).release();
  for (int plane = 0; plane < info(image.format).plane_count; ++plane) {
    // Encoders read through these pointers; AVFrame has no const form.
    frame.data[plane] = const_cast<std::uint8_t*>(image.planes[plane].data);
    frame.linesize[plane] = static_cast<int>(image.planes[plane].pitch);
  }
  frame.extended_data = frame.data;
  frame.width = image.width;
  frame.height = image.height;
}

/// False if lines of both fields are mixed, or change places.
bool keeps_lines(const EncodePlan& plan, const InputFrame& input) {
  if (!plan.scaling) return true;
  const auto& [transposed, mirrored, upside_down] = plan.scaling->orientation;
  return !transposed && !upside_down && plan.scaling->crop.height == input.image.height &&
         plan.scaling->place.height == input.image.height;
}

}  // namespace

void refer_to(AVFrame& frame, const FrameJob& job, const JobOutput& output,
              const AVCodecContext& encoder, const BufferRef& frames) {
  refer_to(frame, output.converts ? as_const(output.target.image) : job.input.image,
           output.converts ? output.target.buffer : job.input.buffer);
  frame.format = encoder.pix_fmt;
  if (frames) frame.hw_frames_ctx = BufferRef(frames).release();
  frame.colorspace = encoder.colorspace;
  frame.color_range = encoder.color_range;
  frame.color_primaries = encoder.color_primaries;
  frame.color_trc = encoder.color_trc;
  frame.chroma_location = encoder.chroma_sample_location;
  frame.sample_aspect_ratio = encoder.sample_aspect_ratio;
  const bool interlaced = job.input.interlaced && keeps_lines(*output.encode_plan, job.input);
#if LIBAVUTIL_VERSION_INT >= AV_VERSION_INT(58, 7, 100)
  if (interlaced) frame.flags |= AV_FRAME_FLAG_INTERLACED;
  if (interlaced && job.input.top_field_first) frame.flags |= AV_FRAME_FLAG_TOP_FIELD_FIRST;
#else
  frame.interlaced_frame = interlaced;
  frame.top_field_first = interlaced && job.input.top_field_first;
#endif
}

}  // namespace framelane
