#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>
#include <random>
#include <vector>

#include "kernels/image_view.hpp"

namespace framelane {

/// How an image is laid out in device memory. Allocations begin at multiples of 256 bytes. They end
/// with the last pixel if a tool checks accesses beyond their ends (the stand-in runtime,
/// AddressSanitizer, compute-sanitizer).
struct DeviceLayout {
  int offset = 0;           ///< bytes before each plane
  int padding = 0;          ///< at least so many bytes after each row
  int pitch_multiple = 16;  ///< the pitch is a multiple of this many bytes
  bool bottom_up = false;   ///< negative pitch
};

/// A frame on the device, with a copy of its bytes on the host that includes the padding, so that
/// every byte can be compared. Throws std::runtime_error if CUDA fails.
class DeviceImage {
 public:
  DeviceImage(PixelFormat format, int width, int height, DeviceLayout layout = {});
  ~DeviceImage();

  ImageView on_device() const { return view(&Plane::device); }
  ImageView on_host() { return view(&Plane::host); }

  /// Fills every byte, between the rows too. Extremes are frequent.
  void fill_random(std::mt19937& random);
  void fill(std::uint8_t value);

  /// These two block until the stream is idle.
  void upload(cudaStream_t stream);
  void download(cudaStream_t stream);

  /// True if all bytes on the host are equal. The images have the same format, size and layout.
  bool equals(const DeviceImage& other) const;

  DeviceImage(const DeviceImage&) = delete;
  DeviceImage& operator=(const DeviceImage&) = delete;

 private:
  struct Plane {
    std::vector<std::uint8_t> bytes;
    std::uint8_t* host = nullptr;
    std::uint8_t* device = nullptr;
    std::ptrdiff_t first_row = 0;
    std::ptrdiff_t pitch = 0;
  };
  ImageView view(std::uint8_t* Plane::*memory) const;

  PixelFormat format_;
  int width_, height_;
  std::vector<Plane> planes_;
};

}  // namespace framelane
