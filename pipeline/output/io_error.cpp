#include "pipeline/output/io_error.hpp"

#include <unistd.h>

#include <cerrno>
#include <system_error>

extern "C" {
#include <libavutil/error.h>
}

#include "pipeline/av/av_error.hpp"
#include "pipeline/base/redact.hpp"

namespace framelane {
namespace {

void throw_if_disk_full(int averror, const std::string& message) {
  if (averror == AVERROR(ENOSPC)) {
    throw DiskFull(message +
                   "; make room on that disk, or let keep.min_free delete old recordings");
  }
  if (averror == AVERROR(EDQUOT)) {
    throw DiskFull(message + "; raise the quota, or let keep.size delete old recordings");
  }
}

/// What helps if the system does not let this process write, as the end of a message; else empty.
std::string write_remedy(int averror) {
  switch (averror) {
    case AVERROR(EROFS):
      return "; name the folder in ReadWritePaths= of the service's unit, or mount a volume there "
             "that a container may write to";
    case AVERROR(EACCES):
    case AVERROR(EPERM):
      return "; let framelane's user (uid " + std::to_string(::geteuid()) +
             ") write there, by owner, group or mode of the folder";
    default:
      return {};
  }
}

}  // namespace

void throw_io_error(int averror, const std::string& message) {
  throw_if_disk_full(averror, message);
  throw IoError(io_fault_from_averror(averror), message);
}

void throw_file_error(int averror, const std::string& message) {
  throw_if_disk_full(averror, message);
  throw IoError(file_fault_from_averror(averror), message + write_remedy(averror));
}

void throw_cannot(const std::string& doing, const std::string& path, int error) {
  throw_file_error(AVERROR(error), "cannot " + doing + " " + redact(path) + ": " +
                                       std::generic_category().message(error));
}

}  // namespace framelane
