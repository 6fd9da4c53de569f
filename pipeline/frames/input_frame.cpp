#include "pipeline/frames/input_frame.hpp"

#include "pipeline/base/failure.hpp"

namespace framelane {

void require_unspoiled(const InputFrame& frame) {
  if (frame.spoiled == nullptr || !*frame.spoiled) return;
  throw FeedError(FeedFault::kMemory,
                  "the producer's shared memory has changed under frames that were in use, and "
                  "they are not delivered: it was truncated, or /dev/shm is full, or the producer "
                  "was left because frames did not come back");
}

}  // namespace framelane
