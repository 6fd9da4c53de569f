#include "kernels/scaler.hpp"

#include <algorithm>
#include <array>
#include <cassert>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "kernels/axis_floats.hpp"
#include "kernels/channel.hpp"
#include "kernels/picture_part.hpp"
#include "kernels/row_kernels.hpp"
#include "kernels/scale_kernels.hpp"
#include "kernels/scaled_reference.hpp"

namespace framelane {
namespace {

constexpr std::size_t kMostLines = 3;
/// Columns of the target that are made at once, and of the source that these need.
constexpr int kTile = 128;
constexpr int kSpan = 1536;
constexpr int kMostStep = 4;
constexpr std::size_t kLine = kSpan + kFloatSlack;
/// What rows of the source become before they are filtered: as many rows at once as there is room
/// for.
constexpr std::size_t kSourceFloats = 32 * kLine;

/// Where a line's numbers come from: a plane, and what is taken of each of its pixels.
struct LinePlan {
  std::size_t term = 0;
  std::size_t channel = 0;  // one that lies there
  int step = 1;             // bytes of a pixel
  std::size_t place = 0;    // of the channel in its pixel
  std::array<float, kMostStep> factors{1, 0, 0, 0};
};

struct TermPlan {
  AxisFloats across, down;
};

/// One grid of the target: luma, or both of chroma.
struct GroupPlan {
  std::size_t target_channel = 0;  // the first of its channels
  WholeNumbers whole;
  std::vector<TermPlan> terms;
  std::vector<LinePlan> lines;
  struct Output {
    std::size_t channel;
    std::array<std::size_t, kMostLines> lines{};
    ScaleForm form;
  };
  std::vector<Output> outputs;
};

using SourceChannels = std::array<ConstChannel, 3>;
using Lines = std::array<float, kMostRows * kLine>;
using TileRows = std::array<std::uint8_t, kMostRows * std::size_t{kTile}>;

// The buffers for one tile. They are on the stack, so that any number of threads may run: a thread
// that scales needs half a megabyte there, a sixteenth of what threads have unless they are given
// less.
struct Scratch {
  std::array<std::uint8_t, kSpan * std::size_t{kMostStep}> pixels;
  alignas(64) std::array<float, kSourceFloats> source;
  alignas(64) Lines rows;
  alignas(64) Lines columns;
  alignas(64) std::array<std::array<float, kMostRows * std::size_t{kTile}>, kMostLines> filtered;
  alignas(64) std::array<TileRows, 2> codes;
  std::array<std::uint16_t, kMostRows * std::size_t{kTile}> doubtful;
};

static_assert(sizeof(Scratch) / 1024 < 512);

class Scaler final : public Converter {
 public:
  Scaler(const Conversion& conversion, const ScaleKernels& kernels, const RowKernels& row_kernels)
      : conversion_(conversion),
        scaling_(*conversion.scaling),
        background_(background_codes(conversion)),
        kernels_(kernels),
        row_kernels_(row_kernels),
        samples_(conversion),
        luma_(make_group({0})),
        chroma_(make_group({1, 2})) {}

  void run(const ConstImageView& source, const ImageView& target, int row_begin,
           int row_end) const override {
    fill_background(scaling_.place, background_, target, row_begin, row_end);
    const auto from = turned(channels(cropped(source, scaling_.crop)), scaling_.orientation);
    const ImageView to = cropped(target, scaling_.place);
    const int begin = std::max(row_begin - scaling_.place.y, 0);
    const int end = std::min(row_end - scaling_.place.y, scaling_.place.height);
    if (begin >= end) return;
    Scratch scratch;
    const PixelFormatInfo& format = info(target.format);
    run_group(luma_, from, to, begin, end, scratch);
    if (format.gray) return;
    const int half = format.chroma_half_height ? 1 : 0;
    run_group(chroma_, from, to, begin >> half, (end + half) >> half, scratch);
  }

  const char* name() const override { return "scaler"; }

