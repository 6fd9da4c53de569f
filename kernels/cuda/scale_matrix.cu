#include "kernels/cuda/scale_matrix.cuh"

#include <algorithm>
#include <array>
#include <cassert>
#include <cstdint>
#include <cstring>
#include <span>
#include <type_traits>
#include <vector>

#include "kernels/cuda/scale_batches.cuh"
#include "kernels/cuda/scale_constants.cuh"
#include "kernels/cuda/scale_matrix.hpp"
#include "kernels/picture_part.hpp"

namespace framelane {
namespace {

using namespace cuda;

int ceil_div(int a, int b) { return (a + b - 1) / b; }

constexpr std::size_t aligned(std::size_t bytes) { return (bytes + 15) / 16 * 16; }

template <typename Byte>
bool is_aligned(const Samples2d<Byte>& channel, std::uintptr_t alignment) {
  const auto place =
      reinterpret_cast<std::uintptr_t>(channel.data) | static_cast<std::uintptr_t>(channel.pitch);
  return place % alignment == 0;
}

/// How luma and chroma of a picture lie.
template <typename Byte>
std::array<PlaneWay, 2> ways_of(const Samples2d<Byte> (&channels)[3]) {
  const auto& [y, u, v] = channels;
  const auto is_plane = [](const Samples2d<Byte>& channel) {
    return channel.step == 1 && is_aligned(channel, 4);
  };
  const bool pairs = u.step == 2 && v.step == 2 && v.data == u.data + 1 && is_aligned(u, 8);
  return {is_plane(y) ? PlaneWay::kFour : PlaneWay::kAny, is_plane(u) && is_plane(v)
                                                              ? PlaneWay::kFour
                                                          : pairs ? PlaneWay::kPairs
                                                                  : PlaneWay::kAny};
}

/// All weights of an axis.
std::vector<double> doubles(const AxisTable& axis) {
  return {axis.weights(0), axis.weights(0) + std::ptrdiff_t{axis.samples()} * axis.taps()};
}

/// One grid of the target, luma or both of chroma, and its tables.
struct GridTables {
  TermConstants constants;
  MatrixTables tables;
  int half_height;  // of the target: 0 or 1
  std::vector<double> across_doubles, down_doubles;

