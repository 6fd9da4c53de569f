#include "kernels/cuda/matrix_tables.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdlib>
#include <numeric>

#include "kernels/wide_int.hpp"

namespace framelane {
namespace {

/// The largest and the smallest number of three signed bytes.
constexpr std::int64_t kMostWeight = 127 * 65536 + 127 * 256 + 127;
constexpr std::int64_t kLeastWeight = -128 * 65536 - 128 * 256 - 128;

constexpr double kMostNumber = 0x1p31;

/// Multiples of 1 / this are further apart than what sums in 64-bit floating point are wrong by.
constexpr std::int64_t kMostDenominator = 1 << 22;

/// Byte 0, 1 or 2 of a weight.
std::uint32_t byte_of_weight(std::int32_t weight, int byte) {
  for (; byte > 0; --byte) weight = (weight - static_cast<std::int8_t>(weight)) >> 8;
  return static_cast<std::uint8_t>(weight);
}

int signed_byte(std::uint32_t word, int byte) {
  return static_cast<std::int8_t>(word >> (8 * byte) & 0xFF);
}

/// The samples of the source that have a weight, for samples `begin` to `end` of the target.
struct Reach {
  int first = 1 << 30;
  int last = -1;

  Reach(const AxisTable& axis, int begin, int end) {
    const int taps = axis.taps();
    for (int i = begin; i < std::min(end, axis.samples()); ++i) {
      const auto numerators = axis.numerators().subspan(static_cast<std::size_t>(i * taps),
                                                        static_cast<std::size_t>(taps));
      for (int j = 0; j < taps; ++j) {
        if (numerators[static_cast<std::size_t>(j)] == 0) continue;
        const int sample = axis.first()[static_cast<std::size_t>(i)] + j;
        first = std::min(first, sample);
        last = std::max(last, sample);
      }
    }
  }
};

/// The weights of sample i times 2^bits, rounded so that they add up to 2^bits.
std::vector<std::int64_t> rounded_weights(const AxisTable& axis, int i, int bits) {
  const auto taps = static_cast<std::size_t>(axis.taps());
  const auto at = static_cast<std::size_t>(i);
  const Int128 denominator = axis.denominators()[at];
  std::vector<std::int64_t> weights(taps);
  std::vector<Int128> rests(taps);
  std::int64_t missing = std::int64_t{1} << bits;
  for (std::size_t j = 0; j < taps; ++j) {
    const Int128 numerator = Int128{axis.numerators()[at * taps + j]} * (Int128{1} << bits);
    Int128 quotient = numerator / denominator;
    if (quotient * denominator > numerator) --quotient;
    weights[j] = static_cast<std::int64_t>(quotient);
    rests[j] = numerator - quotient * denominator;
    missing -= weights[j];
  }
  for (; missing > 0; --missing) {  // those with the largest rests are rounded up
    const auto most = static_cast<std::size_t>(std::ranges::max_element(rests) - rests.begin());
    ++weights[most];
    rests[most] -= denominator;
  }
  return weights;
}

/// The word with a byte of a weight across: of sample `sample` of a half, as in
/// MatrixAcrossTable::weight().
int place_of(int column, int half, int sample, int byte) {
  const int lane = column * 4 + sample / 4;
  if (half == 2) return MatrixAcrossTable::kNarrowWords + lane * 4 + byte;
  if (byte == 2) return kMatrixLanes * 4 + lane * 2 + half;
  return lane * 4 + byte * 2 + half;
}

/// The least common denominator of all weights; or a number that is too large.
double common_denominator(const AxisTable& axis) {
  std::int64_t common = 1;
  for (const std::int64_t denominator : axis.denominators()) {
    if (denominator > kMostDenominator) return static_cast<double>(kMostDenominator);
    common = std::lcm(common, denominator);
    if (common > kMostDenominator) return static_cast<double>(kMostDenominator);
  }
  return static_cast<double>(common);
}

bool is_weight(std::int64_t weight) { return weight >= kLeastWeight && weight <= kMostWeight; }

}  // namespace

int MatrixDownTable::halves(const AxisTable& axis, int source_rows) {
  int most = kLeastHalves;
  for (int y = 0; y < axis.samples(); y += kMatrixRows) {
    const Reach reach(axis, y, y + kMatrixRows);
    most = std::max(most, (reach.last - reach.first) / kMatrixHalf + 1);
  }
  return most <= kMostHalves && most * kMatrixHalf <= source_rows ? most : 0;
}

bool MatrixDownTable::find(const AxisTable& axis, int source_rows, int half_count) {
  const int taps = axis.taps();
  const int groups = (axis.samples() + kMatrixRows - 1) / kMatrixRows;
  constexpr int kWordsOfByte = kMatrixLanes * 2;
  for (bits = 23; bits >= 20; --bits) {
    const double unit = std::ldexp(1.0, bits);
    bool fit = true;
    amplitude = error = 0;
    coarse = true;
    first.clear();
    words.assign(static_cast<std::size_t>(groups * half_count * 3 * kWordsOfByte), 0);
    for (int y = 0; y < axis.samples() && fit; ++y) {
      if (y % kMatrixRows == 0) {
        const int least = Reach(axis, y, y + kMatrixRows).first;
        first.push_back(std::min(least, source_rows - half_count * kMatrixHalf));
      }
      const std::vector<std::int64_t> weights = rounded_weights(axis, y, bits);
      double sum = 0, above = 0, below = 0;
      for (int j = 0; j < taps; ++j) {
        const std::int64_t weight = weights[static_cast<std::size_t>(j)];
        fit = fit && is_weight(weight);
        const double wrong = static_cast<double>(weight) - axis.weights(y)[j] * unit;
        (wrong > 0 ? above : below) += std::abs(wrong);
        sum += std::abs(static_cast<double>(weight));
        coarse = coarse && weight % 256 == 0;
        if (weight == 0 || !fit) continue;
        const int row = axis.first()[static_cast<std::size_t>(y)] + j - first.back();
        // Lane 4 g + t has four samples of rows g and g + 8, from 4 t on.
        const int lane = y % 8 * 4 + row % kMatrixHalf / 4;
        for (int byte = 0; byte < 3; ++byte) {
          const int of_byte =
              ((y / kMatrixRows * half_count + row / kMatrixHalf) * 3 + byte) * kWordsOfByte;
          words[static_cast<std::size_t>(of_byte + lane * 2 + y % kMatrixRows / 8)] |=
              byte_of_weight(static_cast<std::int32_t>(weight), byte) << (row % 4 * 8);
        }
      }
      amplitude = std::max(amplitude, sum / unit);
      error = std::max(error, 255 * std::max(above, below) / unit);
    }
    // Sums are of samples from -128 to 127.
    fit = fit && 128 * amplitude * unit < kMostNumber;
    if (fit) return true;
  }
  return false;
}

std::int32_t MatrixDownTable::weight(const std::uint32_t* group, int row, int source_row) {
  const int lane = row % 8 * 4 + source_row % kMatrixHalf / 4;
  std::int32_t weight = 0;
  for (int byte = 2; byte >= 0; --byte) {
    const int of_byte = (source_row / kMatrixHalf * 3 + byte) * kMatrixLanes * 2;
    weight = weight * 256 + signed_byte(group[of_byte + lane * 2 + row / 8], source_row % 4);
  }
  return weight;
}

bool MatrixAcrossTable::place(const AxisTable& axis) {
  int least = -1;  // groups that need three halves
  for (int at = 0; at < kMatrixHalf; at += 4) {
    int three = 0;
    for (int x = 0; x < axis.samples() && three >= 0; x += kMatrixColumns) {
      const Reach reach(axis, x, x + kMatrixColumns);
      const int count = (reach.last + at) / kMatrixHalf - (reach.first + at) / kMatrixHalf + 1;
      three = count > 3 ? -1 : three + (count == 3 ? 1 : 0);
    }
    if (three < 0 || (least >= 0 && three >= least)) continue;
    least = three;
    origin = at;
  }
  wide = least > 0;
  return least >= 0;
}

bool MatrixAcrossTable::find(const AxisTable& axis, double factor, int most_bits) {
  const int taps = axis.taps();
  const int groups = (axis.samples() + kMatrixColumns - 1) / kMatrixColumns;
  for (bits = most_bits; bits >= 16; --bits) {
    const double unit = std::ldexp(1.0, bits);
    bool fit = true;
    amplitude = rounding = 0;
    whole[0] = whole[1] = lowest[0] = lowest[1] = 0;
    halves.clear();
    words.assign(static_cast<std::size_t>(groups * words_of_group()), 0);
    for (int x = 0; x < axis.samples() && fit; ++x) {
      if (x % kMatrixColumns == 0) {
        const Reach reach(axis, x, x + kMatrixColumns);
        const int last = (reach.last + origin) / kMatrixHalf;
        const bool three = (reach.first + origin) / kMatrixHalf < last - 1;
        halves.push_back(2 * last + (three ? 1 : 0));
      }
      std::uint32_t* const group = words.data() + x / kMatrixColumns * words_of_group();
      double wrong = 0;
      double sums[2][2] = {};
      for (int i = 0; i < taps; ++i) {
        const double exact = axis.weights(x)[i] * factor * unit;
        const auto weight = static_cast<std::int64_t>(std::nearbyint(exact));
        fit = fit && is_weight(weight);
        wrong += std::abs(static_cast<double>(weight) - exact);
        if (weight == 0 || !fit) continue;
        const int sample = axis.first()[static_cast<std::size_t>(x)] + i + origin;
        const int before_last = halves.back() / 2 - sample / kMatrixHalf;
        const int half = before_last == 2 ? 2 : 1 - before_last;
        const auto add = [](double(&to)[2], double number) {
          to[number < 0 ? 1 : 0] += std::abs(number);
        };
        add(sums[0], static_cast<double>(weight));
        for (int byte = 0; byte < 3; ++byte) {
          const std::uint32_t bits_of_byte =
              byte_of_weight(static_cast<std::int32_t>(weight), byte);
          if (byte == 0) add(sums[1], static_cast<std::int8_t>(bits_of_byte));
          group[place_of(x % kMatrixColumns, half, sample % kMatrixHalf, byte)] |=
              bits_of_byte << (sample % 4 * 8);
        }
      }
      amplitude = std::max(amplitude, (sums[0][0] + sums[0][1]) / unit);
      rounding = std::max(rounding, wrong / unit);
      for (int sign = 0; sign < 2; ++sign) {
        whole[sign] = std::max(whole[sign], sums[0][sign]);
        lowest[sign] = std::max(lowest[sign], sums[1][sign]);
      }
    }
    if (fit) return true;
  }
  return false;
}

std::int32_t MatrixAcrossTable::weight(const std::uint32_t* group, int column, int half,
                                       int sample) {
  std::int32_t weight = 0;
  for (int byte = 2; byte >= 0; --byte) {
    weight = weight * 256 + signed_byte(group[place_of(column, half, sample, byte)], sample % 4);
  }
  return weight;
}

// All steps are whole numbers, so only what is left out makes an error: the rounding of weights,
// the lowest byte of sums down, the products of two lowest bytes across, and what is below the last
// unit.
bool MatrixTables::find(const AxisTable& across_axis, const AxisTable& down_axis, int source_rows,
                        int down_halves, const LinearForm& form, std::size_t channel) {
  const auto denominator = static_cast<double>(form.denominator);
  factor = static_cast<double>(form.coefficients[channel]) / denominator;
  offset = static_cast<double>(form.offset) / denominator + 0.5;
  // Values are multiples of 1 / divisor, if it is not too large.
  const double divisor =
      common_denominator(across_axis) * common_denominator(down_axis) * denominator;
  ties = divisor < static_cast<double>(kMostDenominator);
  // The kernel's sums are those of samples that are smaller by 128.
  const double whole_offset = offset + 128 * factor;
  if (!down.find(down_axis, source_rows, down_halves)) return false;
  const double of_column = 128 * down.amplitude + 1;
  for (int bits = 23; bits >= 16; --bits) {
    if (!across.find(across_axis, factor, bits)) return false;
    bits = across.bits;
    output.shift = down.bits + across.bits - 24;
    const double unit = std::ldexp(1.0, output.shift);
    // How far the sum may be below and above the true one, in its last place. Bytes of sums that
    // are left out are from 0 to 255, so what they would add has the sign of the weights.
    const double rounded =
        1.001 * unit * (across.amplitude * down.error + across.rounding * of_column) + 2;
    const auto left_out = [&](int sign) {
      const double of_sums = down.coarse ? 0 : across.whole[sign] / 65536;
      return of_sums + 255.0 / 65536 * across.lowest[sign];
    };
    const double below = rounded + left_out(0);
    const double above = rounded + left_out(1);
    if ((of_column * across.amplitude + std::abs(whole_offset) + 2) * unit + below + above >=
        kMostNumber) {
      continue;
    }
    const double quarter = ties ? 0.25 / divisor : 0;
    const double middle = (below - above) / 2;
    if (below - middle + 1 < quarter * unit) {
      // No value is nearer to a tie than twice this.
      output.offset =
          static_cast<std::int32_t>(std::nearbyint((whole_offset + quarter) * unit + middle));
      output.window = 0;
    } else {
      output.offset = static_cast<std::int32_t>(std::ceil(whole_offset * unit + below));
      output.window = static_cast<std::int32_t>(std::ceil(below + above)) + 2;
    }
    return output.window < static_cast<std::int32_t>(unit);
  }
  return false;
}

}  // namespace framelane
