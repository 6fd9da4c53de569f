#pragma once

#include "pipeline/encode/encode_options.hpp"

namespace framelane::testing {

/// FFmpeg's encoder of raw video, which copies pictures, with one thread. With frame threads,
/// ThreadSanitizer does not see how FFmpeg counts references to the pictures. It would find a race
/// in each byte, and to suppress them all takes longer than a conversion may.
inline CodecCandidate raw_encoder() { return {"rawvideo", {{"threads", "1"}}}; }

}  // namespace framelane::testing
