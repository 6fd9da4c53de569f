#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>
#include <random>
#include <vector>

#include "kernels/image_view.hpp"

namespace framelane {

/// How an image lies in device memory. Allocations begin at 256 bytes; where
/// something watches their edges they end with the last pixel.
struct DeviceLayout {
  int offset = 0;           ///< bytes before each plane
  int padding = 0;          ///< bytes behind each row, at least
  int pitch_multiple = 16;  ///< of bytes, up to which rows are padded further
  bool bottom_up = false;   ///< negative pitch
};

/// A frame on the device and the same bytes on the host, padding included:
/// every byte of an allocation can be compared. Throws std::runtime_error where
/// CUDA fails.
class DeviceImage {
 public:
  DeviceImage(PixelFormat format, int width, int height, DeviceLayout layout = {});
  ~DeviceImage();

  ImageView on_device() const { return view(&Plane::device); }
  ImageView on_host() { return view(&Plane::host); }

  /// Every byte, between the rows too; extremes often.
  void fill_random(std::mt19937& random);
  void fill(std::uint8_t value);

  /// Wait for the stream.
  void upload(cudaStream_t stream);
  void download(cudaStream_t stream);

  /// Whether all bytes on the host are the same, of images of the same format,
  /// size and layout.
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
