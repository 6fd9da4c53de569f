#include "kernels/cuda/rgb_to_yuv.cuh"

#include <algorithm>
#include <cassert>

#include "kernels/cuda/general.hpp"
#include "kernels/cuda/luma_count.hpp"
#include "kernels/cuda/rgb_to_yuv.hpp"
#include "kernels/cuda/samples.cuh"

namespace framelane {
namespace {

using namespace cuda;

/// Frames in one launch. Their addresses are in the kernel's parameters.
constexpr std::size_t kBatch = 16;

struct Rows {
  int begin, end;
};

struct Quotients {
  Quotient luma, u, v;
};

using Launch = cudaError_t (*)(const Quotients& quotients, std::span<const CudaFrame> frames,
                               Rows rows, cudaStream_t stream);

/// The functions of one instantiation of the kernel, and the sum of its chroma weights.
struct Path {
  Launch launch = nullptr;
  Launch launch_counting = nullptr;
  cudaError_t (*load)() = nullptr;
  cudaError_t (*load_counting)() = nullptr;
  int chroma_scale = 0;
};

template <typename Body>
Body make_body(const Quotients& quotients, std::span<const CudaFrame> frames, Rows rows) {
  Body body{};
  body.luma = quotients.luma;
  body.u = quotients.u;
  body.v = quotients.v;
  body.width = frames[0].target.width;
  body.height = frames[0].target.height;
  body.row_begin = rows.begin;
  body.row_end = rows.end;
  for (std::size_t i = 0; i < frames.size(); ++i) {
    const ConstImageView& source = frames[i].source;
    const ImageView& target = frames[i].target;
    RgbToYuvFrame& frame = body.frames[i];
    frame.source = source.planes[0].data;
    frame.source_pitch = source.planes[0].pitch;
    for (std::size_t plane = 0; plane < 3; ++plane) {
      frame.planes[plane] = target.planes[plane].data;
      frame.pitches[plane] = target.planes[plane].pitch;
    }
  }
  return body;
}

template <typename Body>
int thread_columns(const Body& body) {
  return (body.width + kQuad - 1) / kQuad;
}
template <typename Body>
int thread_rows(const Body& body) {
  constexpr int kThreadRows = 2 * Body::kRowPairs;
  return (body.row_end - body.row_begin + kThreadRows - 1) / kThreadRows;
}

template <RgbLayout kLayout, YuvLayout kTarget, Siting kSiting, std::size_t kFrames>
cudaError_t launch_batch(const Quotients& quotients, std::span<const CudaFrame> frames, Rows rows,
                         cudaStream_t stream) {
  using Body = RgbToYuv<kLayout, kTarget, kSiting, static_cast<int>(kFrames)>;
  const Body body = make_body<Body>(quotients, frames, rows);
  return launch<Body::kResidency>(thread_columns(body), thread_rows(body),
                                  static_cast<int>(frames.size()), stream, body);
}

template <RgbLayout kLayout, YuvLayout kTarget, Siting kSiting>
cudaError_t launch_frames(const Quotients& quotients, std::span<const CudaFrame> frames, Rows rows,
                          cudaStream_t stream) {
  while (!frames.empty()) {
    const auto batch = frames.first(std::min(frames.size(), kBatch));
    const cudaError_t error =
        batch.size() == 1
            ? launch_batch<kLayout, kTarget, kSiting, 1>(quotients, batch, rows, stream)
            : launch_batch<kLayout, kTarget, kSiting, kBatch>(quotients, batch, rows, stream);
    if (error != cudaSuccess) return error;
    frames = frames.subspan(batch.size());
  }
  return cudaSuccess;
}

/// Converts one frame per launch and counts its luma.
template <RgbLayout kLayout, YuvLayout kTarget, Siting kSiting>
cudaError_t launch_each_counting(const Quotients& quotients, std::span<const CudaFrame> frames,
                                 Rows rows, cudaStream_t stream) {
  using Body = RgbToYuv<kLayout, kTarget, kSiting, 1>;
  for (const CudaFrame& frame : frames) {
    cudaError_t error = cudaSuccess;
    if constexpr (Body::kHalfHeight) {
      const Body body = make_body<Body>(quotients, {&frame, 1}, rows);
      error = launch_counting(thread_columns(body), (rows.end - rows.begin + 1) / 2, stream, body,
                              frame.luma_counts);
    } else {
      // Too rare for kernels that convert and count.
      error = launch_frames<kLayout, kTarget, kSiting>(quotients, {&frame, 1}, rows, stream);
      if (error == cudaSuccess) {
        error = enqueue_luma_count(as_const(frame.target), rows.begin, rows.end, frame.luma_counts,
                                   stream);
      }
    }
    if (error != cudaSuccess) return error;
  }
  return cudaSuccess;
}

template <RgbLayout kLayout, YuvLayout kTarget, Siting kSiting>
cudaError_t load_counting_kernels() {
  using Body = RgbToYuv<kLayout, kTarget, kSiting, 1>;
  if constexpr (Body::kHalfHeight) {
    return load_counting<Body>();
  } else {
    const cudaError_t error = load<Body::kResidency, Body>();
    return error != cudaSuccess ? error : load_luma_count();
  }
}

template <RgbLayout kLayout, YuvLayout kTarget, Siting kSiting>
cudaError_t load_both() {
  using One = RgbToYuv<kLayout, kTarget, kSiting, 1>;
  using Many = RgbToYuv<kLayout, kTarget, kSiting, static_cast<int>(kBatch)>;
  const cudaError_t error = load<One::kResidency, One>();
  return error != cudaSuccess ? error : load<Many::kResidency, Many>();
}

template <RgbLayout kLayout, YuvLayout kTarget, Siting kSiting>
constexpr Path kPath{
    launch_frames<kLayout, kTarget, kSiting>, launch_each_counting<kLayout, kTarget, kSiting>,
    load_both<kLayout, kTarget, kSiting>, load_counting_kernels<kLayout, kTarget, kSiting>,
    RgbToYuv<kLayout, kTarget, kSiting, 1>::kChromaScale};

template <RgbLayout kLayout, YuvLayout kTarget>
Path choose_siting(Siting siting) {
  switch (siting) {
    case Siting::kLeft:
      return kPath<kLayout, kTarget, Siting::kLeft>;
    case Siting::kCenter:
      return kPath<kLayout, kTarget, Siting::kCenter>;
    case Siting::kTopLeft:
      return kPath<kLayout, kTarget, Siting::kTopLeft>;
  }
  return {};
}

template <RgbLayout kLayout>
Path choose_target(PixelFormat target, Siting siting) {
  switch (target) {
    case PixelFormat::kI420:
      return choose_siting<kLayout, YuvLayout::kI420>(siting);
    case PixelFormat::kNv12:
      return choose_siting<kLayout, YuvLayout::kNv12>(siting);
    case PixelFormat::kI422:
      // Left and top-left differ only if chroma rows are subsampled.
      return siting == Siting::kCenter ? kPath<kLayout, YuvLayout::kI422, Siting::kCenter>
                                       : kPath<kLayout, YuvLayout::kI422, Siting::kLeft>;
    case PixelFormat::kI444:
      return kPath<kLayout, YuvLayout::kI444, Siting::kLeft>;
    case PixelFormat::kYuv444:
      return kPath<kLayout, YuvLayout::kPacked444, Siting::kLeft>;
    case PixelFormat::kGray8:
      return kPath<kLayout, YuvLayout::kGray, Siting::kLeft>;
    default:
      return {};
  }
}

RgbLayout layout_of(PixelFormat source) {
  switch (source) {
    case PixelFormat::kBgr24:
    case PixelFormat::kRgb24:
      return RgbLayout::k24Bit;
    case PixelFormat::kArgb:
    case PixelFormat::kAbgr:
      return RgbLayout::kAlphaFirst;
    default:
      return RgbLayout::kColorFirst;
  }
}

Path choose(const Conversion& conversion) {
  const Siting siting = conversion.target_color.siting;
  switch (layout_of(conversion.source)) {
    case RgbLayout::kColorFirst:
      return choose_target<RgbLayout::kColorFirst>(conversion.target, siting);
    case RgbLayout::kAlphaFirst:
      return choose_target<RgbLayout::kAlphaFirst>(conversion.target, siting);
    case RgbLayout::k24Bit:
      return choose_target<RgbLayout::k24Bit>(conversion.target, siting);
  }
  return {};
}

class RgbToYuvConverter final : public CudaConverter {
 public:
  explicit RgbToYuvConverter(const Conversion& conversion)
      : path_(choose(conversion)),
        source_alignment_(layout_of(conversion.source) == RgbLayout::k24Bit ? 4 : 16),
        general_(make_general_cuda_converter(conversion)) {
    assert(path_.launch != nullptr);
    const auto forms = color_transform(conversion.source_color, conversion.target_color);
    const bool blue_first = conversion.source == PixelFormat::kBgra ||
                            conversion.source == PixelFormat::kAbgr ||
                            conversion.source == PixelFormat::kBgr24;
    quotients_ = {make_quotient(forms[0], 1, blue_first),
                  make_quotient(forms[1], path_.chroma_scale, blue_first),
                  make_quotient(forms[2], path_.chroma_scale, blue_first)};
  }

