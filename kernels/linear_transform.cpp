#include "kernels/linear_transform.hpp"

#include <algorithm>
#include <cassert>
#include <cstddef>
#include <numeric>

namespace framelane {
namespace {

// A reduced fraction. Every value that occurs stays below 2^63 (the largest denominator, from
// BT.2020 limited to BT.709 full, is 4.7e13), which the tests check under UBSan.
class Rational {
 public:
  // Implicit, so that whole numbers can stand in a formula.
  // NOLINTNEXTLINE(google-explicit-constructor)
  constexpr Rational(std::int64_t numerator = 0, std::int64_t denominator = 1) {
    const std::int64_t divisor = std::gcd(numerator, denominator);
    const std::int64_t sign = denominator < 0 ? -1 : 1;
    numerator_ = sign * numerator / divisor;
    denominator_ = sign * denominator / divisor;
  }

  std::int64_t numerator() const { return numerator_; }
  std::int64_t denominator() const { return denominator_; }

  friend Rational operator+(Rational a, Rational b) {
    const std::int64_t common = std::lcm(a.denominator_, b.denominator_);
    return {a.numerator_ * (common / a.denominator_) + b.numerator_ * (common / b.denominator_),
            common};
  }
  friend Rational operator-(Rational a) { return {-a.numerator_, a.denominator_}; }
  friend Rational operator-(Rational a, Rational b) { return a + -b; }
  friend Rational operator*(Rational a, Rational b) {
    // Reduced crosswise before multiplying, so that the product is in lowest terms.
    const Rational left(a.numerator_, b.denominator_);
    const Rational right(b.numerator_, a.denominator_);
    return {left.numerator_ * right.numerator_, left.denominator_ * right.denominator_};
  }
  friend Rational operator/(Rational a, Rational b) {
    return a * Rational(b.denominator_, b.numerator_);
  }

 private:
  std::int64_t numerator_;
  std::int64_t denominator_;
};

using Matrix3 = std::array<std::array<Rational, 3>, 3>;

struct LumaWeights {
  Rational kr, kg, kb;
};

LumaWeights luma_weights(Matrix matrix) {
  Rational kr, kb;
  switch (matrix) {
    case Matrix::kRgb:
      assert(false && "R'G'B' has no luma weights");
      break;
    case Matrix::kBt601:
      kr = {299, 1000};
      kb = {114, 1000};
      break;
    case Matrix::kBt709:
      kr = {2126, 10000};
      kb = {722, 10000};
      break;
    case Matrix::kBt2020:
      kr = {2627, 10000};
      kb = {593, 10000};
      break;
  }
  return {kr, Rational(1) - kr - kb, kb};
}

// From R'G'B' in 0..1 to Y' in 0..1, Cb and Cr in -1/2..1/2.
Matrix3 from_rgb(Matrix matrix) {
  const auto [kr, kg, kb] = luma_weights(matrix);
  const Rational cb = Rational(1, 2) / (Rational(1) - kb);
  const Rational cr = Rational(1, 2) / (Rational(1) - kr);
  return {{{kr, kg, kb},
           {-kr * cb, -kg * cb, (Rational(1) - kb) * cb},
           {(Rational(1) - kr) * cr, -kg * cr, -kb * cr}}};
}

// The inverse: R' = Y' + 2 (1 - Kr) Cr, B' = Y' + 2 (1 - Kb) Cb, and G' from the luma equation.
Matrix3 to_rgb(Matrix matrix) {
  if (matrix == Matrix::kRgb) return {{{1, 0, 0}, {0, 1, 0}, {0, 0, 1}}};
  const auto [kr, kg, kb] = luma_weights(matrix);
  const Rational red = Rational(2) * (Rational(1) - kr);
  const Rational blue = Rational(2) * (Rational(1) - kb);
  return {{{1, 0, red}, {1, -kb * blue / kg, -kr * red / kg}, {1, blue, 0}}};
}

Matrix3 multiply(const Matrix3& a, const Matrix3& b) {
  Matrix3 result;
  for (std::size_t i = 0; i < 3; ++i) {
    for (std::size_t j = 0; j < 3; ++j) {
      for (std::size_t k = 0; k < 3; ++k) result[i][j] = result[i][j] + a[i][k] * b[k][j];
    }
  }
  return result;
}

// Code value = zero + scale * signal.
struct Quantisation {
  Rational zero, scale;
};

Quantisation quantisation(const ColorSpec& color, std::size_t channel) {
  const bool limited = color.range == Range::kLimited;
  if (color.matrix != Matrix::kRgb && channel > 0) return {128, limited ? 224 : 255};
  return limited ? Quantisation{16, 219} : Quantisation{0, 255};
}

LinearForm over_common_denominator(const std::array<Rational, 3>& coefficients, Rational offset) {
  LinearForm form;
  form.denominator = offset.denominator();
  for (const Rational& c : coefficients) {
    form.denominator = std::lcm(form.denominator, c.denominator());
  }
  for (std::size_t i = 0; i < 3; ++i) {
    const Rational& c = coefficients[i];
    form.coefficients[i] = c.numerator() * (form.denominator / c.denominator());
  }
  form.offset = offset.numerator() * (form.denominator / offset.denominator());
  return form;
}

}  // namespace

LinearForm LinearForm::rounding_for_scale(int scale) const {
  // floor(n / d + 1/2) = floor((n + floor(d / 2)) / d) for integers n and d.
  const std::int64_t scaled = denominator * scale;
  return {coefficients, offset * scale + scaled / 2, scaled};
}

std::uint8_t LinearForm::floor_to_byte(const Samples& samples) const {
  const std::int64_t numerator = coefficients[0] * samples[0] + coefficients[1] * samples[1] +
                                 coefficients[2] * samples[2] + offset;
  // C++ truncates. That differs from rounding down below 0 only, and there both are clamped to 0.
  return static_cast<std::uint8_t>(std::clamp<std::int64_t>(numerator / denominator, 0, 255));
}

std::array<LinearForm, 3> color_transform(const ColorSpec& source, const ColorSpec& target) {
  const Matrix3 signal = multiply(from_rgb(target.matrix), to_rgb(source.matrix));
  std::array<LinearForm, 3> forms;
  for (std::size_t i = 0; i < 3; ++i) {
    const Quantisation out = quantisation(target, i);
    std::array<Rational, 3> coefficients;
    Rational offset = out.zero;
    for (std::size_t j = 0; j < 3; ++j) {
      const Quantisation in = quantisation(source, j);
      coefficients[j] = out.scale * signal[i][j] / in.scale;
      offset = offset - coefficients[j] * in.zero;
    }
    forms[i] = over_common_denominator(coefficients, offset);
  }
  return forms;
}

std::array<LinearForm, 3> color_transform(const Conversion& conversion) {
  ColorSpec source = conversion.source_color;
  if (info(conversion.source).gray) source.matrix = conversion.target_color.matrix;
  return color_transform(source, conversion.target_color);
}

std::array<std::uint8_t, 3> codes_of(const std::array<std::uint8_t, 3>& rgb,
                                     const ColorSpec& color) {
  const auto forms = color_transform({Matrix::kRgb, Range::kFull}, color);
  std::array<std::uint8_t, 3> codes{};
  for (std::size_t k = 0; k < 3; ++k) {
    codes[k] = forms[k].rounding_for_scale(1).floor_to_byte({rgb[0], rgb[1], rgb[2]});
  }
  return codes;
}

bool mixes_channels(const Conversion& conversion) {
  return conversion.source_color.matrix != conversion.target_color.matrix &&
         !info(conversion.source).gray;
}

}  // namespace framelane
