#include "tests/kernels/oracle.hpp"

#include <algorithm>
#include <array>
#include <functional>
#include <limits>

namespace framelane {
namespace {

#ifdef __SIZEOF_FLOAT128__
__extension__ typedef __float128 Real;
#else
using Real = long double;
static_assert(std::numeric_limits<long double>::digits >= 113);
#endif

struct Signal {
  int width = 0;
  int height = 0;
  std::vector<Real> values;

  Signal(int w, int h) : width(w), height(h), values(static_cast<std::size_t>(w) * h) {}
  Signal(int w, int h, const std::function<Real(int, int)>& value) : Signal(w, h) {
    for (int y = 0; y < h; ++y) {
      for (int x = 0; x < w; ++x) values[static_cast<std::size_t>(y) * w + x] = value(x, y);
    }
  }
  Real at(int x, int y) const {
    x = std::clamp(x, 0, width - 1);
    y = std::clamp(y, 0, height - 1);
    return values[static_cast<std::size_t>(y) * width + x];
  }
};
using Signals = std::array<Signal, 3>;

struct Weights {
  Real r, g, b;
};

Weights weights(Matrix matrix) {
  switch (matrix) {
    case Matrix::kBt601:
      return {Real(299) / 1000, Real(587) / 1000, Real(114) / 1000};
    case Matrix::kBt709:
      return {Real(2126) / 10000, Real(7152) / 10000, Real(722) / 10000};
    case Matrix::kBt2020:
      return {Real(2627) / 10000, Real(6780) / 10000, Real(593) / 10000};
    case Matrix::kRgb:
      break;
  }
  return {};
}

std::uint8_t code(const ConstImageView& view, int channel, int x, int y) {
  const std::uint8_t* first = view.row(0, y);
  switch (view.format) {
    case PixelFormat::kBgra:
      return first[4 * x + 2 - channel];
    case PixelFormat::kRgba:
      return first[4 * x + channel];
    case PixelFormat::kArgb:
      return first[4 * x + 1 + channel];
    case PixelFormat::kAbgr:
      return first[4 * x + 3 - channel];
    case PixelFormat::kBgr24:
      return first[3 * x + 2 - channel];
    case PixelFormat::kRgb24:
    case PixelFormat::kYuv444:
      return first[3 * x + channel];
    case PixelFormat::kI420:
    case PixelFormat::kI422:
    case PixelFormat::kI444:
      return view.row(channel, y)[x];
    case PixelFormat::kNv12:
      return channel == 0 ? first[x] : view.row(1, y)[2 * x + channel - 1];
    case PixelFormat::kYuyv:
      return channel == 0 ? first[2 * x] : first[4 * x + (channel == 1 ? 1 : 3)];
    case PixelFormat::kUyvy:
      return channel == 0 ? first[2 * x + 1] : first[4 * x + (channel == 1 ? 0 : 2)];
    case PixelFormat::kGray8:
      return channel == 0 ? first[x] : 128;
  }
  return 0;
}

bool is_color_difference(const ColorSpec& color, int channel) {
  return color.matrix != Matrix::kRgb && channel > 0;
}

// From codes to signals: 0..1, or -1/2..1/2 for colour differences.
Signal decode(const ConstImageView& view, const ColorSpec& color, int channel) {
  const PixelFormatInfo& format = info(view.format);
  const bool chroma = !format.rgb && !format.gray && channel > 0;
  const int width = chroma && format.chroma_half_width ? (view.width + 1) / 2 : view.width;
  const int height = chroma && format.chroma_half_height ? (view.height + 1) / 2 : view.height;
  const bool limited = color.range == Range::kLimited;
  return Signal(width, height, [&](int x, int y) -> Real {
    const Real value = code(view, channel, x, y);
    if (is_color_difference(color, channel)) return (value - 128) / (limited ? 224 : 255);
    return limited ? (value - 16) / 219 : value / 255;
  });
}

std::uint8_t encode(Real signal, const ColorSpec& color, int channel) {
  const bool limited = color.range == Range::kLimited;
  const Real value = is_color_difference(color, channel)
                         ? 128 + signal * (limited ? 224 : 255)
                         : (limited ? 16 + signal * 219 : signal * 255);
  // Rounds half up. The small addend is for ties, whose value the arithmetic may have made just
  // smaller.
  const Real raised = value + Real(1) / 2 + Real(1e-24);
  if (raised < 0) return 0;
  return static_cast<std::uint8_t>(std::min<long long>(static_cast<long long>(raised), 255));
}

// How far the chroma sample sits to the right of (or below) an even luma sample.
Real offset_across(Siting siting) { return siting == Siting::kCenter ? Real(1) / 2 : Real(0); }
Real offset_down(Siting siting) { return siting == Siting::kTopLeft ? Real(0) : Real(1) / 2; }

// Linear interpolation at the luma coordinate `at`, between samples at 2 i + offset.
Real interpolate(int at, Real offset, const std::function<Real(int)>& sample) {
  const Real position = (at - offset) / 2;
  int left = static_cast<int>(position);
  if (position < left) --left;
  const Real fraction = position - left;
  return sample(left) * (1 - fraction) + sample(left + 1) * fraction;
}

Signal raise(const Signal& chroma, int width, int height, const ColorSpec& color) {
  const Signal wide =
      chroma.width == width ? chroma : Signal(width, chroma.height, [&](int x, int y) {
        return interpolate(x, offset_across(color.siting), [&](int i) { return chroma.at(i, y); });
      });
  if (wide.height == height) return wide;
  return Signal(width, height, [&](int x, int y) {
    return interpolate(y, offset_down(color.siting), [&](int i) { return wide.at(x, i); });
  });
}

// A triangle of half-width 2 if chroma sits on a luma sample, otherwise the mean of two samples.
Real reduce(int at, Real offset, const std::function<Real(int)>& sample) {
  if (offset != 0) return (sample(2 * at) + sample(2 * at + 1)) / 2;
  return sample(2 * at - 1) / 4 + sample(2 * at) / 2 + sample(2 * at + 1) / 4;
}

Signal lower(const Signal& chroma, int width, int height, const ColorSpec& color) {
  const Signal narrow =
      chroma.width == width ? chroma : Signal(width, chroma.height, [&](int x, int y) {
        return reduce(x, offset_across(color.siting), [&](int i) { return chroma.at(i, y); });
      });
  if (narrow.height == height) return narrow;
  return Signal(width, height, [&](int x, int y) {
    return reduce(y, offset_down(color.siting), [&](int i) { return narrow.at(x, i); });
  });
}

void change_matrix(Signals& signals, Matrix from, Matrix to) {
  for (std::size_t i = 0; i < signals[0].values.size(); ++i) {
    Real r = signals[0].values[i], g = signals[1].values[i], b = signals[2].values[i];
    if (from != Matrix::kRgb) {
      const Weights w = weights(from);
      const Real y = r, cb = g, cr = b;
      r = y + 2 * (1 - w.r) * cr;
      b = y + 2 * (1 - w.b) * cb;
      g = (y - w.r * r - w.b * b) / w.g;
    }
    const Weights w = weights(to);
    const Real y = w.r * r + w.g * g + w.b * b;
    signals[0].values[i] = y;
    signals[1].values[i] = (b - y) / (2 * (1 - w.b));
    signals[2].values[i] = (r - y) / (2 * (1 - w.r));
  }
}

}  // namespace

std::vector<std::uint8_t> convert_oracle(const Conversion& conversion,
                                         const ConstImageView& source) {
  const auto& [width, height, from, from_color, to, to_color, scaling, overlaid] = conversion;
  Signals signals{decode(source, from_color, 0), decode(source, from_color, 1),
                  decode(source, from_color, 2)};
  if (from_color.matrix != to_color.matrix) {
    for (Signal& signal : signals) signal = raise(signal, width, height, from_color);
    change_matrix(signals, from_color.matrix, to_color.matrix);
  }
  const PixelFormatInfo& format = info(to);
  const int chroma_width = format.chroma_half_width ? (width + 1) / 2 : width;
  const int chroma_height = format.chroma_half_height ? (height + 1) / 2 : height;

  std::array<std::vector<std::uint8_t>, 3> coded;
  for (int channel = 0; channel < 3; ++channel) {
    Signal& signal = signals[static_cast<std::size_t>(channel)];
    if (channel > 0 && !format.gray) signal = lower(signal, chroma_width, chroma_height, to_color);
    for (const Real value : signal.values) {
      coded[static_cast<std::size_t>(channel)].push_back(encode(value, to_color, channel));
    }
  }

  std::vector<std::uint8_t> pixels;
  if (to == PixelFormat::kYuv444) {
    for (std::size_t i = 0; i < coded[0].size(); ++i) {
      for (const auto& channel : coded) pixels.push_back(channel[i]);
    }
    return pixels;
  }
  pixels = coded[0];
  if (format.gray) return pixels;
  if (to == PixelFormat::kNv12) {
    for (std::size_t i = 0; i < coded[1].size(); ++i) {
      pixels.push_back(coded[1][i]);
      pixels.push_back(coded[2][i]);
    }
    return pixels;
  }
  pixels.insert(pixels.end(), coded[1].begin(), coded[1].end());
  pixels.insert(pixels.end(), coded[2].begin(), coded[2].end());
  return pixels;
}

}  // namespace framelane
