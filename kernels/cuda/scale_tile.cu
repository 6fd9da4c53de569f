#include <algorithm>
#include <array>
#include <cassert>
#include <cstdint>
#include <span>
#include <vector>

#include "kernels/cuda/group_tables.cuh"
#include "kernels/cuda/scale_batches.cuh"
#include "kernels/cuda/scale_lines.cuh"
#include "kernels/cuda/scale_tile.cuh"
#include "kernels/cuda/scale_tile.hpp"
#include "kernels/picture_part.hpp"
#include "kernels/scaled_reference.hpp"

namespace framelane {
namespace {

using namespace cuda;

/// More rows of a tile do not pay: those that two tiles read are a small part of it.
constexpr int kMostTileRows = 64;

int ceil_div(int a, int b) { return (a + b - 1) / b; }

/// Whether each row of a channel begins at a multiple of `alignment`.
bool is_aligned(const Samples2d<const std::uint8_t>& channel, std::uintptr_t alignment) {
  const auto place =
      reinterpret_cast<std::uintptr_t>(channel.data) | static_cast<std::uintptr_t>(channel.pitch);
  return place % alignment == 0;
}

class ScaleTileConverter final : public ScaleInBatches {
 public:
  explicit ScaleTileConverter(const Conversion& conversion)
      : ScaleInBatches(conversion), rgb_(info(conversion.source).rgb) {
    const PixelFormatInfo& from = info(conversion.source);
    const PixelFormatInfo& to = info(conversion.target);
    const int rows = conversion.scaling->crop.height;
    for (const std::size_t channel : {std::size_t{0}, std::size_t{1}}) {
      const ScaleTerms& terms = samples().terms(channel);
      if (terms.size() != 1) {
        fits_ = fits_ && terms.empty();
        continue;
      }
      const int half = channel == 1 && from.chroma_half_height ? 1 : 0;
      groups_.emplace_back(terms[0], whole_numbers(samples(), channel), (rows + half) >> half);
      groups_.back().half_width = channel == 1 && to.chroma_half_width ? 1 : 0;
      groups_.back().half_height = channel == 1 && to.chroma_half_height ? 1 : 0;
    }
    fits_ = fits_ && !mixes_channels(conversion) == !rgb_ && size_.find(groups_, rgb_);
    if (fits_ && rgb_) fits_ = lines_.find(samples(), order_in_memory(), has_chroma());
    if (!fits_) return;
    for (GroupTables& group : groups_) {
      group.down.set_weights(group.constants.down, size_.slots, rgb_ ? 1.0F : kByteWeight);
    }
    for (std::size_t line = 0; line < (has_chroma() ? 3 : 1); ++line) {
      const GroupTables& group = groups_[line == 0 ? 0 : 1];
      if (rgb_) {
        const std::size_t channel = lines_.channels[line];
        outputs_[line] = make_output(group, samples().form(channel), channel, lines_.sizes[line],
                                     lines_.factors[line]);
      } else {
        const LinearForm& form = samples().form(line);
        outputs_[line] = make_output(
            group, form, line, {255, 0, 0},
            static_cast<double>(form.coefficients[line]) / static_cast<double>(form.denominator));
      }
    }
  }

  bool fits() const { return fits_; }

  std::size_t constant_bytes() const override {
    std::size_t bytes = 0;
    for (const GroupTables& group : groups_) bytes += group.bytes();
    return bytes;
  }
  void write_constants(std::uint8_t* to) const override {
    for (const GroupTables& group : groups_) {
      group.write(to);
      to += group.bytes();
    }
  }

  const char* name() const override { return "scale-tile"; }

 private:
  cudaError_t load_kernels() const override {
    cudaError_t error = cudaSuccess;
    const auto load_one = [&](auto body) {
      if (error == cudaSuccess) error = load_tiles<decltype(body)>();
      return error;
    };
    // Which one it is depends on a frame's alignment.
    for (const bool fast : {false, true}) {
      for (const PlaneWay way : {PlaneWay::kFour, PlaneWay::kPairs}) {
        if (way == PlaneWay::kFour || (fast && !rgb_)) with_body(fast, way, load_one);
      }
    }
    return error;
  }

