#include "pipeline/output/io_error.hpp"

#include <cerrno>

extern "C" {
#include <libavutil/error.h>
}

#include "pipeline/av/av_error.hpp"

namespace framelane {
namespace {

void throw_if_disk_full(int averror, const std::string& message) {
  if (averror == AVERROR(ENOSPC) || averror == AVERROR(EDQUOT)) throw DiskFull(message);
}

}  // namespace

void throw_io_error(int averror, const std::string& message) {
  throw_if_disk_full(averror, message);
  throw IoError(io_fault_from_averror(averror), message);
}

void throw_file_error(int averror, const std::string& message) {
  throw_if_disk_full(averror, message);
  const IoFault fault = io_fault_from_averror(averror);
  throw IoError(fault == IoFault::kAuth ? IoFault::kIo : fault, message);
}

}  // namespace framelane