  using CudaConverter::enqueue;
  cudaError_t enqueue(std::span<const CudaFrame> frames, int row_begin, int row_end,
                      cudaStream_t stream) const override {
    const bool aligned = std::all_of(frames.begin(), frames.end(), [this](const CudaFrame& frame) {
      return is_aligned(frame.source, source_alignment_) && is_aligned(frame.target, 4);
    });
    if (!aligned) return general_->enqueue(frames, row_begin, row_end, stream);
    const bool counts_luma = !frames.empty() && frames.front().luma_counts != nullptr;
    const Launch launch = counts_luma ? path_.launch_counting : path_.launch;
    return launch(quotients_, frames, {row_begin, row_end}, stream);
  }

  cudaError_t load(bool counts_luma) const override {
    const cudaError_t error = counts_luma ? path_.load_counting() : path_.load();
    return error != cudaSuccess ? error : general_->load(counts_luma);
  }

  std::size_t frames_a_launch() const override { return kBatch; }
  const char* name() const override { return "rgb-to-yuv"; }

 private:
  Path path_;
  std::uintptr_t source_alignment_;
  std::unique_ptr<const CudaConverter> general_;
  Quotients quotients_;
};

}  // namespace

bool is_cuda_rgb_to_yuv(const Conversion& conversion) {
  return info(conversion.source).rgb && !info(conversion.target).rgb &&
         conversion.source_color.range == Range::kFull;
}

std::unique_ptr<const CudaConverter> make_cuda_rgb_to_yuv_converter(const Conversion& conversion) {
  assert(is_cuda_rgb_to_yuv(conversion));
  return std::make_unique<RgbToYuvConverter>(conversion);
}

}  // namespace framelane