  /// The channels in the order of a pixel's bytes: red first or blue first.
  std::array<int, 3> order_in_memory() {
    const auto found =
        channels(ConstImageView{conversion().source, 1, 1, {{{kAnywhere.data(), 0}}}});
    const auto place = [&](std::size_t k) {
      return static_cast<int>(found[k].data - kAnywhere.data());
    };
    alpha_ = std::min(place(0), place(2));
    return place(0) < place(2) ? std::array{0, 1, 2} : std::array{2, 1, 0};
  }

  /// Calls what(body) with the body for this conversion: for sources whose words can be read as
  /// they are (`fast`), with planes of chroma that lie so; or for any.
  template <typename What>
  cudaError_t with_body(bool fast, PlaneWay way, What what) const {
    const auto with_slots = [&]<typename Source>(Source) {
      return size_.slots == TileSize::kFewSlots ? what(ScaleTile<Source, TileSize::kFewSlots>{})
                                                : what(ScaleTile<Source, TileSize::kMostSlots>{});
    };
    if (rgb_) {
      if (has_chroma()) {
        return fast ? with_slots(RgbTileSource<true, true>{})
                    : with_slots(RgbTileSource<true, false>{});
      }
      return fast ? with_slots(RgbTileSource<false, true>{})
                  : with_slots(RgbTileSource<false, false>{});
    }
    if (!fast) return with_slots(PlaneTileSource<PlaneWay::kAny>{});
    return way == PlaneWay::kPairs ? with_slots(PlaneTileSource<PlaneWay::kPairs>{})
                                   : with_slots(PlaneTileSource<PlaneWay::kFour>{});
  }

  /// How the sources of some frames can be read.
  struct Way {
    bool fast = true;   // as with_body() says
    bool words = true;  // of RGB: pixels are words
    PlaneWay ways[2] = {PlaneWay::kFour, PlaneWay::kFour};
  };
  Way way_of(std::span<const TileFrame> frames) const {
    Way way;
    for (const TileFrame& frame : frames) {
      const auto& [y, u, v] = frame.from;
      if (rgb_) {
        const Samples2d<const std::uint8_t>& first = frame.from[lines_.order[0]];
        Samples2d<const std::uint8_t> pixels = first;
        pixels.data -= alpha_;
        way.words = way.words && first.step == 4 && is_aligned(pixels, 4);
        way.fast = way.fast && way.words && is_aligned(pixels, 16) && first.width % 4 == 0;
        continue;
      }
      if (y.step != 1 || !is_aligned(y, 4)) way.ways[0] = PlaneWay::kAny;
      const bool planes = u.step == 1 && v.step == 1 && is_aligned(u, 4) && is_aligned(v, 4);
      const bool pairs = u.step == 2 && v.data == u.data + 1 && is_aligned(u, 8);
      if (!planes && way.ways[1] != PlaneWay::kAny) {
        way.ways[1] = pairs ? PlaneWay::kPairs : PlaneWay::kAny;
      }
      way.fast = way.fast && way.ways[0] == PlaneWay::kFour && y.width % 4 == 0;
      if (has_chroma()) {
        way.fast = way.fast && way.ways[1] != PlaneWay::kAny && u.width % 4 == 0;
      }
    }
    return way;
  }

  cudaError_t enqueue_picture(std::span<const CudaFrame> frames, int row_begin, int row_end,
                              cudaStream_t stream) const override {
    TileFrame located[kMostFramesOfTiles] = {};
    for (std::size_t i = 0; i < frames.size(); ++i) {
      locate(cropped(frames[i].source, conversion().scaling->crop), located[i].from);
      locate(frames[i].target, located[i].to);
    }
    const Way way = way_of(std::span(located).first(frames.size()));
    return with_body(way.fast, way.ways[1], [&](auto body) {
      std::ranges::copy(located, body.frames);
      if constexpr (!decltype(body)::Source::kSeparate) {
        set_source(body.source, way);
      } else {
        std::ranges::copy(way.ways, body.source.ways);
      }
      return launch_body(body, frames, row_begin, row_end, stream);
    });
  }

