#include "kernels/relayout.hpp"

#include <cassert>
#include <cstring>

#include "kernels/channel.hpp"

namespace framelane {
namespace {

// Steps as constants let the compiler keep the loop free of multiplications.
template <int kFrom, int kTo>
void copy_samples(const std::uint8_t* from, std::uint8_t* to, int count) {
  for (int i = 0; i < count; ++i) to[i * kTo] = from[i * kFrom];
}

void copy_row(const ConstChannel& from, const Channel& to, int y) {
  const std::uint8_t* source = &from.at(0, y);
  std::uint8_t* target = &to.at(0, y);
  const int count = to.width;
  switch (from.step * 10 + to.step) {
    case 11:
      std::memcpy(target, source, static_cast<std::size_t>(count));
      return;
    case 12:
      return copy_samples<1, 2>(source, target, count);
    case 13:
      return copy_samples<1, 3>(source, target, count);
    case 21:
      return copy_samples<2, 1>(source, target, count);
    case 31:
      return copy_samples<3, 1>(source, target, count);
    case 41:
      return copy_samples<4, 1>(source, target, count);
    default:
      for (int x = 0; x < count; ++x) to.at(x, y) = from.at(x, y);
  }
}

class PlaneCopy final : public Converter {
 public:
  void run(const ConstImageView& source, const ImageView& target, int row_begin,
           int row_end) const override {
    const PixelFormatInfo& format = info(target.format);
    for (int plane = 0; plane < format.plane_count; ++plane) {
      const int begin = row_begin >> format.planes[plane].log2_height_step;
      const int end = plane_rows(target.format, plane, row_end);
      const std::size_t bytes = plane_row_bytes(target.format, plane, target.width);
      for (int y = begin; y < end; ++y) {
        std::memcpy(target.row(plane, y), source.row(plane, y), bytes);
      }
    }
  }
  const char* name() const override { return "copy"; }
};

class ChannelCopy final : public Converter {
 public:
  void run(const ConstImageView& source, const ImageView& target, int row_begin,
           int row_end) const override {
    const auto from = channels(source);
    const auto to = channels(target);
    for (std::size_t i = 0; i < to.size(); ++i) {
      if (to[i].data == nullptr) continue;
      const int begin = to[i].half_height ? row_begin / 2 : row_begin;
      const int end = to[i].half_height ? (row_end + 1) / 2 : row_end;
      for (int y = begin; y < end; ++y) copy_row(from[i], to[i], y);
    }
  }
  const char* name() const override { return "relayout"; }
};

}  // namespace

bool is_relayout(const Conversion& conversion) {
  if (is_identity(conversion)) return true;
  const PixelFormatInfo& from = info(conversion.source);
  const PixelFormatInfo& to = info(conversion.target);
  if (from.rgb || to.rgb || conversion.source_color.range != conversion.target_color.range) {
    return false;
  }
  // Gray has no chroma, so its luma is the same in every matrix.
  if (from.gray) return true;
  if (conversion.source_color.matrix != conversion.target_color.matrix) return false;
  return to.gray || (from.chroma_half_width == to.chroma_half_width &&
                     from.chroma_half_height == to.chroma_half_height);
}

std::unique_ptr<const Converter> make_relayout_converter(const Conversion& conversion) {
  assert(is_relayout(conversion) && !why_unsupported(conversion));
  if (conversion.source == conversion.target) return std::make_unique<PlaneCopy>();
  return std::make_unique<ChannelCopy>();
}

}  // namespace framelane
