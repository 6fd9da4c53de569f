#include "pipeline/encode/frame_format.hpp"

namespace framelane {

bool operator==(const FrameFormat& a, const FrameFormat& b) {
  const auto equal = [](AVRational x, AVRational y) { return x.num == y.num && x.den == y.den; };
  return a.layout == b.layout && a.width == b.width && a.height == b.height && a.color == b.color &&
         equal(a.time_base, b.time_base) && equal(a.sample_aspect_ratio, b.sample_aspect_ratio) &&
         a.memory == b.memory;
}

Conversion conversion_between(const FrameFormat& source, const FrameFormat& target) {
  return {source.width, source.height, source.layout, source.color, target.layout, target.color};
}

}  // namespace framelane
