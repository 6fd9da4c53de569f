#pragma once

#include <cstdint>
#include <optional>

#include "kernels/linear_transform.hpp"

namespace framelane {

/// A form of one 8-bit sample in 16-bit arithmetic:
///   code = min(max(sample * factor / 256 + offset, 0) / 2^fraction_bits, 255), each division
/// rounded down. It gives the exact code for every sample.
struct ByteMap {
  std::uint16_t factor = 0;
  std::int16_t offset = 0;
  int fraction_bits = 0;

  std::uint8_t operator()(std::uint8_t sample) const;
};

/// The map for a form that depends on its input `channel` alone. Nothing if no factor and offset
/// give the exact code of every sample.
std::optional<ByteMap> byte_map(const LinearForm& form, std::size_t channel);

}  // namespace framelane