  std::size_t bytes() const {
    return constants.bytes() + aligned(std::span(across_doubles).size_bytes()) +
           aligned(std::span(down_doubles).size_bytes()) +
           aligned(std::span(tables.down.first).size_bytes()) +
           aligned(std::span(tables.down.words).size_bytes()) +
           aligned(std::span(tables.across.halves).size_bytes()) +
           aligned(std::span(tables.across.words).size_bytes());
  }
  void write(std::uint8_t* to) const {
    constants.across.write(to);
    constants.down.write(to + constants.across.bytes());
    to += constants.bytes();
    const auto put = [&to](auto numbers) {
      std::memcpy(to, numbers.data(), numbers.size_bytes());
      to += aligned(numbers.size_bytes());
    };
    put(std::span(across_doubles));
    put(std::span(down_doubles));
    put(std::span(tables.down.first));
    put(std::span(tables.down.words));
    put(std::span(tables.across.halves));
    put(std::span(tables.across.words));
  }
  /// Where they are, if they begin at `at`, which is set to their end.
  MatrixGroup view(const std::uint8_t*& at) const {
    MatrixGroup group{};
    group.exact = constants.view(at).exact;
    const auto take = [&at](auto& pointer, std::size_t bytes) {
      pointer = reinterpret_cast<std::remove_reference_t<decltype(pointer)>>(at);
      at += aligned(bytes);
    };
    take(group.weights_across, std::span(across_doubles).size_bytes());
    take(group.weights_down, std::span(down_doubles).size_bytes());
    take(group.first_rows, std::span(tables.down.first).size_bytes());
    take(group.down, std::span(tables.down.words).size_bytes());
    take(group.halves, std::span(tables.across.halves).size_bytes());
    take(group.across, std::span(tables.across.words).size_bytes());
    group.column_groups = static_cast<int>(tables.across.halves.size());
    group.output = tables.output;
    group.factor = tables.factor;
    group.offset = tables.offset;
    group.ties = tables.ties;
    group.origin = tables.across.origin;
    group.across_words = tables.across.words_of_group();
    return group;
  }
};

class ScaleMatrixConverter final : public ScaleInBatches {
 public:
  explicit ScaleMatrixConverter(const Conversion& conversion) : ScaleInBatches(conversion) {
    const PixelFormatInfo& from = info(conversion.source);
    const PixelFormatInfo& to = info(conversion.target);
    const bool planes = from.gray || conversion.source == PixelFormat::kI420 ||
                        conversion.source == PixelFormat::kNv12 ||
                        conversion.source == PixelFormat::kI422 ||
                        conversion.source == PixelFormat::kI444;
    if (!planes || mixes_channels(conversion) || !has_equal_chroma()) return;
    std::array<int, 2> rows{};
    for (std::size_t channel = 0; channel < (has_chroma() ? 2 : 1); ++channel) {
      const ScaleTerm& term = samples().terms(channel)[0];
      const int half = channel == 1 && from.chroma_half_height ? 1 : 0;
      rows[channel] = (conversion.scaling->crop.height + half) >> half;
      const int halves = MatrixDownTable::halves(term.down, rows[channel]);
      grids_.push_back({TermConstants(term, {}),
                        {},
                        channel == 1 && to.chroma_half_height,
                        doubles(term.across),
                        doubles(term.down)});
      MatrixAcrossTable& across = grids_.back().tables.across;
      if (halves == 0 || !across.place(term.across)) return;
      halves_ = std::max(halves_, halves);
      wide_ = wide_ || across.wide || halves_ == MatrixDownTable::kMostHalves;
    }
    for (std::size_t channel = 0; channel < grids_.size(); ++channel) {
      const ScaleTerm& term = samples().terms(channel)[0];
      fits_ = rows[channel] >= halves_ * kMatrixHalf &&
              grids_[channel].tables.find(term.across, term.down, rows[channel], halves_,
                                          samples().form(channel), channel);
      if (!fits_) return;
    }
  }

  bool fits() const { return fits_; }

  std::size_t constant_bytes() const override {
    std::size_t bytes = 0;
    for (const GridTables& grid : grids_) bytes += grid.bytes();
    return bytes;
  }
  void write_constants(std::uint8_t* to) const override {
    for (const GridTables& grid : grids_) {
      grid.write(to);
      to += grid.bytes();
    }
  }

  const char* name() const override { return "scale-matrix"; }

 private:
  /// Whether U and V become codes in the same way.
  bool has_equal_chroma() const {
    const LinearForm& u = samples().form(1);
    const LinearForm& v = samples().form(2);
    return u.coefficients[1] == v.coefficients[2] && u.offset == v.offset &&
           u.denominator == v.denominator;
  }

  template <typename What>
  cudaError_t with_body(What what) const {
    if (halves_ == 2) return wide_ ? what(ScaleMatrix<2, true>{}) : what(ScaleMatrix<2, false>{});
    if (halves_ == 3) return wide_ ? what(ScaleMatrix<3, true>{}) : what(ScaleMatrix<3, false>{});
    return what(ScaleMatrix<4, true>{});
  }

  cudaError_t load_kernels() const override {
    return with_body([](auto body) { return load_tiles<decltype(body)>(); });
  }

  cudaError_t enqueue_picture(std::span<const CudaFrame> frames, int row_begin, int row_end,
                              cudaStream_t stream) const override {
    const Rect& place = conversion().scaling->place;
    const int begin = std::max(row_begin - place.y, 0);
    const int end = std::min(row_end - place.y, place.height);
    if (begin >= end) return cudaSuccess;
    return with_body([&](auto body) {
      set_frames(frames, body);
      set_groups(frames.front(), begin, end, body);
      const cudaError_t error = set_strips(static_cast<int>(frames.size()), body);
      if (error != cudaSuccess) return error;
      return launch_tiles(dim3(static_cast<unsigned>(body.groups[0].blocks + body.groups[1].blocks),
                               static_cast<unsigned>(frames.size())),
                          body.kFixedBytes + weight_bytes(body.strip_groups), stream, body);
    });
  }

