#include "pipeline/failure.hpp"

extern "C" {
#include <libavutil/error.h>
}

#include <cerrno>

namespace framelane {

IoFault io_fault_from_errno(int error) {
  switch (error) {
    case ECONNREFUSED:
    case EHOSTUNREACH:
    case ENETUNREACH:
    case ENETDOWN:
      return IoFault::kRefused;
    case ETIMEDOUT:
      return IoFault::kTimeout;
    case EACCES:
    case EPERM:
      return IoFault::kAuth;
    default:
      return IoFault::kIo;
  }
}

IoFault io_fault_from_averror(int error) {
  switch (error) {
    case AVERROR_HTTP_UNAUTHORIZED:
    case AVERROR_HTTP_FORBIDDEN:
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

}  // namespace framelane
