#include "daemon/file_answer.hpp"

#include <fmt/core.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstdint>
#include <limits>
#include <optional>
#include <string_view>
#include <system_error>
#include <utility>

#include "daemon/media_type.hpp"

namespace framelane {
namespace {

/// So much is answered at once: it needs none of the listener's few streams.
constexpr std::uint64_t kAnsweredAtOnce = 1u << 20;
constexpr std::size_t kFilePiece = 256 * 1024;

/// From a file's first byte to behind its last one.
using Part = std::pair<std::uint64_t, std::uint64_t>;

/// A number that is too large is the largest one: no file has so many bytes.
std::optional<std::uint64_t> byte_number(std::string_view digits) {
  std::uint64_t value = 0;
  const char* const end = digits.data() + digits.size();
  const auto [stop, error] = std::from_chars(digits.data(), end, value);
  if (stop != end || error == std::errc::invalid_argument) return std::nullopt;
  return error == std::errc{} ? value : std::numeric_limits<std::uint64_t>::max();
}

/// The part that is asked for; nothing for all of it. An empty one if the file has no byte of that.
std::optional<Part> part_in(const HttpRequest& request, std::uint64_t size) {
  constexpr std::string_view kUnit = "bytes=";
  const auto header = request.headers.find("range");
  if (request.method != "GET" || header == request.headers.end()) return std::nullopt;
  std::string_view text = header->second;
  if (!text.starts_with(kUnit)) return std::nullopt;
  text.remove_prefix(kUnit.size());
  const std::size_t dash = text.find('-');
  if (dash == std::string_view::npos) return std::nullopt;
  const auto first = byte_number(text.substr(0, dash));
  const auto last = byte_number(text.substr(dash + 1));
  if (!first && last && dash == 0) return Part(size - std::min(size, *last), size);
  if (!first || (last && *last < *first)) return std::nullopt;
  if (!last && dash + 1 != text.size()) return std::nullopt;
  if (*first >= size) return Part(size, size);
  return Part(*first, last && *last < size ? *last + 1 : size);
}

/// Changes with the file: while it is written, a part of it does not fit another one.
std::string tag_of(const struct stat& status) {
  return fmt::format("\"{:x}-{:x}-{:x}{:09x}\"", status.st_ino, status.st_size,
                     status.st_mtim.tv_sec, status.st_mtim.tv_nsec);
}

RequestError cannot_read(const std::string& name, const std::string& why) {
  return {500, "unreadable", name + " cannot be read: " + why};
}

/// One byte at least, `most` at most.
std::string read_at(const FileDescriptor& file, const std::string& name, std::uint64_t at,
                    std::uint64_t most) {
  std::string piece(static_cast<std::size_t>(most), '\0');
  ssize_t got = 0;
  do {
    got = pread(file.get(), piece.data(), piece.size(), static_cast<off_t>(at));
  } while (got < 0 && errno == EINTR);
  if (got <= 0) {
    throw cannot_read(name, got < 0 ? std::generic_category().message(errno)
                                    : std::string("it has become shorter"));
  }
  piece.resize(static_cast<std::size_t>(got));
  return piece;
}

}  // namespace

RequestError open_error(int error, const std::string& name, RequestError missing) {
  for (const int fault : {EACCES, EPERM, EIO, ESTALE, EMFILE, ENFILE, ENOMEM}) {
    if (error == fault) return cannot_read(name, std::generic_category().message(error));
  }
  return missing;
}

void answer_with_file(const HttpRequest& request, const FileDescriptor& file,
                      const std::string& name, DiskAnswer& answer) {
  struct stat status {};
  if (fstat(file.get(), &status) != 0) {
    throw cannot_read(name, std::generic_category().message(errno));
  }
  const auto size = static_cast<std::uint64_t>(status.st_size);
  HttpResponse response{.content_type = media_type_of(name)};
  response.headers = {{"Accept-Ranges", "bytes"}, {"ETag", tag_of(status)}};
  const auto condition = request.headers.find("if-range");
  const bool same = condition == request.headers.end() || condition->second == tag_of(status);
  const auto part = same ? part_in(request, size) : std::nullopt;
  auto [at, end] = part.value_or(Part(0, size));
  if (part && at == end) {
    HttpResponse refusal =
        error_response(416, "wrong_range", fmt::format("the file has {} bytes", size), "Range");
    refusal.headers = {{"Content-Range", fmt::format("bytes */{}", size)}};
    return answer.answer(std::move(refusal));
  }
  if (part) {
    response.status = 206;
    response.headers.emplace("Content-Range", fmt::format("bytes {}-{}/{}", at, end - 1, size));
  }
  if (request.method == "GET" ? end - at <= kAnsweredAtOnce : size <= kAnsweredAtOnce) {
    while (at + response.body.size() < end) {
      const std::uint64_t next = at + response.body.size();
      response.body += read_at(file, name, next, end - next);
    }
    return answer.answer(std::move(response));
  }
  response.stream_bytes = end - at;
  answer.begin(std::move(response));
  if (request.method == "HEAD") return;
  while (at < end) {
    std::string piece = read_at(file, name, at, std::min<std::uint64_t>(kFilePiece, end - at));
    at += piece.size();
    if (!answer.send(std::move(piece))) return;
  }
}

}  // namespace framelane
