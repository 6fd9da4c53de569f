#include "pipeline/output/rename_to_free.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>

#include "pipeline/output/io_error.hpp"

namespace framelane {

bool rename_to_free(const std::string& from, const std::string& to) {
  if (renameat2(AT_FDCWD, from.c_str(), AT_FDCWD, to.c_str(), RENAME_NOREPLACE) == 0) return true;
  if (errno == EEXIST) return false;
  if (errno != EINVAL && errno != ENOSYS) throw_cannot("rename", from, errno);
  // NFS and some FUSE file systems cannot do that. A hard link does not replace either.
  if (link(from.c_str(), to.c_str()) == 0) {
    unlink(from.c_str());
    return true;
  }
  if (errno == EEXIST) return false;
  // FAT has no hard links. Only here can a file that appears at this moment be lost.
  if (access(to.c_str(), F_OK) == 0) return false;
  if (std::rename(from.c_str(), to.c_str()) != 0) throw_cannot("rename", from, errno);
  return true;
}

}  // namespace framelane
