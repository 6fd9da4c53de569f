#include "tests/pipeline/stage/cuda/stage_fixture.hpp"

#include <algorithm>
#include <cstring>
#include <iterator>
#include <random>
#include <utility>

#include "kernels/reference.hpp"
#include "tests/pipeline/frames/random_bytes.hpp"

namespace framelane::testing {
namespace {

struct Surface {
  Surface(std::shared_ptr<CudaContext> context, std::size_t size)
      : gpu(std::move(context)), pool(gpu->decode_stream()), memory(std::in_place, pool, size) {}
  ~Surface() {
    gpu->try_make_current();
    // The copy that fills it must have ended. If a test makes the call fail, it is repeated.
    const cudaStream_t filler = gpu->decode_stream().get();
    if (cudaStreamSynchronize(filler) != cudaSuccess) cudaStreamSynchronize(filler);
    memory.reset();
    if (back) ++*back;
  }
  std::shared_ptr<CudaContext> gpu;
  DevicePool pool;
  std::optional<DeviceMemory> memory;
  std::shared_ptr<std::atomic<int>> back;
};

void copy_planes(const ConstImageView& from, const ImageView& to) {
  for (int plane = 0; plane < info(to.format).plane_count; ++plane) {
    for (int y = 0; y < plane_rows(to.format, plane, to.height); ++y) {
      std::memcpy(to.row(plane, y), from.row(plane, y),
                  plane_row_bytes(to.format, plane, to.width));
    }
  }
}

}  // namespace

Conversion conversion_of(PixelFormat source, PixelFormat target, int width, int height) {
  const auto color = [](PixelFormat format) {
    ColorSpec spec;
    if (info(format).rgb) {
      spec.matrix = Matrix::kRgb;
      spec.range = Range::kFull;
    }
    return spec;
  };
  Conversion conversion{width, height, source, color(source), target, color(target)};
  // From YUV to YUV the range changes, so that there is something to convert.
  if (!info(source).rgb) conversion.source_color.range = Range::kFull;
  return conversion;
}

/// A picture with a random place and random pixels.
std::shared_ptr<const Overlay> random_overlay(const Conversion& conversion, std::uint64_t seed) {
  std::mt19937 random(static_cast<std::mt19937::result_type>(seed));
  const PictureSize frame = conversion.target_size();
  const auto up_to = [&](int n) { return static_cast<int>(random() % static_cast<unsigned>(n)); };
  RgbaPicture picture{1 + up_to(frame.width), 1 + up_to(frame.height), {}};
  picture.pixels.resize(std::size_t{4} * static_cast<std::size_t>(picture.width) *
                        static_cast<std::size_t>(picture.height));
  for (std::uint8_t& value : picture.pixels) value = static_cast<std::uint8_t>(random());
  return std::make_shared<const Overlay>(picture, up_to(frame.width), up_to(frame.height), frame,
                                         conversion.target, conversion.target_color);
}

Jobs::Jobs(std::vector<Conversion> conversions, std::size_t count)
    : conversions_(std::move(conversions)), jobs_(count) {
  for (std::size_t i = 0; i < count; ++i) {
    fill(jobs_[i], i);
    draw_on(jobs_[i], i);
  }
}

/// One overlay that stays and one that changes every three frames.
void Jobs::draw_on(FrameJob& job, std::size_t sequence) {
  for (std::size_t i = 0; i < conversions_.size(); ++i) {
    if (!conversions_[i].overlaid) continue;
    if (sequence % 3 != 0) {
      job.outputs[i].overlays = jobs_[sequence - 1].outputs[i].overlays;
      continue;
    }
    Overlays overlays{sequence > 0 ? jobs_[sequence - 1].outputs[i].overlays->front()
                                   : random_overlay(conversions_[i], i),
                      random_overlay(conversions_[i], 100 * sequence + i)};
    job.outputs[i].overlays = std::make_shared<const Overlays>(std::move(overlays));
  }
}

Jobs::~Jobs() = default;

void Jobs::put_on(const std::shared_ptr<CudaContext>& gpu) {
  gpu->make_current();
  for (std::size_t i = 0; i < jobs_.size(); ++i) put_on(gpu, jobs_[i]);
}

void Jobs::turn_over(std::size_t index) {
  ConstImageView& image = jobs_[index].input.image;
  for (int plane = 0; plane < info(image.format).plane_count; ++plane) {
    auto& [data, pitch] = image.planes[plane];
    data += (plane_rows(image.format, plane, image.height) - 1) * pitch;
    pitch = -pitch;
  }
}

void Jobs::expect_exact(std::size_t index) const {
  const FrameJob& job = jobs_[index];
  FramePool pool;
  for (std::size_t i = 0; i < conversions_.size(); ++i) {
    if (!job.outputs[i].target.buffer) continue;
    const ImageView& got = job.outputs[i].target.image;
    const PooledImage expected = allocate_image(pool, got.format, got.width, got.height);
    const PooledImage source =
        copy_into(pool, pictures_.empty() ? job.input.image : pictures_[index].image);
    if (mask_) mask_->apply(source.image);
    const ConstImageView from = as_const(source.image);
    if (is_identity(conversions_[i])) {
      copy_planes(from, expected.image);
    } else {
      convert_reference(conversions_[i], from, expected.image);
    }
    if (analysed_ && i == 0) {
      LumaHistogram luma;
      count_luma(as_const(expected.image), 0, got.height, luma);
      ASSERT_EQ(job.luma, luma) << "job " << index;
    }
    if (const auto& overlays = job.outputs[i].overlays) {
      for (const auto& overlay : *overlays) {
        blend_reference(*overlay, expected.image, 0, got.height);
      }
    }
    for (int plane = 0; plane < info(got.format).plane_count; ++plane) {
      const std::size_t bytes = plane_row_bytes(got.format, plane, got.width);
      for (int y = 0; y < plane_rows(got.format, plane, got.height); ++y) {
        ASSERT_EQ(std::memcmp(got.row(plane, y), expected.image.row(plane, y), bytes), 0)
            << "job " << index << " output " << i << ": " << info(conversions_[i].source).name
            << " to " << info(got.format).name << ", plane " << plane << " row " << y;
      }
    }
  }
}

void Jobs::fill(FrameJob& job, std::size_t sequence) {
  const Conversion& any = conversions_.front();
  const PooledImage source = allocate_image(pool_, any.source, any.width, any.height);
  for (int plane = 0; plane < info(any.source).plane_count; ++plane) {
    const std::size_t bytes = plane_row_bytes(any.source, plane, any.width);
    for (int y = 0; y < plane_rows(any.source, plane, any.height); ++y) {
      fill_random({source.image.row(plane, y), bytes},
                  (std::uint64_t{sequence} << 32) + static_cast<unsigned>((plane << 16) + y));
    }
  }
  job.sequence = sequence;
  job.input.image = as_const(source.image);
  job.input.buffer = source.buffer;
  job.outputs.resize(conversions_.size());
  for (std::size_t i = 0; i < conversions_.size(); ++i) {
    if (is_bypass(conversions_[i])) continue;
    const auto [width, height] = conversions_[i].target_size();
    job.outputs[i].target = allocate_image(pool_, conversions_[i].target, width, height,
                                           i == 0 ? sizeof(LumaHistogram) : 0);
  }
}

void Jobs::put_on(const std::shared_ptr<CudaContext>& gpu, FrameJob& job) {
  constexpr std::size_t kPitch = 512;
  constexpr std::size_t kBorder = 32;
  ConstImageView image = job.input.image;
  std::size_t rows = 0;
  for (int plane = 0; plane < info(image.format).plane_count; ++plane) {
    rows += static_cast<std::size_t>(plane_rows(image.format, plane, image.height)) + 2;
  }
  auto surface = std::make_unique<Surface>(gpu, rows * kPitch);
  surface->back = surfaces_back_;
  std::uint8_t* at = surface->memory->data() + kPitch + kBorder;
  for (int plane = 0; plane < info(image.format).plane_count; ++plane) {
    const std::size_t bytes = plane_row_bytes(image.format, plane, image.width);
    const auto count = static_cast<std::size_t>(plane_rows(image.format, plane, image.height));
    ASSERT_LE(bytes + kBorder, kPitch);
    cuda::check(cudaMemcpy2DAsync(at, kPitch, image.row(plane, 0),
                                  static_cast<std::size_t>(image.planes[plane].pitch), bytes, count,
                                  cudaMemcpyHostToDevice, gpu->decode_stream().get()),
                "cudaMemcpy2DAsync");
    image.planes[plane] = {at, static_cast<std::ptrdiff_t>(kPitch)};
    at += (count + 2) * kPitch;
  }
  pictures_.push_back(job.input);
  const auto give_back = [](void* opaque, std::uint8_t*) {
    const std::unique_ptr<Surface> owned(static_cast<Surface*>(opaque));
  };
  std::uint8_t* const memory = surface->memory->data();
  job.input.buffer = BufferRef::adopt(av_buffer_create(memory, 1, give_back, surface.release(), 0));
  job.input.image = image;
  job.input.memory = FrameMemory::kDevice;
  for (std::size_t i = 0; i < conversions_.size(); ++i) {
    if (job.outputs[i].target.buffer) continue;
    const auto [width, height] = conversions_[i].target_size();
    job.outputs[i].target = allocate_image(pool_, conversions_[i].target, width, height,
                                           i == 0 ? sizeof(LumaHistogram) : 0);
  }
}

void Jobs::mask(std::shared_ptr<const PictureMask> mask) {
  mask_ = std::move(mask);
  for (FrameJob& job : jobs_) job.masks = true;
}

std::shared_ptr<const PictureMask> mask_of(const Conversion& conversion, double right) {
  const std::vector<MaskShape> shapes{
      {.polygon = {{0.1, 0.1}, {right, 0.2}, {0.4, 0.9}}, .style = MaskShape::Style::kPixelate},
      {.polygon = {{0, 0.5}, {right, 0.5}, {right, 1}}, .color = {10, 200, 30}}};
  return std::make_shared<const PictureMask>(shapes, conversion.source,
                                             PictureSize{conversion.width, conversion.height},
                                             conversion.source_color);
}

std::vector<Conversion> bgra_to_two(int width, int height) {
  return {conversion_of(PixelFormat::kBgra, PixelFormat::kNv12, width, height),
          conversion_of(PixelFormat::kBgra, PixelFormat::kI444, width, height)};
}

std::vector<Conversion> nv12_to_two(int width, int height) {
  Conversion same = conversion_of(PixelFormat::kNv12, PixelFormat::kNv12, width, height);
  same.target_color = same.source_color;
  return {same, conversion_of(PixelFormat::kNv12, PixelFormat::kI420, width, height)};
}

bool may_fail_unnoticed(std::string_view function) {
  static constexpr std::string_view kHarmless[] = {
      "cudaEventElapsedTime",     // only a job's times are lost
      "cudaEventQuery",           // asks whether a job hangs, or whether the clock's mark has come
      "cudaGetDriverEntryPoint",  // then the GPU does not decode
      "cudaSetDevice",            // the device may be the current one already
      "cudaStreamSynchronize",    // only these tests call it, for their own pictures
      "cudaEventDestroy",         // this and the next ones release the object even if they fail
      "cudaStreamDestroy",       "cudaFreeAsync", "cudaHostUnregister"};
  return std::ranges::find(kHarmless, function) != std::end(kHarmless);
}

}  // namespace framelane::testing
