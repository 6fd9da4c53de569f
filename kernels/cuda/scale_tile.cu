#include "kernels/cuda/scale_tile.cuh"

#include <algorithm>
#include <array>
#include <cassert>
#include <cmath>
#include <cstring>
#include <optional>
#include <span>
#include <type_traits>
#include <vector>

#include "kernels/cuda/frame_by_frame.hpp"
#include "kernels/cuda/scale_constants.cuh"
#include "kernels/cuda/scale_tile.hpp"
#include "kernels/cuda/tile_tables.hpp"
#include "kernels/picture_part.hpp"
#include "kernels/scaled_reference.hpp"

namespace framelane {
namespace {

using namespace cuda;

constexpr int kFewSlots = 4;  // of a reduction with two samples on either side
constexpr int kMostSlots = TileDownTable::kMostSlots;  // and with three
/// More rows of a tile do not pay: those that two tiles read are a small part of it.
constexpr int kMostTileRows = 64;

constexpr std::size_t aligned(std::size_t bytes) { return (bytes + 15) / 16 * 16; }

/// One grid of the target, and its tables.
struct GroupTables {
  TermConstants constants;
  std::int64_t divisor;  // of sums of whole numbers; 0: there are none
  TileAcrossTable across;
  TileDownTable down;
  int half_width, half_height;  // of the target: 0 or 1

  GroupTables(const ScaleTerm& term, const WholeNumbers& whole, int source_rows)
      : constants(term, whole),
        divisor(whole.divisor()),
        across(constants.across),
        down(constants.down, source_rows) {}

  std::size_t bytes() const {
    return constants.bytes() + aligned(std::span(across.weights).size_bytes()) +
           aligned(std::span(down.rows).size_bytes()) + aligned(std::span(down.last).size_bytes());
  }
  void write(std::uint8_t* to) const {
    constants.across.write(to);
    constants.down.write(to + constants.across.bytes());
    to += constants.bytes();
    const auto put = [&to](auto numbers) {
      std::memcpy(to, numbers.data(), numbers.size_bytes());
      to += aligned(numbers.size_bytes());
    };
    put(std::span(across.weights));
    put(std::span(down.rows));
    put(std::span(down.last));
  }
  TileGroup view(const std::uint8_t*& at) const {
    const ScaleTermView term = constants.view(at);
    TileGroup group{};
    group.exact = term.exact;
    group.across.first = term.exact.across.first;
    group.across.quads = across.quads;
    group.across.samples = constants.across.table.samples();
    group.down.first = term.exact.down.first;
    const auto take = [&at](auto& pointer, std::size_t bytes) {
      pointer = reinterpret_cast<std::remove_reference_t<decltype(pointer)>>(at);
      at += aligned(bytes);
    };
    take(group.across.weights, std::span(across.weights).size_bytes());
    take(group.down.rows, std::span(down.rows).size_bytes());
    take(group.down.last, std::span(down.last).size_bytes());
    return group;
  }

