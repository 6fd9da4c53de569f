#pragma once

#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <vector>

#include "capture/framelane_capture.h"
#include "pipeline/source/shared_area.hpp"

namespace framelane {

/// The frames of `bytes` in an area of framelane_capture.h, whose slots begin at pages. Throws
/// std::invalid_argument if there is none.
inline std::vector<const std::uint8_t*> frames_in(const SharedArea& area, std::size_t bytes) {
  const std::size_t slot =
      (FRAMELANE_CAPTURE_STAMP_OFFSET(bytes) + FRAMELANE_CAPTURE_READABLE + 4095) / 4096 * 4096;
  std::vector<const std::uint8_t*> frames;
  for (std::size_t at = 0; bytes > 0 && at + slot <= area.bytes(); at += slot) {
    frames.push_back(area.data() + at);
  }
  if (frames.empty()) throw std::invalid_argument("the area has no room for such a frame");
  return frames;
}

}  // namespace framelane
