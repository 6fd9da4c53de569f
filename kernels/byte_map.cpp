#include "kernels/byte_map.hpp"

#include <algorithm>
#include <array>
#include <cmath>

namespace framelane {

std::uint8_t ByteMap::operator()(std::uint8_t sample) const {
  const int value = sample * factor / 256 + offset;
  return static_cast<std::uint8_t>(std::min(std::max(value, 0) >> fraction_bits, 255));
}

namespace {

/// The offsets with which the factor gives the exact codes are an interval: each sample whose code
/// is not clamped bounds it from both sides.
std::optional<std::int16_t> offset_for(int factor, int fraction_bits,
                                       const std::array<std::uint8_t, 256>& codes) {
  int least = -32768;
  int greatest = std::min(32767, 65535 - 255 * factor / 256);  // the sum fits into 16 bits
  for (int sample = 0; sample < 256; ++sample) {
    const int product = sample * factor / 256;
    const int code = codes[static_cast<std::size_t>(sample)];
    if (code > 0) least = std::max(least, (code << fraction_bits) - product);
    if (code < 255) greatest = std::min(greatest, ((code + 1) << fraction_bits) - 1 - product);
  }
  if (least > greatest) return std::nullopt;
  return static_cast<std::int16_t>(std::clamp(0, least, greatest));
}

}  // namespace

std::optional<ByteMap> byte_map(const LinearForm& form, std::size_t channel) {
  const LinearForm rounding = form.rounding_for_scale(1);
  std::array<std::uint8_t, 256> codes;
  for (std::size_t sample = 0; sample < codes.size(); ++sample) {
    Samples samples{};
    samples[channel] = static_cast<std::int64_t>(sample);
    codes[sample] = rounding.floor_to_byte(samples);
  }
  const double slope =
      static_cast<double>(form.coefficients[channel]) / static_cast<double>(form.denominator);
  for (int bits = 8; bits >= 6; --bits) {
    const auto nearest = static_cast<int>(std::lround(std::ldexp(slope, 8 + bits)));
    for (int distance = 0; distance <= 256; ++distance) {
      for (const int factor : {nearest + distance, nearest - distance}) {
        if (factor < 1 || factor > 65535) continue;
        const auto offset = offset_for(factor, bits, codes);
        if (offset) return ByteMap{static_cast<std::uint16_t>(factor), *offset, bits};
      }
    }
  }
  return std::nullopt;
}

}  // namespace framelane
