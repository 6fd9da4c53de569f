#include "pipeline/encode/frame_format.hpp"

namespace framelane {
namespace {

/// An unknown shape counts as square, as for players. FFmpeg 7 gives the last frames before a new
/// format the shape of those after it, if their own is unknown.
AVRational shape(AVRational ratio) {
  return ratio.num > 0 && ratio.den > 0 ? ratio : AVRational{1, 1};
}

}  // namespace

bool operator==(const FrameFormat& a, const FrameFormat& b) {
  const auto equal = [](AVRational x, AVRational y) { return x.num == y.num && x.den == y.den; };
  return a.layout == b.layout && a.width == b.width && a.height == b.height && a.color == b.color &&
         equal(a.time_base, b.time_base) &&
         equal(shape(a.sample_aspect_ratio), shape(b.sample_aspect_ratio)) && a.memory == b.memory;
}

Conversion conversion_between(const FrameFormat& source, const FrameFormat& target,
                              const std::optional<Scaling>& scaling) {
  return {source.width,  source.height, source.layout, source.color,
          target.layout, target.color,  scaling};
}

}  // namespace framelane
