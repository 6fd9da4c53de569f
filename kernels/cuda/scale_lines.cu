#include "kernels/cuda/scale_lines.cuh"

#include <algorithm>
#include <cmath>

namespace framelane::cuda {
namespace {

double real(const LinearForm& form, int k) {
  return static_cast<double>(form.coefficients[static_cast<std::size_t>(k)]) /
         static_cast<double>(form.denominator);
}

/// The largest sum of what the steps of a sum come to, where samples are 1 or -1.
double growth(const AxisFloats& axis) {
  double largest = 0;
  for (int i = 0; i < axis.table.samples(); ++i) {
    double sum = 0, step = 0;
    for (int j = 0; j < axis.table.taps(); ++j) {
      if (axis.of(i)[j] == 0) continue;
      step += std::abs(static_cast<double>(axis.of(i)[j]));
      sum += step;
    }
    largest = std::max(largest, sum);
  }
  return largest;
}

}  // namespace

bool RgbLines::find(const ScaledSamples& samples, std::array<int, 3> order_in_memory,
                    bool has_chroma) {
  order = order_in_memory;
  const LinearForm& form_of_luma = samples.form(0);
  double whole = 0;
  for (std::size_t i = 0; i < 3; ++i) {
    const double factor = real(form_of_luma, order[i]);
    if (factor < 0) return false;
    whole += 255 * factor;
    luma[i] = static_cast<float>(factor) * kByteWeight;
  }
  // Around 0 numbers are half as large, and so are their errors.
  const auto half = static_cast<float>(whole / 2);
  middle = half * static_cast<float>(kSumUnit);
  // The factors, the products, and two sums are each wrong by at most one unit of the whole; a
  // fifth one is to spare.
  const double luma_error = 5 * kFloatUnit * whole;
  sizes[0] = {whole / 2 + 1, luma_error + kFloatUnit * whole, double{half}};
  factors[0] = 1;
  if (!has_chroma) return true;
  for (const std::size_t line : {std::size_t{1}, std::size_t{2}}) {
    const int colour = order[line == 1 ? 0 : 2];
    // U has the difference of blue, V that of red.
    channels[line] = colour == 2 ? 1 : 2;
    const LinearForm& form = samples.form(channels[line]);
    const int other = 2 - colour;
    const auto at = [](const LinearForm& of, int k) {
      return Int128{of.coefficients[static_cast<std::size_t>(k)]};
    };
    if (at(form, other) * at(form_of_luma, 1) != at(form, 1) * at(form_of_luma, other)) {
      return false;
    }
    factors[line] = -real(form, 1) / real(form_of_luma, 1);
    const double factor = real(form, colour) / factors[line] + real(form_of_luma, colour);
    difference[line - 1] = static_cast<float>(factor) * kByteWeight;
    // Of the colour itself the line has less.
    const double own = factor - real(form_of_luma, colour);
    const double others = real(form_of_luma, 1) + real(form_of_luma, other);
    const double largest = 255 * std::max(std::abs(own), others);
    const double error = luma_error + kFloatUnit * (510 * std::abs(factor) + largest);
    sizes[line] = {largest, error, 0};
  }
  return true;
}

// A weight is wrong by half the distance of floats, and each step of a sum by as much of what it
// has come to.
TileOutput make_output(const GroupTables& group, const LinearForm& form, std::size_t channel,
                       const LineSize& line, double factor) {
  const double offset = static_cast<double>(form.offset) / static_cast<double>(form.denominator) +
                        0.5 + factor * line.middle;
  TileOutput result{};
  result.channel = static_cast<int>(channel);
  if (group.divisor > 0) {
    result.factor = 1.0F / static_cast<float>(group.divisor) / static_cast<float>(kSumUnit);
    result.offset = static_cast<float>(offset + 0.25 / static_cast<double>(group.divisor));
    return result;
  }
  const AxisFloats& across = group.constants.across;
  const AxisFloats& down = group.constants.down;
  // Where products are rounded too, that is as much as another weight's rounding.
  const double down_error =
      down.amplitude * line.error + kFloatUnit * line.largest * (growth(down) + 2 * down.amplitude);
  // Four sums, which are added up in two steps.
  const double of_sum = line.largest * down.amplitude * across.amplitude;
  const double across_error =
      across.amplitude * down_error + kFloatUnit * of_sum * (group.across.quads + 4);
  const double size = std::abs(offset) + 256 + std::abs(factor) * of_sum;
  const double error = 1.01 * (std::abs(factor) * across_error + 3 * kFloatUnit * size);
  result.factor = static_cast<float>(factor / kSumUnit);
  result.offset = static_cast<float>(offset + error);
  result.window = static_cast<float>(2 * error);
  return result;
}

}  // namespace framelane::cuda
