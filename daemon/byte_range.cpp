#include "daemon/byte_range.hpp"

#include <algorithm>
#include <charconv>
#include <string_view>

namespace framelane {
namespace {

std::optional<std::uint64_t> byte_number(std::string_view digits) {
  std::uint64_t value = 0;
  const char* const end = digits.data() + digits.size();
  const auto [stop, error] = std::from_chars(digits.data(), end, value);
  return error == std::errc{} && stop == end ? std::optional(value) : std::nullopt;
}

}  // namespace

std::optional<std::pair<std::uint64_t, std::uint64_t>> byte_range(const HttpRequest& request,
                                                                  std::uint64_t size) {
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
  if (!first && last && dash == 0) return std::pair(size - std::min(size, *last), size);
  if (!first || (last && *last < *first)) return std::nullopt;
  if (!last && dash + 1 != text.size()) return std::nullopt;
  if (*first >= size) return std::pair(size, size);
  return std::pair(*first, last && *last < size ? *last + 1 : size);
}

}  // namespace framelane
