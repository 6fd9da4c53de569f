#include "pipeline/frames/input_frame.hpp"

#include <utility>

#include "pipeline/base/failure.hpp"

namespace framelane {

void require_unspoiled(const InputFrame& frame) {
  if (frame.loan == nullptr) return;
  std::string why = frame.loan->why_spoiled();
  if (!why.empty()) throw FeedError(FeedFault::kMemory, std::move(why));
}

}  // namespace framelane
