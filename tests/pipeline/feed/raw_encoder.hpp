#pragma once

#include "pipeline/encode/encode_options.hpp"

namespace framelane::testing {

/// FFmpeg's encoder of raw video, which copies pictures in frame threads. Under ThreadSanitizer it
/// has one thread: that does not see how FFmpeg counts references to pictures, and would find a
/// race in each byte. Suppressing them all takes so long that conversions miss their deadline.
inline CodecCandidate raw_encoder() {
#ifdef __SANITIZE_THREAD__
  return {"rawvideo", {{"threads", "1"}}};
#else
  return {"rawvideo"};
#endif
}

}  // namespace framelane::testing