 private:
  GroupPlan make_group(const std::vector<std::size_t>& target_channels) const;
  void add_lines(GroupPlan& group, const std::vector<std::size_t>& target_channels) const;
  static ScaleForm make_form(const GroupPlan& group, const LinearForm& form,
                             const std::array<std::size_t, kMostLines>& lines,
                             const std::vector<double>& factors);
  static int columns_at_once(const GroupPlan& group, int x, int width);
  void run_group(const GroupPlan& group, const SourceChannels& source, const ImageView& target,
                 int row_begin, int row_end, Scratch& scratch) const;
  void filter_down(const LinePlan& line, const AxisFloats& down, const ConstChannel& pixels, int y,
                   int rows, int x, std::size_t count, Scratch& scratch) const;
  void store(const GroupPlan& group, const SourceChannels& source, const ImageView& target, int y,
             int rows, int x, int count, Scratch& scratch) const;

  const Conversion conversion_;
  const Scaling scaling_;
  const std::array<std::uint8_t, 3> background_;
  const ScaleKernels& kernels_;
  const RowKernels& row_kernels_;
  const ScaledSamples samples_;
  const GroupPlan luma_, chroma_;
};

/// Where a channel's samples lie in their plane's pixels.
struct ChannelPlace {
  int step;
  std::size_t offset;
};

ChannelPlace place_of(PixelFormat format, std::size_t channel) {
  static constexpr std::array<std::uint8_t, 16> kAnywhere{};
  ConstImageView image{format, 2, 2, {}};
  for (std::size_t i = 0; i < kMaxPlanes; ++i) image.planes[i] = {kAnywhere.data() + 4 * i, 0};
  const ConstChannel found = channels(image)[channel];
  return {found.step, static_cast<std::size_t>(found.data - kAnywhere.data()) % 4};
}

GroupPlan Scaler::make_group(const std::vector<std::size_t>& target_channels) const {
  GroupPlan group;
  group.target_channel = target_channels.front();
  group.whole = whole_numbers(samples_, group.target_channel);
  for (const ScaleTerm& term : samples_.terms(group.target_channel)) {
    group.terms.push_back(
        {AxisFloats(term.across, group.whole.across), AxisFloats(term.down, group.whole.down)});
  }
  if (!group.terms.empty()) {
    add_lines(group, target_channels);
  } else {
    for (const std::size_t k : target_channels) group.outputs.push_back({k, {}, {}});
  }
  return group;
}

void Scaler::add_lines(GroupPlan& group, const std::vector<std::size_t>& target_channels) const {
  const ScaleTerms& exact = samples_.terms(target_channels.front());
  const auto factor = [](const LinearForm& form, std::size_t k) {
    return static_cast<double>(form.coefficients[k]) / static_cast<double>(form.denominator);
  };
  if (info(conversion_.source).rgb) {
    // Of packed pixels a line is what the target's channel is made of.
    for (const std::size_t target : target_channels) {
      const LinearForm& form = samples_.form(target);
      LinePlan line{.factors = {}};
      for (std::size_t k = 0; k < 3; ++k) {
        const ChannelPlace place = place_of(conversion_.source, k);
        line.step = place.step;
        if (k == line.channel) line.place = place.offset;
        line.factors[place.offset] = static_cast<float>(factor(form, k));
      }
      group.lines.push_back(line);
      GroupPlan::Output output{target, {group.lines.size() - 1}, {}};
      output.form = make_form(group, form, output.lines, {1});
      group.outputs.push_back(output);
    }
    return;
  }
  std::array<std::size_t, 3> line_of{};
  for (std::size_t t = 0; t < exact.size(); ++t) {
    for (int c = 0; c < exact[t].channels; ++c) {
      const auto k = static_cast<std::size_t>(exact[t].first_channel) + static_cast<std::size_t>(c);
      const ChannelPlace place = place_of(conversion_.source, k);
      LinePlan line{.term = t, .channel = k, .step = place.step, .place = place.offset};
      if (line.step > 1) {
        line.factors = {};
        line.factors[place.offset] = 1;
      }
      line_of[k] = group.lines.size();
      group.lines.push_back(line);
    }
  }
  for (const std::size_t target : target_channels) {
    const LinearForm& form = samples_.form(target);
    GroupPlan::Output output{target, {}, {}};
    std::vector<double> factors;
    for (std::size_t k = 0; k < 3; ++k) {
      if (form.coefficients[k] == 0) continue;
      output.lines[factors.size()] = line_of[k];
      factors.push_back(factor(form, k));
    }
    output.form = make_form(group, form, output.lines, factors);
    group.outputs.push_back(output);
  }
}

/// The form in floats, with what its value may be wrong by: the error of each sum is at most the
/// number of its roundings, times half the distance of floats, times the sum of its absolute terms.
ScaleForm Scaler::make_form(const GroupPlan& group, const LinearForm& form,
                            const std::array<std::size_t, kMostLines>& lines,
                            const std::vector<double>& factors) {
  ScaleForm result;
  result.inputs = factors.size();
  const double offset = static_cast<double>(form.offset) / static_cast<double>(form.denominator);
  if (const std::int64_t divisor = group.whole.divisor(); divisor > 0) {
    result.factors[0] = 1.0F / static_cast<float>(divisor);
    result.offset = static_cast<float>(offset + 0.25 / static_cast<double>(divisor));
    return result;
  }
  double size = std::abs(offset) + 1;
  double error = 0;
  for (std::size_t i = 0; i < factors.size(); ++i) {
    const LinePlan& line = group.lines[lines[i]];
    const auto& [across, down] = group.terms[line.term];
    double amplitude = 0;
    for (const float f : line.factors) amplitude += std::abs(double{f});
    double line_size = 255 * amplitude;
    double line_error = (kMostStep + 1) * kFloatUnit * line_size;
    line_size *= down.amplitude;
    line_error = down.amplitude * line_error + (down.table.taps() + 1) * kFloatUnit * line_size;
    line_size *= across.amplitude;
    line_error = across.amplitude * line_error + (across.table.taps() + 2) * kFloatUnit * line_size;
    result.factors[i] = static_cast<float>(factors[i]);
    size += std::abs(factors[i]) * line_size;
    error += std::abs(factors[i]) * line_error;
  }
  error = 1.01 * (error + static_cast<double>(factors.size() + 3) * kFloatUnit * size);
  result.offset = static_cast<float>(offset);
  result.doubt = static_cast<float>(0.5 - error);
  return result;
}

void Scaler::run_group(const GroupPlan& group, const SourceChannels& source,
                       const ImageView& target, int row_begin, int row_end,
                       Scratch& scratch) const {
  const int width = channels(target)[group.target_channel].width;
  std::array<const float*, kMostRows> rows_of_numbers{};
  for (int y = row_begin; y < row_end; y += kernels_.rows) {
    const int rows = std::min(kernels_.rows, row_end - y);
    for (int r = 0; r < kernels_.rows; ++r) {
      rows_of_numbers[static_cast<std::size_t>(r)] =
          scratch.rows.data() + static_cast<std::size_t>(std::min(r, rows - 1)) * kLine;
    }
    for (int x = 0, count = 0; x < width; x += count) {
      count = columns_at_once(group, x, width);
      for (std::size_t i = 0; i < group.lines.size(); ++i) {
        const LinePlan& line = group.lines[i];
        const auto& [across, down] = group.terms[line.term];
        ConstChannel pixels = source[line.channel];
        pixels.data -= line.place;
        const auto span = static_cast<std::size_t>(across.span(x, count));
        filter_down(line, down, pixels, y, rows, across.first(x), span, scratch);
        kernels_.transpose(rows_of_numbers.data(), scratch.columns.data(), span);
        kernels_.filter_across(scratch.columns.data(), across.first(x),
                               across.table.first().data() + x, across.of(x), across.table.taps(),
                               scratch.filtered[i].data(), static_cast<std::size_t>(count));
      }
      store(group, source, target, y, rows, x, count, scratch);
    }
  }
}

/// As many as kSpan columns of the source are enough for.
int Scaler::columns_at_once(const GroupPlan& group, int x, int width) {
  int count = std::min(kTile, width - x);
  for (const TermPlan& term : group.terms) {
    while (count > 1 && term.across.span(x, count) > kSpan) count = (count + 1) / 2;
  }
  return count;
}

/// Columns [x, x + count) of the source become scratch.rows, one for each row of the target from y
/// on. `pixels`: the channel whose samples are the line's pixels.
void Scaler::filter_down(const LinePlan& line, const AxisFloats& down, const ConstChannel& pixels,
                         int y, int rows, int x, std::size_t count, Scratch& scratch) const {
  const std::size_t pitch = (count + 2 * kFloatSlack - 1) / kFloatSlack * kFloatSlack;
  const int room = static_cast<int>(kSourceFloats / pitch);
  const int taps = down.table.taps();
  const int end = down.first(y + rows - 1) + taps;
  for (int from = down.first(y); from < end; from += room) {
    const int to = std::min(from + room, end);
    for (int row = from; row < to; ++row) {
      const std::uint8_t* data = &pixels.at(x, row);
      if (pixels.step != line.step) {
        for (std::size_t i = 0; i < count; ++i, data += pixels.step) {
          std::memcpy(scratch.pixels.data() + i * static_cast<std::size_t>(line.step), data,
                      static_cast<std::size_t>(line.step));
        }
        data = scratch.pixels.data();
      }
      kernels_.load(data, line.step, line.factors.data(),
                    scratch.source.data() + static_cast<std::size_t>(row - from) * pitch, count);
    }
    for (int r = 0; r < rows; ++r) {
      const int first = down.first(y + r);
      const int begin = std::max(first, from);
      const int taps_here = std::min(first + taps, to) - begin;
      if (taps_here <= 0) continue;
      kernels_.filter_down(scratch.source.data() + static_cast<std::size_t>(begin - from) * pitch,
                           pitch, down.of(y + r) + (begin - first), taps_here, begin > first,
                           scratch.rows.data() + static_cast<std::size_t>(r) * kLine, count);
    }
  }
}

void Scaler::store(const GroupPlan& group, const SourceChannels& source, const ImageView& target,
                   int y, int rows, int x, int count, Scratch& scratch) const {
  const auto size = static_cast<std::size_t>(count);
  const auto to = channels(target);
  for (std::size_t i = 0; i < group.outputs.size(); ++i) {
    const GroupPlan::Output& output = group.outputs[i];
    std::uint8_t* const codes = scratch.codes[i].data();
    if (group.lines.empty()) {
      scratch.codes[i].fill(kNeutralChroma);
    } else {
      std::array<const float*, kMostLines> columns{};
      for (std::size_t j = 0; j < output.form.inputs; ++j) {
        columns[j] = scratch.filtered[output.lines[j]].data();
      }
      const std::size_t found =
          kernels_.codes(output.form, columns, codes, kTile, size, scratch.doubtful.data());
      for (std::size_t j = 0; j < found; ++j) {
        const int column = scratch.doubtful[j] / kernels_.rows;
        const int row = scratch.doubtful[j] % kernels_.rows;
        if (row >= rows) continue;
        codes[row * kTile + column] = samples_.at(source, output.channel, x + column, y + row);
      }
    }
    const Channel& channel = to[output.channel];
    for (int r = 0; r < rows && channel.step != 2; ++r) {
      const std::uint8_t* const row = codes + r * kTile;
      if (channel.step == 1) {
        std::memcpy(&channel.at(x, y + r), row, size);
      } else {
        for (int j = 0; j < count; ++j) channel.at(x + j, y + r) = row[j];
      }
    }
  }
  if (const Channel& channel = to[group.target_channel]; channel.step == 2) {
    for (int r = 0; r < rows; ++r) {
      row_kernels_.merge2(scratch.codes[0].data() + r * kTile, scratch.codes[1].data() + r * kTile,
                          &channel.at(x, y + r), size);
    }
  }
}

}  // namespace

std::unique_ptr<const Converter> make_scaler(const Conversion& conversion) {
  const ScaleKernels* kernels = best_scale_kernels();
  const RowKernels* row_kernels = best_row_kernels();
  if (kernels == nullptr || row_kernels == nullptr) return nullptr;
  return std::make_unique<Scaler>(conversion, *kernels, *row_kernels);
}

}  // namespace framelane
