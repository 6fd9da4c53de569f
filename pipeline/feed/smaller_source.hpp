#pragma once

#include <span>
#include <string>

#include "kernels/conversion.hpp"
#include "pipeline/feed/feed_options.hpp"

namespace framelane {

/// What would spare a live feed most of its work: "decodes 1920x1080, and its largest encode shows
/// 640x360: …". Decoding costs as much as the source's pictures are large, so this is empty unless
/// each encode shows a third at most, in both directions, of the part that it takes of a picture.
/// `conversions`: of all encodes that decode and are not down.
std::string smaller_source_advice(const FeedOptions& options,
                                  std::span<const Conversion> conversions);

}  // namespace framelane
