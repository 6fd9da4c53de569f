#include "pipeline/source/descriptor.hpp"

#include <unistd.h>

#include <cerrno>
#include <system_error>

namespace framelane {

Descriptor::~Descriptor() {
  if (owned_ && fd_ >= 0) ::close(fd_);
}

IoError io_error(int error, const std::string& what) {
  std::string text = what + ": " + std::generic_category().message(error);
  if (error == EMFILE) text += "; raise the limit of open files (LimitNOFILE=, ulimit -n)";
  return IoError(io_fault_from_errno(error), text);
}

}  // namespace framelane
