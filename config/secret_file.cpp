#include "config/secret_file.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdlib>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "config/problems.hpp"

namespace framelane {
namespace {

constexpr std::size_t kLargestSecret = 65536;
constexpr std::string_view kSecretsFolder = "/run/secrets/";

/// A file's text, or the errno value that says why there is none: EINVAL if it is no regular file.
struct FileText {
  std::string text;
  int error = 0;
  mode_t mode = 0;
};

const char* kind_of(mode_t mode) {
  if (S_ISDIR(mode)) return "folder";
  if (S_ISFIFO(mode)) return "FIFO";
  return S_ISSOCK(mode) ? "socket" : "device";
}

FileText read_regular_file(const std::string& path) {
  // O_NONBLOCK: opening a FIFO must not wait for its writer.
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0) return {"", errno};
  FileText result;
  struct stat status {};
  if (::fstat(fd, &status) != 0) {
    result.error = errno;
  } else if (result.mode = status.st_mode; !S_ISREG(status.st_mode)) {
    result.error = EINVAL;
  } else {
    std::array<char, 4096> buffer;
    ssize_t got = 1;
    while (got != 0 && result.error == 0) {
      got = ::read(fd, buffer.data(), buffer.size());
      if (got < 0 && errno != EINTR) result.error = errno;
      if (got > 0) result.text.append(buffer.data(), static_cast<std::size_t>(got));
      if (result.text.size() > kLargestSecret) result.error = EFBIG;
    }
  }
  ::close(fd);
  return result;
}

SecretFile unreadable(const std::string& path, const FileText& file) {
  std::string reason = std::generic_category().message(file.error);
  if (file.error == EINVAL) {
    reason = std::string("it is a ") + kind_of(file.mode) + ", not a regular file";
  }
  if (file.error == EFBIG) {
    reason = "it is larger than " + std::to_string(kLargestSecret) + " bytes";
  }
  return {.text = "",
          .problem = "the secret file " + in_quotes(path) + " cannot be read: " + reason,
          .wrong_kind = file.error == EINVAL || file.error == EFBIG};
}

std::vector<std::string> candidates(const std::string& name, const LoadOptions& options) {
  if (name.starts_with('/')) return {name};
  std::vector<std::string> places;
  const auto directory = look_up_variable("CREDENTIALS_DIRECTORY", options);
  if (directory && !directory->empty()) places.push_back(*directory + "/" + name);
  places.push_back(std::string(kSecretsFolder) + name);
  return places;
}

}  // namespace

std::optional<std::string> look_up_variable(const std::string& name, const LoadOptions& options) {
  if (options.environment) return options.environment(name);
  const char* value = std::getenv(name.c_str());
  if (value == nullptr) return std::nullopt;
  return std::string(value);
}

SecretFile read_secret_file(const std::string& name, const LoadOptions& options) {
  const std::vector<std::string> places = candidates(name, options);
  FileText file;
  for (const std::string& place : places) {
    file = read_regular_file(place);
    if (file.error == 0) {
      const bool guarded = !name.starts_with('/') || name.starts_with(kSecretsFolder);
      return {.text = std::move(file.text),
              .readable_by_all = !guarded && (file.mode & S_IROTH) != 0,
              .writable_by_all = !guarded && (file.mode & S_IWOTH) != 0};
    }
    if (file.error != ENOENT) return unreadable(place, file);
  }
  if (name.starts_with('/')) return unreadable(name, file);
  return {.text = "",
          .problem = "the secret " + in_quotes(name) +
                     " is neither in $CREDENTIALS_DIRECTORY nor in /run/secrets; put a file of "
                     "that name there",
          .in_neither_folder = true};
}

}  // namespace framelane
