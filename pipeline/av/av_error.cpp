#include "pipeline/av/av_error.hpp"

extern "C" {
#include <libavutil/error.h>
}

#include <array>
#include <cerrno>

#include "pipeline/av/allocation_limit.hpp"
#include "pipeline/base/processors.hpp"

namespace framelane {

std::string av_error_text(int error) {
  std::array<char, AV_ERROR_MAX_STRING_SIZE> text{};
  av_strerror(error, text.data(), text.size());
  return text.data();
}

bool is_configuration_error(int error) {
  return error == AVERROR_PROTOCOL_NOT_FOUND || error == AVERROR_DEMUXER_NOT_FOUND ||
         error == AVERROR_OPTION_NOT_FOUND || error == AVERROR_FILTER_NOT_FOUND;
}

bool is_shortage(int error) {
  switch (error) {
    case AVERROR(EAGAIN):
    case AVERROR(ENOMEM):
      return true;
    case AVERROR(EINVAL):   // libvpx
    case AVERROR_EXTERNAL:  // libx264
    case AVERROR_UNKNOWN:   // libsrt
      return !can_start_threads();
    default:
      return false;
  }
}

std::optional<std::string> shortage_of(int error) {
  if (is_shortage(error)) {
    const bool limited = error == AVERROR(ENOMEM) && limits_av_allocations();
    return shortage_text(av_error_text(error)) +
           (limited ? "; if there is enough, it needs more in one piece than input.limits.pixels "
                      "stands for: raise that if the input is right"
                    : "");
  }
  return descriptor_shortage_text(AVUNERROR(error));
}

IoFault io_fault_from_averror(int error) {
  switch (error) {
    case AVERROR_HTTP_UNAUTHORIZED:
    case AVERROR_HTTP_FORBIDDEN:
    case AVERROR(EACCES):
    case AVERROR(EPERM):
      return IoFault::kAuth;
    case AVERROR_EOF:
      return IoFault::kEof;
    case AVERROR_INVALIDDATA:
    case AVERROR_PATCHWELCOME:
      return IoFault::kDecode;
    case AVERROR_HTTP_BAD_REQUEST:
    case AVERROR_HTTP_NOT_FOUND:
    case AVERROR_HTTP_OTHER_4XX:
    case AVERROR_HTTP_SERVER_ERROR:
      return IoFault::kIo;
    default:
      return io_fault_from_errno(AVUNERROR(error));
  }
}

IoFault file_fault_from_averror(int error) {
  const IoFault fault = io_fault_from_averror(error);
  return fault == IoFault::kAuth ? IoFault::kIo : fault;
}

}  // namespace framelane
