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
    default:
      return IoFault::kIo;
  }
}

std::string shortage_text(const std::string& cause) {
  return "threads or memory are short (" + cause + "): " + kShortageRemedy;
}

}  // namespace framelane
