// Longer than 400 lines: the passes of one converter, which share its plans and the rows that it
// keeps.
#include "kernels/scaler.hpp"

#include <hwy/cache_control.h>

#include <algorithm>
#include <array>
#include <cassert>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <map>
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
constexpr int kMostStep = 4;
/// Columns of the target, and of the source, that are made at once at most; and of the source at
/// least, so that rows are read in pieces that are worth it. kMostSpan is enough for the 16 samples
/// of a vector at the farthest reduction: chroma of RGB, 128 columns apart, with 6 * 128 weights.
constexpr int kMostColumns = 1024;
constexpr int kMostSpan = 2816;
constexpr int kLeastSpan = 512;
/// How many of the source's numbers are kept for the next rows of the target: as many as the
/// nearest cache has room for beside all else, if these are enough; and what there is room for in
/// Scratch.
constexpr std::size_t kCachedNumbers = 4 * 1024;
constexpr std::size_t kSourceNumbers = 48 * 1024;
constexpr std::size_t kMostKeptRows = kSourceNumbers / (kLeastSpan + kFloatSlack);
/// Rows of the target whose luma and chroma are made one after the other. Even.
constexpr int kRowsOfBoth = 32;
/// So many rows ahead the source is fetched.
constexpr int kRowsAhead = 2;

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
  // For ScaleKernels::filter_across, unless samples are too far apart for it. Where sizes have a
  // simple ratio, most vectors have the same weights, which are there once: a cache has room for
  // them.
  bool far = false;
  std::vector<std::int32_t> first;
  std::vector<float> weights_across;
  std::vector<std::uint32_t> places;

  TermPlan(const ScaleTerm& term, const WholeNumbers& whole, const ScaleKernels& kernels);
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
  int span = kLeastSpan;  // columns of the source that are made at once
  int kept_rows = 1;      // of the source, for each line
  std::size_t pitch() const { return static_cast<std::size_t>(span) + kFloatSlack; }
};

using SourceChannels = std::array<ConstChannel, 3>;
using TargetChannels = std::array<Channel, 3>;

/// The rows of the source whose numbers are kept: `begin` to `end` - 1, row y in place
/// y % kept_rows.
struct KeptRows {
  int begin = 0;
  int end = 0;
};

// The buffers for one row of a tile. They are on the stack, so that any number of threads may run:
// a thread that scales needs a quarter of a megabyte there.
struct Scratch {
  std::array<std::uint8_t, kMostSpan * std::size_t{kMostStep}> pixels;
  alignas(64) std::array<float, kSourceNumbers> source;
  alignas(64) std::array<float, kMostSpan + kFloatSlack> row;
  alignas(64) std::array<std::array<float, kMostColumns + kFloatSlack>, kMostLines> filtered;
  alignas(64) std::array<std::array<std::uint8_t, kMostColumns>, 2> codes;
  std::array<std::uint16_t, kMostColumns> doubtful;
};

static_assert(sizeof(Scratch) / 1024 < 256);

class Scaler final : public Converter {
 public:
  Scaler(const Conversion& conversion, const ScaleKernels& kernels, const RowKernels& row_kernels)
      : conversion_(conversion),
        scaling_(*conversion.scaling),
        background_(background_codes(conversion)),
        kernels_(kernels),
        row_kernels_(row_kernels),
        samples_(conversion),
        shares_planes_(info(conversion.source).plane_count == 1 || samples_.terms(0).size() > 1),
        luma_(make_group({0})),
        chroma_(make_group({1, 2})) {}

  void run(const ConstImageView& source, const ImageView& target, int row_begin,
           int row_end) const override {
    fill_background(scaling_.place, background_, target, row_begin, row_end);
    const auto from = turned(channels(cropped(source, scaling_.crop)), scaling_.orientation);
    const auto to = channels(cropped(target, scaling_.place));
    const int begin = std::max(row_begin - scaling_.place.y, 0);
    const int end = std::min(row_end - scaling_.place.y, scaling_.place.height);
    if (begin >= end) return;
    Scratch scratch;
    const PixelFormatInfo& format = info(target.format);
    const int half = format.chroma_half_height ? 1 : 0;
    // Where luma and chroma are made of the same bytes, the second finds them in a cache.
    const int rows_at_once = shares_planes_ ? kRowsOfBoth : end - begin;
    for (int y = begin, next = 0; y < end; y = next) {
      next = std::min(y + rows_at_once, end);
      run_group(luma_, from, to, y, next, scratch);
      if (!format.gray) run_group(chroma_, from, to, y >> half, (next + half) >> half, scratch);
    }
  }

  const char* name() const override { return "scaler"; }

