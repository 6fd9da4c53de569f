#include "kernels/plane_copy.hpp"

#include <cstring>

namespace framelane {
namespace {

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

}  // namespace

std::unique_ptr<const Converter> make_plane_copy() { return std::make_unique<PlaneCopy>(); }

}  // namespace framelane
