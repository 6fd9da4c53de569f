#include "pipeline/output/io_error.hpp"

#include <cerrno>

extern "C" {
#include <libavutil/error.h>
}

#include "pipeline/av/av_error.hpp"

namespace framelane {

void throw_io_error(int averror, const std::string& message) {
  if (averror == AVERROR(ENOSPC) || averror == AVERROR(EDQUOT)) throw DiskFull(message);
  throw IoError(io_fault_from_averror(averror), message);
}

}  // namespace framelane