  int columns() const { return constants.across.table.samples(); }
};

int ceil_div(int a, int b) { return (a + b - 1) / b; }

/// What a line's numbers are before they are filtered: the largest one, what it may be wrong by,
/// and what has been taken off all of them.
struct LineSize {
  double largest, error, middle;
};

class ScaleTileConverter final : public FrameByFrame {
 public:
  explicit ScaleTileConverter(const Conversion& conversion)
      : conversion_(conversion),
        rgb_(info(conversion.source).rgb),
        background_(background_codes(conversion)),
        samples_(conversion) {
    const PixelFormatInfo& from = info(conversion.source);
    const PixelFormatInfo& to = info(conversion.target);
    const int rows = conversion.scaling->crop.height;
    for (const std::size_t channel : {std::size_t{0}, std::size_t{1}}) {
      const ScaleTerms& terms = samples_.terms(channel);
      if (terms.size() != 1) {
        fits_ = fits_ && terms.empty();
        continue;
      }
      const int half = channel == 1 && from.chroma_half_height ? 1 : 0;
      groups_.emplace_back(terms[0], whole_numbers(samples_, channel), (rows + half) >> half);
      groups_.back().half_width = channel == 1 && to.chroma_half_width ? 1 : 0;
      groups_.back().half_height = channel == 1 && to.chroma_half_height ? 1 : 0;
    }
    fits_ = fits_ && !mixes_channels(conversion) == !rgb_ && find_size();
    if (fits_ && rgb_) fits_ = find_lines();
    if (!fits_) return;
    for (GroupTables& group : groups_) {
      group.down.set_weights(group.constants.down, slots_, rgb_ ? 1.0F : kByteWeight);
    }
    if (!rgb_) {
      for (std::size_t k = 0; k < (groups_.size() == 1 ? 1 : 3); ++k) {
        const LinearForm& form = samples_.form(k);
        outputs_[k] = make_output(
            k == 0 ? 0 : 1, k, {255, 0, 0},
            static_cast<double>(form.coefficients[k]) / static_cast<double>(form.denominator));
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

  const char* name() const override { return "scale"; }

 private:
  /// Tiles as wide as a block's columns of the source are enough for. False if there is none.
  bool find_size() {
    for (const GroupTables& group : groups_) slots_ = std::max(slots_, group.down.slots);
    if (slots_ > kMostSlots) return false;
    slots_ = slots_ > kFewSlots ? kMostSlots : kFewSlots;
    if (rgb_) {
      columns_[0] = columns_that_fit(groups_);
      columns_[1] = columns_[0] >> (groups_.size() > 1 ? groups_[1].half_width : 0);
    } else {
      for (std::size_t g = 0; g < groups_.size(); ++g) {
        columns_[g] = columns_that_fit(std::span(groups_).subspan(g, 1));
      }
    }
    std::size_t doubts = 0;
    for (std::size_t g = 0; g < groups_.size(); ++g) {
      if (columns_[g] == 0) return false;
      const int channels = g == 0 ? 1 : 2;
      const int lines = groups_[g].down.most_rows(kTurnRows) * channels;
      lines_ = rgb_ ? lines_ + lines : std::max(lines_, lines);
      const int rows = rgb_ ? kMostTileRows >> groups_[g].half_height : kMostTileRows;
      doubts += doubt_bytes(rows * channels, log2_of(columns_[g]));
    }
    return line_bytes() + doubts <= kMostSharedBytes;
  }

  std::size_t line_bytes() const {
    return static_cast<std::size_t>(lines_) * kTileColumns * sizeof(float);
  }
  /// A bit for each sample of so many rows of all channels.
  static std::size_t doubt_bytes(int rows, int log2_columns) {
    return static_cast<std::size_t>(rows) << (log2_columns - 3);
  }
  static std::size_t doubt_bytes(const TileGroup& group, int channels) {
    return doubt_bytes(group.rows * channels, group.log2_columns);
  }
  /// Of the next power of two, at least a warp.
  static int log2_of(int columns) {
    int log2 = 5;
    while (1 << log2 < columns) ++log2;
    return log2;
  }

  /// Of the first of `groups`; the other one has its share. 0: none.
  static int columns_that_fit(std::span<const GroupTables> groups) {
    const int width = groups.front().columns();
    for (int tiles = 1; tiles <= width; ++tiles) {
      const int columns = (ceil_div(width, tiles) + 1) / 2 * 2;
      bool fit = columns <= kTileColumns;
      for (int x = 0; x < width && fit; x += columns) {
        int begin = 1 << 30, end = 0;
        for (const GroupTables& group : groups) {
          const int half = &group != &groups.front() ? group.half_width : 0;
          const int first = x >> half;
          const int last = std::min((x + columns) >> half, group.columns()) - 1;
          const auto place = [&](int i) { return group.constants.across.first(i) / 4 * 4; };
          if (first > last) continue;
          begin = std::min(begin, place(first));
          end = std::max(end, place(last) + 4 * group.across.quads);
        }
        fit = end - begin <= kTileColumns;
      }
      if (fit) return columns;
      if (columns == 2) break;
    }
    return 0;
  }

  /// The lines of RGB: luma, and the differences of two colours to it, of which chroma are
  /// multiples. False if they are not.
  bool find_lines() {
    const auto found =
        channels(ConstImageView{conversion_.source, 1, 1, {{{kAnywhere.data(), 0}}}});
    const auto place = [&](std::size_t k) { return found[k].data - kAnywhere.data(); };
    order_ = place(0) < place(2) ? std::array{0, 1, 2} : std::array{2, 1, 0};
    alpha_first_ = std::min(place(0), place(2)) > 0;
    const LinearForm& luma = samples_.form(0);
    const auto real = [](const LinearForm& form, int k) {
      return static_cast<double>(form.coefficients[static_cast<std::size_t>(k)]) /
             static_cast<double>(form.denominator);
    };
    double whole = 0;
    for (std::size_t i = 0; i < 3; ++i) {
      const double factor = real(luma, order_[i]);
      if (factor < 0) return false;
      whole += 255 * factor;
      // The byte is 256^i times larger in its place.
      luma_[i] = std::ldexp(static_cast<float>(factor) * kByteWeight, -8 * static_cast<int>(i));
    }
    // Around 0 numbers are half as large, and so are their errors.
    const auto middle = static_cast<float>(whole / 2);
    middle_ = middle * static_cast<float>(kSumUnit);
    const double luma_error = 5 * kFloatUnit * whole;
    const LineSize size{whole / 2 + 1, luma_error + kFloatUnit * whole, double{middle}};
    outputs_[0] = make_output(0, 0, size, 1);
    if (groups_.size() == 1) return true;
    for (const std::size_t line : {std::size_t{1}, std::size_t{2}}) {
      const int colour = order_[line == 1 ? 0 : 2];
      // U has the difference of blue, V that of red.
      const std::size_t channel = colour == 2 ? 1 : 2;
      const LinearForm& form = samples_.form(channel);
      const int other = 2 - colour;
      const auto at = [](const LinearForm& of, int k) {
        return Int128{of.coefficients[static_cast<std::size_t>(k)]};
      };
      if (at(form, other) * at(luma, 1) != at(form, 1) * at(luma, other)) return false;
      const double factor = -real(form, 1) / real(luma, 1);
      const double difference = real(form, colour) / factor + real(luma, colour);
      difference_[line - 1] =
          std::ldexp(static_cast<float>(difference) * kByteWeight, line == 1 ? 0 : -16);
      // Of the colour itself the line has less.
      const double own = difference - real(luma, colour);
      const double others = real(luma, 1) + real(luma, other);
      const double largest = 255 * std::max(std::abs(own), others);
      const double error = luma_error + kFloatUnit * (510 * std::abs(difference) + largest);
      outputs_[line] = make_output(1, channel, {largest, error, 0}, factor);
    }
    return true;
  }

  /// A line as a channel of the target, with what its value may be wrong by. A weight is wrong by
  /// half the distance of floats, and each step of a sum by as much of what it has come to.
  TileOutput make_output(std::size_t group, std::size_t channel, const LineSize& line,
                         double factor) const {
    const LinearForm& form = samples_.form(channel);
    const double offset = static_cast<double>(form.offset) / static_cast<double>(form.denominator) +
                          0.5 + factor * line.middle;
    TileOutput result{};
    result.channel = static_cast<int>(channel);
    const std::int64_t divisor = groups_[group].divisor;
    if (divisor > 0) {
      result.factor = 1.0F / static_cast<float>(divisor) / static_cast<float>(kSumUnit);
      result.offset = static_cast<float>(offset + 0.25 / static_cast<double>(divisor));
      return result;
    }
    const AxisFloats& across = groups_[group].constants.across;
    const AxisFloats& down = groups_[group].constants.down;
    // Where products are rounded too, that is as much as another weight's rounding.
    const double down_error = down.amplitude * line.error +
                              kFloatUnit * line.largest * (growth(down) + 2 * down.amplitude);
    // Four sums, which are added up in two steps.
    const double of_sum = line.largest * down.amplitude * across.amplitude;
    const double across_error =
        across.amplitude * down_error + kFloatUnit * of_sum * (groups_[group].across.quads + 4);
    const double size = std::abs(offset) + 256 + std::abs(factor) * of_sum;
    const double error = 1.01 * (std::abs(factor) * across_error + 3 * kFloatUnit * size);
    result.factor = static_cast<float>(factor / kSumUnit);
    result.offset = static_cast<float>(offset + error);
    result.window = static_cast<float>(2 * error);
    return result;
  }

  /// The largest sum of what the steps of a sum come to, where samples are 1 or -1.
  static double growth(const AxisFloats& axis) {
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

  cudaError_t enqueue_kernel(const CudaFrame& frame, int row_begin, int row_end,
                             cudaStream_t stream) const override {
    if (!is_filled(frame.target)) {
      const cudaError_t error = enqueue_rest(frame, row_begin, row_end, stream);
      if (error != cudaSuccess) return error;
    }
    if (!rgb_) return enqueue_planes(frame, row_begin, row_end, stream);
    return groups_.size() > 1 ? enqueue_rgb<true>(frame, row_begin, row_end, stream)
                              : enqueue_rgb<false>(frame, row_begin, row_end, stream);
  }

  cudaError_t load_kernel() const override {
    const cudaError_t error = cuda::load<Residency::kAny, ScaleRest>();
    if (error != cudaSuccess) return error;
    if (!rgb_) return load_tile<PlaneTileSource>();
    return groups_.size() > 1 ? load_tile<RgbTileSource<true>>()
                              : load_tile<RgbTileSource<false>>();
  }
  template <typename Source>
  cudaError_t load_tile() const {
    return slots_ == kFewSlots ? load_tiles<ScaleTile<Source, kFewSlots>>()
                               : load_tiles<ScaleTile<Source, kMostSlots>>();
  }

  /// Whether tiles make all of it.
  bool is_filled(const ImageView& target) const {
    return conversion_.scaling->place == Rect{0, 0, target.width, target.height} &&
           (info(target.format).gray || groups_.size() > 1);
  }

  void set_places(ScalePlace (&places)[2]) const {
    const Rect& place = conversion_.scaling->place;
    const PixelFormatInfo& target = info(conversion_.target);
    const int across = target.chroma_half_width ? 1 : 0;
    const int down = target.chroma_half_height ? 1 : 0;
    places[0] = {place.x, place.y, place.width, place.height};
    places[1] = {place.x >> across, place.y >> down, (place.width + across) >> across,
                 (place.height + down) >> down};
  }

  cudaError_t enqueue_rest(const CudaFrame& frame, int row_begin, int row_end,
                           cudaStream_t stream) const {
    const PixelFormatInfo& target = info(conversion_.target);
    ScaleRest body{};
    locate(frame.target, body.to);
    set_places(body.places);
    std::ranges::copy(background_, body.background);
    body.has_chroma = groups_.size() > 1;
    const int down = target.chroma_half_height ? 1 : 0;
    body.luma_begin = row_begin;
    body.luma_rows = row_end - row_begin;
    body.chroma_begin = row_begin >> down;
    const int chroma_rows = target.gray ? 0 : ((row_end + down) >> down) - body.chroma_begin;
    return launch<Residency::kAny>(frame.target.width, body.luma_rows + chroma_rows, 1, stream,
                                   body);
  }

  /// Sets what does not depend on the kind of source. False if no row of the place is made.
  template <typename Body>
  bool set_up(Body& body, const CudaFrame& frame, int row_begin, int row_end) const {
    locate(cropped(frame.source, conversion_.scaling->crop), body.from);
    locate(frame.target, body.to);
    const Rect& place = conversion_.scaling->place;
    const int begin = std::max(row_begin - place.y, 0);
    const int end = std::min(row_end - place.y, place.height);
    if (begin >= end) return false;
    ScalePlace places[2];
    set_places(places);
    assert(frame.constants != nullptr);
    const std::uint8_t* at = frame.constants;
    for (std::size_t g = 0; g < groups_.size(); ++g) {
      TileGroup& group = body.groups[g];
      group = groups_[g].view(at);
      group.place = places[g];
      const int half = groups_[g].half_height;
      group.row_begin = begin >> half;
      group.row_end = (end + half) >> half;
      group.columns = columns_[g];
      group.log2_columns = log2_of(group.columns);
      group.most_rows = groups_[g].down.most_rows(kTurnRows);
    }
    body.line_count = lines_;
    for (std::size_t k = 0; k < 3; ++k) {
      body.outputs[k] = outputs_[k];
      body.exact[k] = samples_.sum_form(k);
    }
    return true;
  }

  /// How many rows tiles have, so that there are about `blocks` of them on the device at once.
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

  template <bool kHasChroma>
  cudaError_t enqueue_rgb(const CudaFrame& frame, int row_begin, int row_end,
                          cudaStream_t stream) const {
    using Source = RgbTileSource<kHasChroma>;
    const auto enqueue = [&]<int kSlots>(ScaleTile<Source, kSlots> body) {
      if (!set_up(body, frame, row_begin, row_end)) return cudaSuccess;
      for (std::size_t i = 0; i < 3; ++i) {
        body.source.bytes[i] = body.from[order_[i]];
        body.source.luma[i] = luma_[i];
      }
      body.source.middle = middle_;
      body.source.pixels = body.source.bytes[0].data - (alpha_first_ ? 1 : 0);
      body.source.alpha_first = alpha_first_;
      std::ranges::copy(difference_, body.source.difference);
      const std::ptrdiff_t pitch = body.source.bytes[0].pitch;
      body.source.pitch = static_cast<int>(pitch);
      const auto place =
          reinterpret_cast<std::uintptr_t>(body.source.pixels) | static_cast<std::uintptr_t>(pitch);
      const bool words = body.source.bytes[0].step == 4 && body.source.pitch == pitch;
      body.source.way = words && place % 16 == 0  ? Source::Way::kFour
                        : words && place % 4 == 0 ? Source::Way::kWords
                                                  : Source::Way::kBytes;
      TileGroup& luma = body.groups[0];
      const int across = ceil_div(luma.across.samples, luma.columns);
      const int rows = luma.row_end - luma.row_begin;
      const cudaError_t error = find_rows(across * rows, body.kBlocks, luma.rows);
      if (error != cudaSuccess) return error;
      if (kHasChroma) body.groups[1].rows = luma.rows >> groups_[1].half_height;
      body.luma_blocks = static_cast<unsigned>(ceil_div(rows, luma.rows));
      const std::size_t doubts =
          doubt_bytes(luma, 1) + (kHasChroma ? doubt_bytes(body.groups[1], 2) : 0);
      return launch_tiles(dim3(static_cast<unsigned>(across), body.luma_blocks),
                          line_bytes() + doubts, stream, body);
    };
    return slots_ == kFewSlots ? enqueue(ScaleTile<Source, kFewSlots>{})
                               : enqueue(ScaleTile<Source, kMostSlots>{});
  }

  cudaError_t enqueue_planes(const CudaFrame& frame, int row_begin, int row_end,
                             cudaStream_t stream) const {
    using Way = PlaneTileSource::Way;
    const auto enqueue = [&]<int kSlots>(ScaleTile<PlaneTileSource, kSlots> body) {
      if (!set_up(body, frame, row_begin, row_end)) return cudaSuccess;
      std::ranges::copy(body.from, body.source.planes);
      const auto& [y, u, v] = body.from;
      const auto place = [](const Samples2d<const std::uint8_t>& plane) {
        const bool short_pitch = plane.pitch == static_cast<int>(plane.pitch);
        return reinterpret_cast<std::uintptr_t>(plane.data) |
               static_cast<std::uintptr_t>(plane.pitch) | (short_pitch ? 0U : 1U);
      };
      for (std::size_t k = 0; k < 3; ++k) {
        body.source.pitches[k] = static_cast<int>(body.from[k].pitch);
      }
      body.source.ways[0] = y.step == 1 && place(y) % 4 == 0 ? Way::kFour : Way::kBytes;
      body.source.ways[1] =
          u.step == 1 && v.step == 1 && (place(u) | place(v)) % 4 == 0 ? Way::kFour
          : u.step == 2 && v.data == u.data + 1 && place(u) % 8 == 0   ? Way::kPairs
                                                                       : Way::kBytes;
      int across[2] = {0, 0}, rows[2] = {0, 0};
      for (std::size_t g = 0; g < groups_.size(); ++g) {
        const TileGroup& group = body.groups[g];
        across[g] = ceil_div(group.across.samples, group.columns);
        rows[g] = group.row_end - group.row_begin;
      }
      int tile_rows = 0;
      const cudaError_t error =
          find_rows(across[0] * rows[0] + across[1] * rows[1], body.kBlocks, tile_rows);
      if (error != cudaSuccess) return error;
      for (TileGroup& group : body.groups) group.rows = tile_rows;
      body.luma_blocks = static_cast<unsigned>(ceil_div(rows[0], tile_rows));
      const auto chroma_blocks = static_cast<unsigned>(ceil_div(rows[1], tile_rows));
      std::size_t doubts = doubt_bytes(body.groups[0], 1);
      if (chroma_blocks > 0) doubts = std::max(doubts, doubt_bytes(body.groups[1], 2));
      return launch_tiles(dim3(static_cast<unsigned>(std::max(across[0], across[1])),
                               body.luma_blocks + chroma_blocks),
                          line_bytes() + doubts, stream, body);
    };
    return slots_ == kFewSlots ? enqueue(ScaleTile<PlaneTileSource, kFewSlots>{})
                               : enqueue(ScaleTile<PlaneTileSource, kMostSlots>{});
  }

  static constexpr std::array<std::uint8_t, 16> kAnywhere{};

  const Conversion conversion_;
  const bool rgb_;
  const std::array<std::uint8_t, 3> background_;
  const ScaledSamples samples_;
  std::vector<GroupTables> groups_;  // luma, chroma
  bool fits_ = true;
  int slots_ = 1;
  std::array<int, 2> columns_{};  // of a tile
  int lines_ = 0;                 // in shared memory
  std::array<TileOutput, 3> outputs_{};
  // Of RGB: the channels in the order of memory, and the factors of RgbTileSource.
  std::array<int, 3> order_{};
  bool alpha_first_ = false;
  std::array<float, 3> luma_{};
  float middle_ = 0;
  std::array<float, 2> difference_{};
};

}  // namespace

std::unique_ptr<const CudaConverter> make_cuda_scale_tile_converter(const Conversion& conversion) {
  auto converter = std::make_unique<ScaleTileConverter>(conversion);
  if (!converter->fits()) return nullptr;
  return converter;
}

}  // namespace framelane
