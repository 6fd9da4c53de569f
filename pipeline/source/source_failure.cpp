#include "pipeline/source/source_failure.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>

#include "pipeline/base/redact.hpp"

namespace framelane {

std::string denial_remedy(int error, const std::string& path) {
  if (error != EACCES && error != EPERM) return {};
  struct stat status {};
  const bool device =
      ::stat(path.c_str(), &status) == 0 && (S_ISCHR(status.st_mode) || S_ISBLK(status.st_mode));
  const std::string user = "framelane's user (uid " + std::to_string(::geteuid()) + ")";
  if (!device) {
    const bool hidden = path.starts_with("/home/") || path.starts_with("/root/");
    return "; let " + user + " read it and search the folders above it, by owner, group or mode" +
           (hidden ? "; the service's unit hides /home and /root (ProtectHome=)" : "");
  }
  // A device that the service's unit does not allow fails with EPERM, whatever its mode.
  if (error == EPERM) {
    return "; allow it: DeviceAllow=" + redact(path) + " rw in the service's unit";
  }
  return "; let " + user + " be in the device's group, which is " + std::to_string(status.st_gid) +
         ": SupplementaryGroups= in the service's unit, --group-add of a container; or give it "
         "another group with a udev rule";
}

IoError io_error(int error, const std::string& what) {
  std::string text = what + ": " + std::generic_category().message(error);
  if (error == EMFILE) text += "; raise the limit of open files (LimitNOFILE=, ulimit -n)";
  return IoError(io_fault_from_errno(error), text);
}

}  // namespace framelane
