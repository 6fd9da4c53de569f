#include "pipeline/base/failure.hpp"

#include <cerrno>
#include <system_error>

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

std::optional<std::string> descriptor_shortage_text(int error) {
  if (error != EMFILE && error != ENFILE) return std::nullopt;
  return "file descriptors are short (" + std::generic_category().message(error) + "): raise " +
         (error == EMFILE ? "LimitNOFILE= of the service, or ulimit -n" : "fs.file-max by sysctl");
}

}  // namespace framelane
