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

/// A file's text, or the errno value that says why there is none.
struct FileText {
  std::string text;
  int error = 0;
  mode_t mode = 0;
};

FileText read_regular_file(const std::string& path) {
  // O_NONBLOCK: opening a FIFO must not wait for its writer.
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0) return {"", errno};
  FileText result;
  struct stat status {};
  if (::fstat(fd, &status) != 0) {
    result.error = errno;
  } else if (!S_ISREG(status.st_mode)) {
    result.error = EINVAL;
  } else {
    result.mode = status.st_mode;
    std::array<char, 4096> buffer;
    ssize_t got = 0;
    while ((got = ::read(fd, buffer.data(), buffer.size())) > 0 && result.error == 0) {
      result.text.append(buffer.data(), static_cast<std::size_t>(got));
      if (result.text.size() > kLargestSecret) result.error = EFBIG;
    }
    if (got < 0) result.error = errno;
  }
  ::close(fd);
  return result;
}

SecretFile unreadable(const std::string& path, int error) {
  const std::string reason = error == EINVAL ? "it is not a regular file"
                             : error == EFBIG
                                 ? "it is larger than " + std::to_string(kLargestSecret) + " bytes"
                                 : std::generic_category().message(error);
  return {"", "the secret file " + in_quotes(path) + " cannot be read: " + reason};
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
      return {std::move(file.text), "", !guarded && (file.mode & S_IROTH) != 0};
    }
    if (file.error != ENOENT) return unreadable(place, file.error);
  }
  if (name.starts_with('/')) return unreadable(name, file.error);
  return {"",
          "the secret " + in_quotes(name) +
              " is neither in $CREDENTIALS_DIRECTORY nor in /run/secrets; put a file of that "
              "name there",
          false, true};
}

}  // namespace framelane