  template <typename Source>
  void set_source(Source& source, const Way& way) const {
    std::ranges::copy(lines_.order, source.order);
    source.alpha = alpha_;
    source.words = way.words;
    std::ranges::copy(lines_.luma, source.luma);
    source.middle = lines_.middle;
    std::ranges::copy(lines_.difference, source.difference);
    for (unsigned i = 0; i < 3; ++i) {
      source.selectors[i] = 0x4440 + static_cast<unsigned>(alpha_) + i;
    }
  }

  template <typename Body>
  cudaError_t launch_body(Body& body, std::span<const CudaFrame> frames, int row_begin, int row_end,
                          cudaStream_t stream) const {
    const Rect& place = conversion().scaling->place;
    const int begin = std::max(row_begin - place.y, 0);
    const int end = std::min(row_end - place.y, place.height);
    if (begin >= end) return cudaSuccess;
    assert(frames.front().constants != nullptr);
    const std::uint8_t* at = frames.front().constants;
    int across[2] = {0, 0}, rows[2] = {0, 0};
    for (std::size_t g = 0; g < groups_.size(); ++g) {
      TileGroup& group = body.groups[g];
      group = groups_[g].view(at);
      group.place = places()[g];
      const int half = groups_[g].half_height;
      group.row_begin = begin >> half;
      group.row_end = (end + half) >> half;
      group.columns = size_.columns[g];
      group.log2_columns = log2_of(group.columns);
      group.most_rows = size_.most_rows[g];
      across[g] = ceil_div(group.across.samples, group.columns);
      rows[g] = group.row_end - group.row_begin;
    }
    for (std::size_t k = 0; k < 3; ++k) {
      body.outputs[k] = outputs_[k];
      body.exact[k] = samples().sum_form(k);
    }
    body.turn_rows = size_.turn_rows;
    constexpr bool kSeparate = Body::Source::kSeparate;
    const int count = static_cast<int>(frames.size());
    const int in_all_rows = across[0] * rows[0] + (kSeparate ? across[1] * rows[1] : 0);
    int tile_rows = 0;
    const cudaError_t error = find_rows(in_all_rows * count, body.kBlocks, tile_rows);
    if (error != cudaSuccess) return error;
    for (std::size_t g = 0; g < groups_.size(); ++g) {
      body.groups[g].rows = tile_rows >> (kSeparate ? 0 : groups_[g].half_height);
    }
    body.luma_blocks = static_cast<unsigned>(ceil_div(rows[0], tile_rows));
    const int chroma_blocks = kSeparate ? ceil_div(rows[1], tile_rows) : 0;
    return launch_tiles(
        dim3(static_cast<unsigned>(std::max(across[0], kSeparate ? across[1] : 0)),
             body.luma_blocks + static_cast<unsigned>(chroma_blocks), static_cast<unsigned>(count)),
        Body::kFixedBytes + size_.line_bytes(), stream, body);
  }

  /// Of the next power of two, at least a warp, at most a block.
  static int log2_of(int columns) {
    int log2 = 5;
    while (1 << log2 < columns && 1U << log2 < kBlockThreads) ++log2;
    return log2;
  }

  /// How many rows tiles have, so that there are about `blocks` of them on a multiprocessor at
  /// once.
  static cudaError_t find_rows(int tiles_in_all_rows, int blocks, int& rows) {
    int device = 0, multiprocessors = 0;
    cudaError_t error = cudaGetDevice(&device);
    if (error != cudaSuccess) return error;
    error = cudaDeviceGetAttribute(&multiprocessors, cudaDevAttrMultiProcessorCount, device);
    if (error != cudaSuccess) return error;
    rows = std::clamp((ceil_div(tiles_in_all_rows, multiprocessors * blocks) + 1) / 2 * 2, 4,
                      kMostTileRows);
    return cudaSuccess;
  }

  static constexpr std::array<std::uint8_t, 16> kAnywhere{};

  const bool rgb_;
  std::vector<GroupTables> groups_;  // luma, chroma
  bool fits_ = true;
  TileSize size_;
  RgbLines lines_;
  int alpha_ = 0;  // bytes of a pixel before its colours
  std::array<TileOutput, 3> outputs_{};
};

}  // namespace

std::unique_ptr<const CudaConverter> make_cuda_scale_tile_converter(const Conversion& conversion) {
  auto converter = std::make_unique<ScaleTileConverter>(conversion);
  if (!converter->fits()) return nullptr;
  return converter;
}

}  // namespace framelane
