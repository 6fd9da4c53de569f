#pragma once

extern "C" {
#include <libavutil/rational.h>
}

#include "pipeline/base/rational.hpp"

namespace framelane {

inline AVRational to_av(Rational value) { return {value.num, value.den}; }

}  // namespace framelane
