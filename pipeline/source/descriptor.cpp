#include "pipeline/source/descriptor.hpp"

#include <unistd.h>

#include <system_error>

namespace framelane {

Descriptor::~Descriptor() {
  if (owned_ && fd_ >= 0) ::close(fd_);
}

IoError io_error(int error, const std::string& what) {
  return IoError(io_fault_from_errno(error), what + ": " + std::generic_category().message(error));
}

}  // namespace framelane
