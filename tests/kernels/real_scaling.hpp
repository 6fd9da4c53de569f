#pragma once

#include <cstdint>
#include <vector>

#include "kernels/axis_filter.hpp"
#include "kernels/conversion.hpp"
#include "kernels/image_view.hpp"

namespace framelane {

inline constexpr ScaleFilter kScaleFilters[] = {ScaleFilter::kBicubic, ScaleFilter::kSpline36,
                                                ScaleFilter::kBilinear, ScaleFilter::kArea};

/// The weights of all of the source's samples in the target's sample i, in real numbers, by the
/// filters as textbooks give them. For sizes that differ.
std::vector<long double> real_weights(const AxisFilter::Shape& shape, int i);

/// Sample (x, y) of the target's channel (0: Y, 1: U, 2: V), in real numbers and not rounded. The
/// conversion has a scaling, without a crop and with the target as the place, whose sizes differ
/// from those of the source as it is turned.
long double real_sample(const Conversion& conversion, const ConstImageView& source,
                        std::size_t channel, int x, int y);

}  // namespace framelane
