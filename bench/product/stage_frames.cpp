#include "bench/product/stage_frames.hpp"

#include <utility>

namespace framelane::bench {

StageFrames::StageFrames(std::vector<Conversion> conversions)
    : conversions_(std::move(conversions)) {}

void StageFrames::make(int count) {
  if (static_cast<std::size_t>(count) <= frames_.size()) return;
  const Conversion& any = conversions_.front();
  frames_.clear();  // their buffers are used again
  frames_ = make_frames(pool_, any.source, {"", any.width, any.height}, count);
  for (std::size_t i = results_.size(); i < frames_.size(); ++i) {
    std::vector<PlainImage> results;
    for (const Conversion& conversion : conversions_) {
      results.push_back(reference_result(conversion, as_const(frames_[i].image)));
    }
    results_.push_back(std::move(results));
  }
}

}  // namespace framelane::bench
