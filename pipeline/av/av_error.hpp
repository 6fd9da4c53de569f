#pragma once

#include <string>

#include "pipeline/base/failure.hpp"

namespace framelane {

/// FFmpeg's text for an error code.
std::string av_error_text(int error);

/// What kind of fault an FFmpeg error code of an open, read or write stands for.
IoFault io_fault_from_averror(int error);

}  // namespace framelane
