#pragma once

#include "kernels/cuda/arithmetic.cuh"
#include "kernels/cuda/samples.cuh"
#include "kernels/exact_sum.hpp"

// Pictures of another size. A thread makes one sample of luma, or one of each chroma, as a sum in
// floats whose error is known. Where that could matter, exact numbers decide.

namespace framelane::cuda {

/// A term in floats, and exact.
struct ScaleTermView {
  TermView exact;
  const float* across;  // taps for each sample of the target, as in `exact`
  const float* down;
};

/// Where the picture lies in a channel of the target.
struct ScalePlace {
  int x, y, width, height;
};

struct ScaleForm {
  float factors[3];
  float offset;
  float window;  // values whose fraction is smaller are in doubt; 0: none is
};

struct ScaleReader {
  const Samples2d<const std::uint8_t>* from;

  FRAMELANE_HD int operator()(int k, int x, int y) const { return from[k].at(x, y); }
};

/// The rows of the grid are the rows of luma, followed by those of chroma.
struct Scale {
  Samples2d<const std::uint8_t> from[3];  // of the part that is scaled
  Samples2d<std::uint8_t> to[3];          // of the whole target
  ScalePlace places[2];                   // of luma and of chroma
  ScaleTermView luma[2];
  ScaleTermView chroma;
  int luma_terms;
  bool has_chroma;  // false: it is neutral
  ScaleForm forms[3];
  SumForm exact[3];
  std::uint8_t background[3];
  int luma_begin, luma_rows, chroma_begin;

  FRAMELANE_HD void operator()(ThreadIndex thread) const {
    const int x = static_cast<int>(thread.x);
    const int row = static_cast<int>(thread.y);
    if (row < luma_rows) {
      if (x < to[0].width) make<0, 1>(luma, luma_terms, places[0], x, luma_begin + row);
    } else {
      const int y = chroma_begin + row - luma_rows;
      if (x < to[1].width) make<1, 2>(&chroma, has_chroma ? 1 : 0, places[1], x, y);
    }
  }

 private:
  template <int kFirst, int kOutputs>
  FRAMELANE_HD void make(const ScaleTermView* terms, int count, const ScalePlace& place, int x,
                         int y) const {
    const int column = x - place.x;
    const int row = y - place.y;
    const bool inside = column >= 0 && column < place.width && row >= 0 && row < place.height;
    float sums[3] = {0, 0, 0};
    if (inside) {
      for (int t = 0; t < count; ++t) add(terms[t], column, row, sums);
    }
    FRAMELANE_UNROLL
    for (int k = kFirst; k < kFirst + kOutputs; ++k) {
      std::uint8_t& result = to[k].at(x, y);
      if (!inside) {
        result = background[k];
      } else if (count == 0) {
        result = 128;
      } else {
        result = code(k, terms, count, column, row, sums);
      }
    }
  }

  FRAMELANE_HD void add(const ScaleTermView& term, int x, int y, float (&sums)[3]) const {
    const AxisView& across = term.exact.across;
    const AxisView& down = term.exact.down;
    const float* const columns = term.across + std::ptrdiff_t{x} * across.taps;
    const float* const rows = term.down + std::ptrdiff_t{y} * down.taps;
    const int first_column = across.first[x];
    const int first_row = down.first[y];
    const int begin = term.exact.first_channel;
    for (int j = 0; j < down.taps; ++j) {
      float of_row[3] = {0, 0, 0};
      for (int i = 0; i < across.taps; ++i) {
        const float weight = columns[i];
        FRAMELANE_UNROLL
        for (int k = 0; k < 3; ++k) {
          if (k < begin || k >= begin + term.exact.channels) continue;
          of_row[k] += weight * static_cast<float>(from[k].at(first_column + i, first_row + j));
        }
      }
      FRAMELANE_UNROLL
      for (int k = 0; k < 3; ++k) sums[k] += rows[j] * of_row[k];
    }
  }

  FRAMELANE_HD std::uint8_t code(int k, const ScaleTermView* terms, int count, int x, int y,
                                 const float (&sums)[3]) const {
    const ScaleForm& form = forms[k];
    float value = form.offset;
    FRAMELANE_UNROLL
    for (int c = 0; c < 3; ++c) value += form.factors[c] * sums[c];
    // It is not below the true value: less than half is code 0.
    value = value < 0.5F ? 0.5F : value > 255.5F ? 255.5F : value;
    const int whole = static_cast<int>(value);
    if (value - static_cast<float>(whole) >= form.window) return static_cast<std::uint8_t>(whole);
    return exactly(k, terms, count, x, y);
  }

  /// Not inline: it is needed for few samples, and has registers of its own.
  __host__ __device__ __noinline__ std::uint8_t exactly(int k, const ScaleTermView* terms,
                                                        int count, int x, int y) const {
    TermView views[2];
    for (int t = 0; t < count; ++t) views[t] = terms[t].exact;
    return exact_code(views, count, exact[k], x, y, ScaleReader{from});
  }
};

/// What ScaleMatrix and ScaleTile leave: the background, and chroma that is neutral. The rows of
/// the grid are as those of Scale.
struct ScaleRest {
  Samples2d<std::uint8_t> to[3];
  ScalePlace places[2];
  std::uint8_t background[3];
  bool has_chroma;
  int luma_begin, luma_rows, chroma_begin;

  FRAMELANE_HD void operator()(ThreadIndex thread) const {
    const int x = static_cast<int>(thread.x);
    const int row = static_cast<int>(thread.y);
    const bool is_chroma = row >= luma_rows;
    const int y = is_chroma ? chroma_begin + row - luma_rows : luma_begin + row;
    const ScalePlace& place = places[is_chroma ? 1 : 0];
    if (x >= to[is_chroma ? 1 : 0].width) return;
    const int column = x - place.x;
    const int in_place = y - place.y;
    const bool inside =
        column >= 0 && column < place.width && in_place >= 0 && in_place < place.height;
    if (!is_chroma) {
      if (!inside) to[0].at(x, y) = background[0];
    } else if (!inside || !has_chroma) {
      to[1].at(x, y) = inside ? 128 : background[1];
      to[2].at(x, y) = inside ? 128 : background[2];
    }
  }
};

}  // namespace framelane::cuda
