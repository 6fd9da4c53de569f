#include "kernels/cuda/unpack.cuh"

#include "kernels/chroma_taps.hpp"
#include "kernels/cuda/frame_by_frame.hpp"
#include "kernels/cuda/general.hpp"
#include "kernels/cuda/unpack.hpp"
#include "kernels/fixed_form.hpp"
#include "kernels/linear_transform.hpp"

namespace framelane {
namespace {

using namespace cuda;

constexpr std::uintptr_t kAlignment = 16;

class UnpackConverter final : public FrameByFrame {
 public:
  explicit UnpackConverter(const Conversion& conversion)
      : FrameByFrame(kAlignment, make_general_cuda_converter(conversion)),
        luma_first_(conversion.source == PixelFormat::kYuyv),
        rows_(!info(conversion.target).chroma_half_height    ? 1
              : cosited_down(conversion.target_color.siting) ? 3
                                                             : 2) {}

  const char* name() const override { return "unpack"; }

 private:
  cudaError_t enqueue_kernel(const CudaFrame& frame, int row_begin, int row_end,
                             cudaStream_t stream) const override {
    return with_kernel(
        [&](auto body) { return launch_one(body, frame, row_begin, row_end, stream); });
  }
  cudaError_t load_kernel() const override {
    return with_kernel([](auto body) { return cuda::load<Residency::kAny, decltype(body)>(); });
  }

  /// Calls what(body) with the body for this conversion.
  template <typename What>
  cudaError_t with_kernel(What what) const {
    return luma_first_ ? with_rows<0>(what) : with_rows<1>(what);
  }
  template <int kLuma, typename What>
  cudaError_t with_rows(What what) const {
    switch (rows_) {
      case 1:
        return what(Unpack<kLuma, 1>{});
      case 2:
        return what(Unpack<kLuma, 2>{});
      default:
        return what(Unpack<kLuma, 3>{});
    }
  }

  template <typename Body>
  static cudaError_t launch_one(Body body, const CudaFrame& frame, int row_begin, int row_end,
                                cudaStream_t stream) {
    Samples2d<const std::uint8_t> from[3];
    locate(frame.source, from);
    body.from = from[0];
    body.from.data = frame.source.planes[0].data;
    locate(frame.target, body.to);
    body.height = frame.target.height;
    body.row_begin = row_begin;
    body.row_end = row_end;
    const int columns = (frame.target.width + Body::kColumns - 1) / Body::kColumns;
    const int rows = (row_end - row_begin + Body::kStep - 1) / Body::kStep;
    return launch<Residency::kAny>(columns, rows, 1, stream, body);
  }

  const bool luma_first_;
  const int rows_;
};

}  // namespace

std::unique_ptr<const CudaConverter> make_cuda_unpack_converter(const Conversion& conversion) {
  const bool packed =
      conversion.source == PixelFormat::kYuyv || conversion.source == PixelFormat::kUyvy;
  const bool known = conversion.target == PixelFormat::kI420 ||
                     conversion.target == PixelFormat::kNv12 ||
                     conversion.target == PixelFormat::kI422;
  if (!packed || !known || mixes_channels(conversion)) return nullptr;
  const auto forms = color_transform(conversion);
  for (std::size_t i = 0; i < 3; ++i) {
    if (!is_copy(forms[i], i)) return nullptr;
  }
  return std::make_unique<UnpackConverter>(conversion);
}

}  // namespace framelane
