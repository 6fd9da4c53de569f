#pragma once

#include <memory>
#include <string>
#include <vector>

#include "pipeline/encode/encode_plan.hpp"

namespace framelane::testing {

FrameFormat bgra_source();
FrameFormat yuv_source(PixelFormat layout = PixelFormat::kI420, Range range = Range::kLimited);

EncodeOptions encode_with(std::vector<CodecCandidate> codecs);

std::shared_ptr<EncodePlan> plan_for(const EncodeOptions& options, const FrameFormat& source);

/// The reason why no plan can be made; empty if one can be made. Expects that the configuration is
/// at fault.
std::string refusal(const EncodeOptions& options, const FrameFormat& source);

}  // namespace framelane::testing
