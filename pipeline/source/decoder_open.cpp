// How a Decoder is opened, on a GPU and in software, and what FFmpeg asks of it.
extern "C" {
#include <libavutil/hwcontext.h>
#include <libavutil/imgutils.h>
#include <libavutil/pixdesc.h>
}

#include <algorithm>
#include <array>
#include <cstddef>
#include <new>
#include <utility>

#include "pipeline/av/av_color.hpp"
#include "pipeline/av/av_error.hpp"
#include "pipeline/av/av_log_capture.hpp"
#include "pipeline/base/failure.hpp"
#include "pipeline/base/processors.hpp"
#include "pipeline/source/decoder.hpp"

namespace framelane {
namespace {

/// Behind every plane: decoders and what reads their frames run up to this far over the end.
constexpr std::size_t kPlanePadding = 128;

void allow_threaded_callbacks([[maybe_unused]] AVCodecContext& context) {
#if LIBAVCODEC_VERSION_MAJOR < 60
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
  context.thread_safe_callbacks = 1;  // later versions take it for granted
#pragma GCC diagnostic pop
#endif
}

/// NVDEC's own limit.
constexpr int kMaxSurfaces = 32;
/// Frames that the feed holds besides those in its ring: one that waits for its place, and FFmpeg's
/// own next one.
constexpr int kInHand = 2;
/// Surfaces that FFmpeg adds to what the codec needs and to what it is asked for.
constexpr int kFfmpegsOwn = 3;

/// "h264 1920x1080 yuv420p"
std::string describe(const AVCodecContext& context) {
  const char* pixels = av_get_pix_fmt_name(context.sw_pix_fmt);
  return std::string(context.codec->name) + ' ' + std::to_string(context.width) + 'x' +
         std::to_string(context.height) + (pixels != nullptr ? std::string(" ") + pixels : "");
}

}  // namespace

const AVCodec* nvdec_of(AVCodecID id) {
  void* position = nullptr;
  while (const AVCodec* codec = av_codec_iterate(&position)) {
    if (codec->id != id || av_codec_is_decoder(codec) == 0 || codec->wrapper_name != nullptr) {
      continue;
    }
    for (int i = 0; const AVCodecHWConfig* config = avcodec_get_hw_config(codec, i); ++i) {
      if (config->pix_fmt == AV_PIX_FMT_CUDA &&
          (config->methods & AV_CODEC_HW_CONFIG_METHOD_HW_DEVICE_CTX) != 0) {
        return codec;
      }
    }
  }
  return nullptr;
}

std::string nvdec_name(const AVCodec& codec) { return std::string(codec.name) + "_nvdec"; }

Decoder::Decoder(const AVCodecParameters& parameters, AVRational time_base, AVRational frame_rate,
                 Dictionary& options, const InputOptions& input, bool live,
                 const SourceContext& context, FrameImporter& importer)
    : parameters_(copy_parameters(parameters)),
      time_base_(time_base),
      frame_rate_(frame_rate),
      live_(live),
      must_use_gpu_(input.decoder == InputOptions::DecoderKind::kNvdec),
      stage_(context.stage),
      ring_(context.ring),
      pool_(context.pool),
      stats_(context.stats),
      timeline_(context.timeline),
      importer_(importer),
      options_(options.copy()),
      frame_(make_frame()) {
  const bool ask_gpu = input.decoder != InputOptions::DecoderKind::kSoftware;
  if (!ask_gpu) stats_.set_decoder_reason("");
  if (!ask_gpu || !open_on_gpu(options)) open_in_software(options);
}

std::string Decoder::name() const {
  return gpu_ ? nvdec_name(*context_->codec) : context_->codec->name;
}

/// False, with what there is to say said, where NVDEC cannot be had.
bool Decoder::open_on_gpu(Dictionary& options) {
  std::string why;
  const AVCodec* codec = nvdec_of(parameters_->codec_id);
  if (stage_ != nullptr) gpu_ = stage_->decode_context(why);
  if (gpu_ && codec == nullptr) {
    why = std::string("FFmpeg has no NVDEC decoder for ") + avcodec_get_name(parameters_->codec_id);
  } else if (gpu_) {
    Dictionary left = options.copy();
    const AvLogCapture log;
    const int error = open(*codec, left);
    if (error >= 0) {
      options = std::move(left);
      return true;
    }
    // Some ask for the format at once.
    why = std::exchange(refusal_, "");
    if (why.empty()) {
      why = std::string("the decoder ") + codec->name +
            " does not open on the GPU: " + log.reason(av_error_text(error));
    }
  }
  leave_gpu(FeedFault::kConfiguration, why);
  return false;
}

void Decoder::open_in_software(Dictionary& options) {
  const AVCodec* codec = avcodec_find_decoder(parameters_->codec_id);
  if (codec == nullptr) {
    stats_.count(DecodeFault::kUnsupported);
    throw FeedError(FeedFault::kConfiguration,
                    std::string("FFmpeg has no decoder for the source's codec ") +
                        avcodec_get_name(parameters_->codec_id) +
                        "; use video: copy, or set the camera to another codec");
  }
  if (const int error = open(*codec, options); error < 0) {
    if (error == AVERROR(ENOMEM)) throw no_memory();
    stats_.count(DecodeFault::kUnsupported);
    throw FeedError(FeedFault::kConfiguration, std::string("the decoder ") + codec->name +
                                                   " refuses the stream (" + av_error_text(error) +
                                                   "); check the values of input.options");
  }
}

/// Opens `codec` on the GPU if there is one, in place of what is open. Returns FFmpeg's error.
int Decoder::open(const AVCodec& codec, Dictionary& options) {
  context_.reset(avcodec_alloc_context3(&codec));
  if (!context_ || avcodec_parameters_to_context(context_.get(), parameters_.get()) < 0) {
    throw no_memory();
  }
  context_->pkt_timebase = time_base_;
  context_->framerate = frame_rate_;
  if (gpu_) {
    // Frame threads would only hold more surfaces; the option `threads` changes nothing either.
    context_->thread_count = 1;
    context_->thread_type = 0;
    context_->hw_device_ctx = BufferRef(gpu_).release();
    context_->get_format = &Decoder::choose_format;
#ifdef AV_HWACCEL_FLAG_UNSAFE_OUTPUT
    // The surfaces themselves, which earlier versions give out anyway: prepare_surfaces counts
    // them.
    context_->hwaccel_flags |= AV_HWACCEL_FLAG_UNSAFE_OUTPUT;
#endif
  } else {
    context_->thread_count = codec_threads(live_);  // the option `threads` overrides
    context_->thread_type = FF_THREAD_FRAME | FF_THREAD_SLICE;
    quieten();
  }
  // Crop exactly as the stream says: our views need no aligned start.
  context_->flags |= AV_CODEC_FLAG_UNALIGNED;
#if LIBAVCODEC_VERSION_MAJOR >= 60
  context_->flags |= AV_CODEC_FLAG_COPY_OPAQUE;
#endif
  context_->opaque = this;
  context_->get_buffer2 = &Decoder::get_buffer;
  allow_threaded_callbacks(*context_);
  return avcodec_open2(context_.get(), &codec, options.ptr());
}

/// Called by FFmpeg when it knows what the stream is, and again when that changes: NVDEC, or
/// nothing. It could go on in software in the same context, but on one thread.
AVPixelFormat Decoder::choose_format(AVCodecContext* context, const AVPixelFormat* offered) {
  auto& self = *static_cast<Decoder*>(context->opaque);
  try {
    while (*offered != AV_PIX_FMT_NONE && *offered != AV_PIX_FMT_CUDA) ++offered;
    if (*offered == AV_PIX_FMT_CUDA) {
      self.refusal_ = self.prepare_surfaces(*context);
      if (self.refusal_.empty()) return AV_PIX_FMT_CUDA;
    } else {
      // FFmpeg never offers it for this stream, or it has tried and NVDEC has refused.
      const std::string reason = AvLogCapture::first();
      self.refusal_ =
          "NVDEC does not take " + describe(*context) + (reason.empty() ? "" : ": ") + reason;
    }
  } catch (const std::exception&) {  // must not pass through C
    self.keep_exception();
  }
  return AV_PIX_FMT_NONE;
}

/// NVDEC decodes into a fixed number of surfaces and hands them out as they are: besides those that
/// the codec refers to there must be one for every frame that the feed holds. Returns why there
/// cannot be.
std::string Decoder::prepare_surfaces(AVCodecContext& context) const {
  const AVPixFmtDescriptor* pixels = av_pix_fmt_desc_get(context.sw_pix_fmt);
  const bool plain = pixels != nullptr && pixels->comp[0].depth == 8 &&
                     pixels->log2_chroma_w == 1 && pixels->log2_chroma_h == 1;
  if (!plain) {
    return "framelane takes 8-bit 4:2:0 from NVDEC, and the source is " + describe(context);
  }
  context.extra_hw_frames = 0;
  AVBufferRef* reference = nullptr;
  const int error =
      avcodec_get_hw_frames_parameters(&context, gpu_.get(), AV_PIX_FMT_CUDA, &reference);
  if (error < 0) return "NVDEC does not take " + describe(context) + ": " + av_error_text(error);
  const BufferRef frames = BufferRef::adopt(reference);
  const int needed =
      reinterpret_cast<const AVHWFramesContext*>(reference->data)->initial_pool_size + ring_ +
      kInHand;
  if (needed > kMaxSurfaces) {
    return "NVDEC has " + std::to_string(kMaxSurfaces) + " surfaces, and " +
           std::to_string(needed) + " are needed for " + describe(context) + " and a ring of " +
           std::to_string(ring_) + "; use a smaller ring";
  }
  context.extra_hw_frames = std::max(ring_ + kInHand - kFfmpegsOwn, 0);
  return {};
}

/// Damage is counted; what the decoder and its threads say about it is for those who look for it.
void Decoder::quieten() { context_->log_level_offset = AV_LOG_INFO - AV_LOG_ERROR; }

/// Keeps the exception that is being handled for failed(), on any thread.
void Decoder::keep_exception() noexcept {
  const std::lock_guard lock(exception_mutex_);
  if (!exception_) exception_ = std::current_exception();
}

FeedError Decoder::no_memory() {
  return FeedError(FeedFault::kMemory, "the decoder got no memory for a frame");
}

// Called on FFmpeg's decoding threads too.
int Decoder::get_buffer(AVCodecContext* context, AVFrame* frame, int flags) {
  const bool direct = (context->codec->capabilities & AV_CODEC_CAP_DR1) != 0;
  if (!direct || !layout_of(static_cast<AVPixelFormat>(frame->format))) {
    return avcodec_default_get_buffer2(context, frame, flags);
  }
  auto& self = *static_cast<Decoder*>(context->opaque);
  int width = frame->width;
  int height = frame->height;
  std::array<int, AV_NUM_DATA_POINTERS> alignment{};
  avcodec_align_dimensions2(context, &width, &height, alignment.data());
  // Widen until every plane's rows are aligned, instead of each plane by itself: decoders rely on
  // the chroma rows being a fixed fraction of the luma rows.
  const auto format = static_cast<AVPixelFormat>(frame->format);
  bool aligned = false;
  while (!aligned) {
    if (const int error = av_image_fill_linesizes(frame->linesize, format, width); error < 0) {
      return error;
    }
    aligned = true;
    for (int plane = 0; plane < 4; ++plane) {
      aligned = aligned && frame->linesize[plane] % FramePool::kPitchAlignment == 0;
    }
    width += width & -width;
  }
  std::array<std::ptrdiff_t, 4> pitches{};
  for (int plane = 0; plane < 4; ++plane) pitches[plane] = frame->linesize[plane];
  std::array<std::size_t, 4> bytes{};
  if (const int error = av_image_fill_plane_sizes(bytes.data(), format, height, pitches.data());
      error < 0) {
    return error;
  }
  std::array<std::size_t, 4> offsets{};
  std::size_t total = 0;
  for (int plane = 0; plane < 4 && bytes[plane] > 0; ++plane) {
    offsets[plane] = total;
    total += (bytes[plane] + kPlanePadding + FramePool::kPitchAlignment - 1) /
             FramePool::kPitchAlignment * FramePool::kPitchAlignment;
  }
  try {
    frame->buf[0] = self.pool_.get(total).release();
  } catch (const std::exception&) {  // must not pass through C
    self.keep_exception();
    return AVERROR(ENOMEM);
  }
  for (int plane = 0; plane < 4 && bytes[plane] > 0; ++plane) {
    frame->data[plane] = frame->buf[0]->data + offsets[plane];
  }
  frame->extended_data = frame->data;
  return 0;
}

}  // namespace framelane
