#include "pipeline/base/failure.hpp"

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

}  // namespace framelane
