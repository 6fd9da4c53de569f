#include "tests/kernels/cuda/device_image.hpp"

#include <algorithm>
#include <cstdlib>
#include <stdexcept>
#include <string>
#include <utility>

#include "tests/cuda_runtime/control.hpp"

namespace framelane {
namespace {

/// Bytes before and after each plane, which are compared with the image. None if something else
/// watches the edges of allocations: the stand-in runtime and AddressSanitizer, or
/// compute-sanitizer, which scripts/gpu-check tells us.
std::ptrdiff_t guard() {
  const bool watched = stand_in::present() || std::getenv("FRAMELANE_TEST_NO_GUARDS") != nullptr;
  return watched ? 0 : 256;
}

void check(cudaError_t error) {
  if (error != cudaSuccess) throw std::runtime_error(cudaGetErrorString(error));
}

}  // namespace

DeviceImage::DeviceImage(PixelFormat format, int width, int height, DeviceLayout layout)
    : format_(format), width_(width), height_(height) {
  planes_.resize(static_cast<std::size_t>(info(format).plane_count));
  for (std::size_t i = 0; i < planes_.size(); ++i) {
    Plane& plane = planes_[i];
    const auto row_bytes =
        static_cast<std::ptrdiff_t>(plane_row_bytes(format, static_cast<int>(i), width));
    const std::ptrdiff_t rows = plane_rows(format, static_cast<int>(i), height);
    const std::ptrdiff_t pitch = (row_bytes + layout.padding + layout.pitch_multiple - 1) /
                                 layout.pitch_multiple * layout.pitch_multiple;
    const std::ptrdiff_t first = guard() + layout.offset;
    const std::ptrdiff_t last = first + pitch * (rows - 1);
    plane.pitch = layout.bottom_up ? -pitch : pitch;
    plane.first_row = layout.bottom_up ? last : first;
    plane.bytes.resize(static_cast<std::size_t>(last + row_bytes + guard()));
    plane.host = plane.bytes.data();
    check(cudaMalloc(reinterpret_cast<void**>(&plane.device), plane.bytes.size()));
  }
}

DeviceImage::~DeviceImage() {
  for (const Plane& plane : planes_) static_cast<void>(cudaFree(plane.device));
}

ImageView DeviceImage::view(std::uint8_t* Plane::*memory) const {
  ImageView view{format_, width_, height_, {}};
  for (std::size_t i = 0; i < planes_.size(); ++i) {
    view.planes[i] = {planes_[i].*memory + planes_[i].first_row, planes_[i].pitch};
  }
  return view;
}

void DeviceImage::fill_random(std::mt19937& random) {
  for (Plane& plane : planes_) {
    for (std::uint8_t& byte : plane.bytes) {
      const auto value = static_cast<std::uint32_t>(random());
      byte = (value & 0x300) == 0 ? ((value & 0x400) != 0 ? 255 : 0)
                                  : static_cast<std::uint8_t>(value);
    }
  }
}

void DeviceImage::fill(std::uint8_t value) {
  for (Plane& plane : planes_) std::fill(plane.bytes.begin(), plane.bytes.end(), value);
}

void DeviceImage::upload(cudaStream_t stream) {
  for (const Plane& plane : planes_) {
    check(cudaMemcpyAsync(plane.device, plane.host, plane.bytes.size(), cudaMemcpyHostToDevice,
                          stream));
  }
  check(cudaStreamSynchronize(stream));
}

void DeviceImage::download(cudaStream_t stream) {
  for (const Plane& plane : planes_) {
    check(cudaMemcpyAsync(plane.host, plane.device, plane.bytes.size(), cudaMemcpyDeviceToHost,
                          stream));
  }
  check(cudaStreamSynchronize(stream));
}

bool DeviceImage::equals(const DeviceImage& other) const {
  return std::equal(planes_.begin(), planes_.end(), other.planes_.begin(), other.planes_.end(),
                    [](const Plane& a, const Plane& b) { return a.bytes == b.bytes; });
}

}  // namespace framelane
