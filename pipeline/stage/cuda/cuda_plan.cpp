#include "pipeline/stage/cuda/cuda_plan.hpp"

#include <algorithm>
#include <array>
#include <cassert>
#include <cstring>
#include <utility>

#include "kernels/cuda/luma_count.hpp"
#include "kernels/cuda/overlay.hpp"
#include "pipeline/frames/frame_pool.hpp"

namespace framelane {
namespace {

struct Layout {
  std::array<std::size_t, kMaxPlanes> offsets{};
  std::array<std::size_t, kMaxPlanes> pitches{};
  std::size_t bytes = 0;
};

Layout layout_of(PixelFormat format, int width, int height) {
  constexpr std::size_t kStep = FramePool::kPitchAlignment;
  Layout layout;
  for (int plane = 0; plane < info(format).plane_count; ++plane) {
    layout.offsets[plane] = layout.bytes;
    layout.pitches[plane] = (plane_row_bytes(format, plane, width) + kStep - 1) / kStep * kStep;
    layout.bytes +=
        layout.pitches[plane] * static_cast<std::size_t>(plane_rows(format, plane, height));
  }
  return layout;
}

bool converts(const Conversion& conversion) { return !is_bypass(conversion); }

/// Whether the targets of conversion `index` are in device memory.
bool stays(std::span<const FrameMemory> targets, std::size_t index) {
  return index < targets.size() && targets[index] == FrameMemory::kDevice;
}

}  // namespace

DeviceImage::DeviceImage(CudaContext& context, PixelFormat format, int width, int height)
    : image{format, width, height, {}},
      memory(context.allocate(layout_of(format, width, height).bytes)) {
  const Layout layout = layout_of(format, width, height);
  for (int plane = 0; plane < info(format).plane_count; ++plane) {
    image.planes[plane] = {memory.data() + layout.offsets[plane],
                           static_cast<std::ptrdiff_t>(layout.pitches[plane])};
  }
}

ImageView DeviceImage::laid_out_as(const ConstImageView& host) const {
  ImageView view = image;
  for (int plane = 0; plane < info(image.format).plane_count; ++plane) {
    if (host.planes[plane].pitch >= 0) continue;
    auto& [data, pitch] = view.planes[plane];
    data += (plane_rows(image.format, plane, image.height) - 1) * pitch;
    pitch = -pitch;
  }
  return view;
}

LaneImages::LaneImages(CudaContext& context, std::span<const Conversion> conversions,
                       FrameMemory memory, std::span<const FrameMemory> target_memory) {
  const Conversion& any = conversions.front();
  if (memory == FrameMemory::kHost) source.emplace(context, any.source, any.width, any.height);
  for (const Conversion& conversion : conversions) {
    targets.emplace_back();
    if (!converts(conversion) || stays(target_memory, targets.size() - 1)) continue;
    const auto [width, height] = conversion.target_size();
    targets.back().emplace(context, conversion.target, width, height);
  }
}

LumaCounts::LumaCounts(CudaContext& context) : memory(context.allocate(sizeof(LumaHistogram))) {}

void LumaCounts::prepare(StreamRef stream) {
  if (std::exchange(cleared, true)) return;
  cuda::check(cudaMemsetAsync(memory.data(), 0, sizeof(LumaHistogram), stream.get()),
              "cudaMemsetAsync");
}

void LumaCounts::copy_to(std::uint8_t* side_data, StreamRef stream) const {
  assert(side_data != nullptr);
  cuda::check(cudaMemcpyAsync(side_data, memory.data(), sizeof(LumaHistogram),
                              cudaMemcpyDeviceToHost, stream.get()),
              "cudaMemcpyAsync");
}

LumaHistogram LumaCounts::take(const std::uint8_t* side_data) {
  LumaHistogram now;
  std::memcpy(&now, side_data, sizeof now);
  LumaHistogram frame;
  for (std::size_t value = 0; value < kLumaValues; ++value) {
    frame.counts[value] = now.counts[value] - before.counts[value];
  }
  before = now;
  return frame;
}

void DeviceOverlay::copy_up() {
  const std::vector<std::uint8_t>& from = overlay_->bytes();
  copies_ = true;
  cuda::check(cudaMemcpyAsync(memory_.data(), from.data(), from.size(), cudaMemcpyHostToDevice,
                              stream_.get()),
              "cudaMemcpyAsync");
  copied_.record(stream_);
}

void DeviceOverlay::await_copy(StreamRef kernels_stream) {
  if (awaited_) return;
  kernels_stream.wait(copied_.get());
  awaited_ = true;
}

LaneWork::LaneWork(std::shared_ptr<const LaneImages> lane_images, int slice_count)
    : images(std::move(lane_images)) {
  for (int i = 0; i < slice_count; ++i) slices.emplace_back(i == slice_count - 1);
}

std::vector<int> slice_ends(PixelFormat format, int width, int height, std::optional<int> slices) {
  // More than eight slices shorten a frame's latency by little, and slices below 8 MiB only cost
  // calls.
  constexpr std::size_t kAutoBytes = std::size_t{8} << 20;
  constexpr std::size_t kAutoSlices = 8;
  // Slices end on whole chroma rows, and are larger than what conversions look ahead.
  constexpr int kRowStep = 16;
  const std::size_t bytes = layout_of(format, width, height).bytes;
  const int wanted = slices.value_or(static_cast<int>(
      std::clamp((bytes + kAutoBytes - 1) / kAutoBytes, std::size_t{1}, kAutoSlices)));
  const int blocks = std::max(height / kRowStep, 1);
  const int count = std::clamp(wanted, 1, blocks);
  std::vector<int> ends;
  for (int i = 1; i < count; ++i) {
    ends.push_back(static_cast<int>(std::int64_t{blocks} * i / count) * kRowStep);
  }
  ends.push_back(height);
  return ends;
}

// CUDA allocates no memory of no size.
Constants::Constants(CudaContext& context, std::size_t bytes)
    : numbers(bytes), memory(context.allocate(std::max<std::size_t>(bytes, 1))) {}

void Constants::copy_up(StreamRef stream) const {
  cuda::check(cudaMemcpyAsync(memory.data(), numbers.data(), numbers.size(), cudaMemcpyHostToDevice,
                              stream.get()),
              "cudaMemcpyAsync");
}

DeviceMask::DeviceMask(CudaContext& context, const PictureMask& mask)
    : kernels(mask), constants(context, kernels) {
  cuda::check(CudaMask::load(), "cudaFuncGetAttributes");
}

void DeviceMask::enqueue(const ImageView& picture, StreamRef kernels_stream) const {
  cuda::check(kernels.enqueue(picture, constants.memory.data(), kernels_stream.get()),
              "cudaLaunchKernel");
}

void CudaPlan::allocate(std::shared_ptr<CudaContext> gpu, std::span<const Conversion> conversions,
                        FrameMemory memory, bool analyse, std::span<const FrameMemory> targets,
                        const PictureMask* source_mask, std::size_t lane_count,
                        std::optional<int> slices) {
  const bool uploads = memory == FrameMemory::kHost;
  bool works_at_all = !uploads;
  for (std::size_t i = 0; i < conversions.size(); ++i) {
    const bool works_here = !uploads || converts(conversions[i]) || stays(targets, i);
    works_at_all = works_at_all || works_here;
    downloads = downloads || (works_here && !stays(targets, i));
  }
  if (!works_at_all) return;
  context = std::move(gpu);
  if (source_mask != nullptr) mask.emplace(*context, *source_mask);
  for (const Conversion& conversion : conversions) {
    converters.push_back(is_identity(conversion) ? nullptr : CudaConverter::make(conversion));
    scaled_heights.push_back(conversion.scaling ? std::optional(conversion.scaling->target.height)
                                                : std::nullopt);
    constants.emplace_back();
    if (converters.back() != nullptr && converters.back()->constant_bytes() > 0) {
      constants.back().emplace(*context, *converters.back());
    }
    const bool counts = analyse && converters.size() == 1;
    if (converters.back() != nullptr) {
      cuda::check(converters.back()->load(counts), "cudaFuncGetAttributes");
    } else if (counts && (!uploads || stays(targets, 0) || conversion.overlaid)) {
      cuda::check(load_luma_count(), "cudaFuncGetAttributes");
    }
    if (conversion.overlaid) cuda::check(load_blend(), "cudaFuncGetAttributes");
  }
  const Conversion& any = conversions.front();
  const bool counts_luma = analyse && (converts(any) || !uploads || stays(targets, 0));
  downloads = downloads || counts_luma;
  // Frames that are not copied up are not sliced, nor those of which nothing is made before the
  // end.
  const bool waits = std::ranges::all_of(scaled_heights, &std::optional<int>::has_value);
  slice_ends = framelane::slice_ends(any.source, any.width, any.height,
                                     uploads && !waits ? slices : std::optional(1));
  std::vector<std::unique_ptr<LaneWork>> all;
  for (std::size_t i = 0; i < kJobsInLane * lane_count; ++i) {
    const auto images =
        i < lane_count ? std::make_shared<const LaneImages>(*context, conversions, memory, targets)
                       : all[i - lane_count]->images;
    all.push_back(std::make_unique<LaneWork>(images, static_cast<int>(slice_ends.size())));
    if (counts_luma) all.back()->luma.emplace(*context);
    all.back()->overlays.resize(conversions.size());
  }
  overlays = std::make_unique<PresentOverlays>();
  overlays->by_target.resize(conversions.size());
  context->publish_allocations(memory);
  works = std::move(all);
}

std::size_t plan_bytes(std::span<const Conversion> conversions, FrameMemory memory,
                       std::size_t lane_count, std::span<const FrameMemory> targets) {
  const Conversion& any = conversions.front();
  std::size_t bytes = 0;
  if (memory == FrameMemory::kHost) bytes = layout_of(any.source, any.width, any.height).bytes;
  for (std::size_t i = 0; i < conversions.size(); ++i) {
    const Conversion& conversion = conversions[i];
    if (!converts(conversion) || stays(targets, i)) continue;
    const auto [width, height] = conversion.target_size();
    bytes += layout_of(conversion.target, width, height).bytes;
  }
  return bytes * lane_count;
}

}  // namespace framelane