 private:
  GroupPlan make_group(const std::vector<std::size_t>& target_channels) const;
  void add_lines(GroupPlan& group, const std::vector<std::size_t>& target_channels) const;
  static ScaleForm make_form(const GroupPlan& group, const LinearForm& form,
                             const std::array<std::size_t, kMostLines>& lines,
                             const std::vector<double>& factors);
  void choose_tiles(GroupPlan& group) const;
  int columns_at_once(const GroupPlan& group, int x, int width) const;
  void run_group(const GroupPlan& group, const SourceChannels& source, const TargetChannels& target,
                 int row_begin, int row_end, Scratch& scratch) const;
  void filter_down(const GroupPlan& group, std::size_t line, const ConstChannel& channel, int y,
                   int x, std::size_t count, KeptRows& kept, Scratch& scratch) const;
  void filter_across(const TermPlan& term, int x, std::size_t count, const float* row,
                     float* to) const;
  void load(const LinePlan& line, const ConstChannel& channel, int x, int row, float* to,
            std::size_t count, Scratch& scratch) const;
  void store(const GroupPlan& group, const SourceChannels& source, const TargetChannels& target,
             int y, int x, int count, Scratch& scratch) const;

  const Conversion conversion_;
  const Scaling scaling_;
  const std::array<std::uint8_t, 3> background_;
  const ScaleKernels& kernels_;
  const RowKernels& row_kernels_;
  const ScaledSamples samples_;
  const bool shares_planes_;
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

TermPlan::TermPlan(const ScaleTerm& term, const WholeNumbers& whole, const ScaleKernels& kernels)
    : across(term.across, whole.across),
      down(term.down, whole.down),
      first(term.across.first().begin(), term.across.first().end()) {
  const auto width = static_cast<std::size_t>(kernels.lanes);
  const auto taps = static_cast<std::size_t>(term.across.taps());
  const std::size_t samples = first.size();
  first.resize((samples + width - 1) / width * width, first.back());
  for (std::size_t x = 0; x < samples; x += width) {
    far = far || first[x + width - 1] - first[x] >= kernels.most_reach();
  }
  if (far) {
    weights_across = across.weights;
    weights_across.resize(weights_across.size() + kFloatSlack);
    return;
  }
  std::map<std::vector<float>, std::uint32_t> known;
  for (std::size_t x = 0; x < samples; x += width) {
    std::vector<float> weights(width * taps);
    for (std::size_t i = 0; i < std::min(width, samples - x); ++i) {
      for (std::size_t j = 0; j < taps; ++j) {
        weights[j * width + i] = across.weights[(x + i) * taps + j];
      }
    }
    const auto [found, is_new] = known.emplace(weights, weights_across.size());
    if (is_new) weights_across.insert(weights_across.end(), weights.begin(), weights.end());
    places.push_back(found->second);
  }
}

GroupPlan Scaler::make_group(const std::vector<std::size_t>& target_channels) const {
  GroupPlan group;
  group.target_channel = target_channels.front();
  group.whole = whole_numbers(samples_, group.target_channel);
  for (const ScaleTerm& term : samples_.terms(group.target_channel)) {
    group.terms.emplace_back(term, group.whole, kernels_);
  }
  if (!group.terms.empty()) {
    add_lines(group, target_channels);
    choose_tiles(group);
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
    const TermPlan& term = group.terms[line.term];
    const AxisFloats& across = term.across;
    const AxisFloats& down = term.down;
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

/// The wider the pieces of the source, the better memory is read; but the numbers that are kept of
/// them should stay in the nearest cache.
void Scaler::choose_tiles(GroupPlan& group) const {
  int taps = 0;
  int least = kLeastSpan;
  for (const TermPlan& term : group.terms) {
    taps = std::max(taps, term.down.table.taps());
    const int samples = term.across.table.samples();
    for (int x = 0; x < samples; x += kernels_.lanes) {
      least = std::max(least, term.across.span(x, std::min(kernels_.lanes, samples - x)));
    }
  }
  assert(least <= kMostSpan);
  const auto fitting = [&](std::size_t numbers, int size) {
    return static_cast<int>(numbers / group.lines.size() / static_cast<std::size_t>(size));
  };
  group.span = (std::clamp(fitting(kCachedNumbers, taps), least, kMostSpan - 15) + 15) / 16 * 16;
  group.kept_rows = std::min(taps, fitting(kSourceNumbers, group.span + kFloatSlack));
}

/// How many of the target's columns group.span columns of the source are enough for: whole vectors,
/// unless the row ends.
int Scaler::columns_at_once(const GroupPlan& group, int x, int width) const {
  int count = std::min(kMostColumns, width - x);
  for (const TermPlan& term : group.terms) {
    while (count > kernels_.lanes && term.across.span(x, count) > group.span) {
      count = (count - 1) / kernels_.lanes * kernels_.lanes;
    }
  }
  return count;
}

void Scaler::run_group(const GroupPlan& group, const SourceChannels& source,
                       const TargetChannels& target, int row_begin, int row_end,
                       Scratch& scratch) const {
  const int width = target[group.target_channel].width;
  for (int x = 0, count = 0; x < width; x += count) {
    count = columns_at_once(group, x, width);
    std::array<KeptRows, kMostLines> kept{};
    for (int y = row_begin; y < row_end; ++y) {
      for (std::size_t i = 0; i < group.lines.size(); ++i) {
        const LinePlan& line = group.lines[i];
        const TermPlan& term = group.terms[line.term];
        filter_down(group, i, source[line.channel], y, term.across.first(x),
                    static_cast<std::size_t>(term.across.span(x, count)), kept[i], scratch);
        filter_across(term, x, static_cast<std::size_t>(count), scratch.row.data(),
                      scratch.filtered[i].data());
      }
      store(group, source, target, y, x, count, scratch);
    }
  }
}

/// Columns [x, x + count) of the source become scratch.row, for the target's row y.
void Scaler::filter_down(const GroupPlan& group, std::size_t line, const ConstChannel& channel,
                         int y, int x, std::size_t count, KeptRows& kept, Scratch& scratch) const {
  const LinePlan& plan = group.lines[line];
  const AxisFloats& down = group.terms[plan.term].down;
  const int rows = group.kept_rows;
  float* const numbers =
      scratch.source.data() + line * static_cast<std::size_t>(rows) * group.pitch();
  const auto place = [&](int row) {
    return numbers + static_cast<std::size_t>(row % rows) * group.pitch();
  };
  const int first = down.first(y);
  const int end = first + down.table.taps();
  std::array<const float*, kMostKeptRows> parts;
  for (int from = first; from < end; from += rows) {
    const int to = std::min(from + rows, end);
    for (int row = from; row < to; ++row) {
      if (row < kept.begin || row >= kept.end) {
        load(plan, channel, x, row, place(row), count, scratch);
      }
      parts[static_cast<std::size_t>(row - from)] = place(row);
    }
    kept = {from, to};
    kernels_.filter_down(parts.data(), down.of(y) + (from - first), to - from, from > first,
                         scratch.row.data(), count);
  }
}

void Scaler::filter_across(const TermPlan& term, int x, std::size_t count, const float* row,
                           float* to) const {
  const int taps = term.across.table.taps();
  const std::int32_t* const first = term.first.data() + x;
  if (term.far) {
    const float* const weights = term.weights_across.data() + std::ptrdiff_t{x} * taps;
    kernels_.filter_across_far(row, first, weights, taps, to, count);
  } else {
    kernels_.filter_across(row, first, term.weights_across.data(),
                           term.places.data() + x / kernels_.lanes, taps, to, count);
  }
}

/// Pixels [x, x + count) of a row become numbers.
void Scaler::load(const LinePlan& line, const ConstChannel& channel, int x, int row, float* to,
                  std::size_t count, Scratch& scratch) const {
  const std::uint8_t* data = &channel.at(x, row) - line.place;
  if (channel.step != line.step) {
    for (std::size_t i = 0; i < count; ++i, data += channel.step) {
      std::memcpy(scratch.pixels.data() + i * static_cast<std::size_t>(line.step), data,
                  static_cast<std::size_t>(line.step));
    }
    data = scratch.pixels.data();
  } else if (row + kRowsAhead < channel.height) {
    const std::uint8_t* const ahead = data + kRowsAhead * channel.pitch;
    const std::size_t bytes = count * static_cast<std::size_t>(line.step);
    for (std::size_t i = 0; i < bytes; i += 64) hwy::Prefetch(ahead + i);
  }
  kernels_.load(data, line.step, line.factors.data(), to, count);
}

void Scaler::store(const GroupPlan& group, const SourceChannels& source,
                   const TargetChannels& target, int y, int x, int count, Scratch& scratch) const {
  const auto size = static_cast<std::size_t>(count);
  for (std::size_t i = 0; i < group.outputs.size(); ++i) {
    const GroupPlan::Output& output = group.outputs[i];
    const Channel& channel = target[output.channel];
    std::uint8_t* const codes = channel.step == 1 ? &channel.at(x, y) : scratch.codes[i].data();
    if (group.lines.empty()) {
      std::fill_n(codes, size, kNeutralChroma);
    } else {
      std::array<const float*, kMostLines> lines{};
      for (std::size_t j = 0; j < output.form.inputs; ++j) {
        lines[j] = scratch.filtered[output.lines[j]].data();
      }
      const std::size_t found =
          kernels_.codes(output.form, lines, codes, size, scratch.doubtful.data());
      for (std::size_t j = 0; j < found; ++j) {
        const int column = scratch.doubtful[j];
        codes[column] = samples_.at(source, output.channel, x + column, y);
      }
    }
    if (channel.step > 2) {
      for (int j = 0; j < count; ++j) channel.at(x + j, y) = codes[j];
    }
  }
  if (const Channel& channel = target[group.target_channel]; channel.step == 2) {
    row_kernels_.merge2(scratch.codes[0].data(), scratch.codes[1].data(), &channel.at(x, y), size);
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
