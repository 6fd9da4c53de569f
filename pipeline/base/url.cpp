#include "pipeline/base/url.hpp"

#include <algorithm>
#include <cctype>

namespace framelane {

std::string url_scheme(std::string_view url) {
  const std::size_t colon = url.find(':');
  if (colon == std::string_view::npos || colon == 0) return {};
  std::string scheme(url.substr(0, colon));
  for (char& c : scheme) {
    const auto byte = static_cast<unsigned char>(c);
    if (std::isalnum(byte) == 0 && c != '+' && c != '-' && c != '.') return {};
    c = static_cast<char>(std::tolower(byte));
  }
  return scheme;
}

std::optional<std::string> local_path(std::string_view url) {
  if (url == "-" || url == "pipe:" || url == "pipe:0") return "-";
  const std::string scheme = url_scheme(url);
  if (scheme.empty()) return std::string(url);
  if (scheme == "file") return std::string(url.substr(scheme.size() + 1));
  return std::nullopt;
}

std::string url_host(std::string_view url) {
  const std::size_t begin = url.find("://");
  if (begin == std::string_view::npos) return {};
  std::string_view authority = url.substr(begin + 3);
  authority = authority.substr(0, authority.find_first_of("/?#"));
  if (const std::size_t at = authority.rfind('@'); at != std::string_view::npos) {
    authority.remove_prefix(at + 1);
  }
  if (authority.starts_with('[')) return std::string(authority.substr(1, authority.find(']') - 1));
  return std::string(authority.substr(0, authority.find(':')));
}

}  // namespace framelane
