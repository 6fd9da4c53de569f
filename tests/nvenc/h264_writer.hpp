#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace framelane::fake_nvenc {

/// A picture of 4:2:0, or of 4:4:4 if `full_chroma`: three planes, whose samples are `chroma_step`
/// bytes apart in the last two.
struct Picture {
  int width = 0;
  int height = 0;
  const std::uint8_t* y = nullptr;
  const std::uint8_t* u = nullptr;
  const std::uint8_t* v = nullptr;
  std::size_t pitch = 0;
  std::size_t chroma_pitch = 0;
  int chroma_step = 1;
  bool full_chroma = false;
};

/// The sequence and picture parameter sets (ITU-T H.264, 7.3.2.1 and 7.3.2.2), for pictures of this
/// size, all of them IDR.
std::vector<std::uint8_t> parameter_sets(int width, int height, bool full_chroma);
/// An IDR slice of I_PCM macroblocks (7.3.4, 7.3.5). `id`: differs from the picture before.
std::vector<std::uint8_t> idr_slice(const Picture& picture, unsigned id);

}  // namespace framelane::fake_nvenc