  template <typename Body>
  void set_frames(std::span<const CudaFrame> frames, Body& body) const {
    for (std::size_t i = 0; i < frames.size(); ++i) {
      TileFrame& frame = body.frames[i];
      locate(cropped(frames[i].source, conversion().scaling->crop), frame.from);
      locate(frames[i].target, frame.to);
      const auto from = ways_of(frame.from);
      const auto to = ways_of(frame.to);
      for (std::size_t g = 0; g < 2; ++g) {
        const auto set = [i](PlaneWay& all, PlaneWay own) {
          all = i == 0 || all == own ? own : PlaneWay::kAny;
        };
        set(body.from_ways[g], from[g]);
        set(body.to_ways[g], to[g]);
      }
    }
    // The part may begin anywhere in the target.
    const auto parts = places();
    for (std::size_t g = 0; g < 2; ++g) {
      if (parts[g].x % 4 != 0) body.to_ways[g] = PlaneWay::kAny;
    }
  }

  template <typename Body>
  void set_groups(const CudaFrame& frame, int row_begin, int row_end, Body& body) const {
    assert(frame.constants != nullptr);
    const std::uint8_t* at = frame.constants;
    const auto parts = places();
    for (std::size_t g = 0; g < grids_.size(); ++g) {
      MatrixGroup& group = body.groups[g];
      group = grids_[g].view(at);
      group.place = parts[g];
      const int half = grids_[g].half_height;
      group.row_begin = row_begin >> half;
      group.row_end = (row_end + half) >> half;
      group.first_row_group = group.row_begin / kMatrixRows;
    }
    for (std::size_t k = 0; k < 3; ++k) body.forms[k] = samples().sum_form(k);
  }

  /// Of the weights across of a strip, in shared memory.
  std::size_t weight_bytes(int strip_groups) const {
    int words = 0;
    for (const GridTables& grid : grids_) {
      words = std::max(words, grid.tables.across.words_of_group());
    }
    return static_cast<std::size_t>(strip_groups * words) * sizeof(std::uint32_t);
  }

  /// Makes strips as long as they may be while there is work for all multiprocessors: what is
  /// filtered down at the ends of a strip is filtered twice.
  template <typename Body>
  cudaError_t set_strips(int frames, Body& body) const {
    int device = 0, multiprocessors = 0;
    cudaError_t error = cudaGetDevice(&device);
    if (error != cudaSuccess) return error;
    error = cudaDeviceGetAttribute(&multiprocessors, cudaDevAttrMultiProcessorCount, device);
    if (error != cudaSuccess) return error;
    // Even numbers, so that strips begin with multiples of 16 columns.
    constexpr int kLeastStripGroups = 4;
    for (body.strip_groups = kLeastStripGroups;; body.strip_groups += 2) {
      int blocks = 0;
      for (std::size_t g = 0; g < grids_.size(); ++g) {
        MatrixGroup& group = body.groups[g];
        const int rows = ceil_div(group.row_end, kMatrixRows) - group.first_row_group;
        group.strips = ceil_div(group.column_groups, body.strip_groups);
        group.blocks = group.strips * ceil_div(rows, g == 0 ? Body::kWarps : Body::kWarps / 2);
        blocks += group.blocks;
      }
      const bool at_once = blocks * frames <= multiprocessors * Body::kBlocks;
      if (at_once || body.strip_groups == Body::kMostStripGroups) return cudaSuccess;
    }
  }

  int halves_ = 0;
  bool wide_ = false;
  std::vector<GridTables> grids_;  // luma, chroma
  bool fits_ = false;
};

}  // namespace

std::unique_ptr<const CudaConverter> make_cuda_scale_matrix_converter(
    const Conversion& conversion) {
  auto converter = std::make_unique<ScaleMatrixConverter>(conversion);
  if (!converter->fits()) return nullptr;
  return converter;
}

}  // namespace framelane
