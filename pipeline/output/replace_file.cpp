#include "pipeline/output/replace_file.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstdio>

#include "pipeline/output/io_error.hpp"

namespace framelane {

void rename_over(const std::filesystem::path& from, const std::filesystem::path& to) {
  if (std::rename(from.c_str(), to.c_str()) != 0) throw_cannot("write", to.string(), errno);
}

void replace_file(const std::filesystem::path& path, std::string_view text, OnDisk when) {
  const std::string unnamed = path.string().append(kTemporary);
  const int fd = open(unnamed.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
  if (fd < 0) throw_cannot("write", path.string(), errno);
  std::size_t done = 0;
  int error = 0;
  while (done < text.size() && error == 0) {
    const ssize_t written = ::write(fd, text.data() + done, text.size() - done);
    if (written < 0 && errno != EINTR) error = errno;
    if (written > 0) done += static_cast<std::size_t>(written);
  }
  if (error == 0 && when == OnDisk::kNow && fdatasync(fd) != 0) error = errno;
  if (close(fd) != 0 && error == 0) error = errno;
  if (error == 0 && std::rename(unnamed.c_str(), path.c_str()) != 0) error = errno;
  if (error == 0) return;
  unlink(unnamed.c_str());
  throw_cannot("write", path.string(), error);
}

}  // namespace framelane
