#include "daemon/host_check.hpp"

#include <arpa/inet.h>
#include <unistd.h>

#include <array>
#include <string_view>

#include "pipeline/base/credential_names.hpp"

namespace framelane {
namespace {

std::string this_machine() {
  std::array<char, 256> name{};
  gethostname(name.data(), name.size() - 1);
  return lowered(name.data());
}

bool is_ip_address(int family, const std::string& host) {
  in6_addr any{};
  return inet_pton(family, host.c_str(), &any) == 1;
}

/// The host of a Host header, NAME[:PORT] or [V6][:PORT], without brackets and port and in lower
/// case. Nothing if the header has another form.
std::optional<std::string> host_name(std::string_view header) {
  constexpr auto kNone = std::string_view::npos;
  const std::size_t colon = header.rfind(':');
  const bool has_port = colon != kNone && header.find(']', colon) == kNone;
  const std::string host = lowered(header.substr(0, has_port ? colon : kNone));
  const std::string_view port = has_port ? header.substr(colon + 1) : "";
  if (port.find_first_not_of("0123456789") != kNone) return std::nullopt;
  if (host.starts_with('[') && host.ends_with(']')) {
    const std::string address = host.substr(1, host.size() - 2);
    return is_ip_address(AF_INET6, address) ? std::optional(address) : std::nullopt;
  }
  constexpr std::string_view kOfNames = "abcdefghijklmnopqrstuvwxyz0123456789-._";
  const bool is_name = !host.empty() && host.find_first_not_of(kOfNames) == kNone;
  return is_name ? std::optional(host) : std::nullopt;
}

}  // namespace

HostCheck::HostCheck(const std::string& listen_host, bool local_only)
    : listen_host_(lowered(listen_host)), machine_(this_machine()), local_only_(local_only) {}

std::optional<HttpResponse> HostCheck::refuse(const HttpRequest& request, bool any_name) const {
  const auto header = request.headers.find("host");
  if (header == request.headers.end()) return std::nullopt;  // browsers always send it
  const std::optional<std::string> host = host_name(header->second);
  if (!host) {
    return error_response(400, "bad_host",
                          "there must be one Host header: NAME, NAME:PORT, [V6] or [V6]:PORT");
  }
  if (any_name || accepts(*host)) return std::nullopt;
  return error_response(403, "host_not_allowed",
                        "this name in the Host header is not accepted: use the IP address or "
                        "the machine's name");
}

bool HostCheck::accepts(const std::string& host) const {
  const bool address = is_ip_address(AF_INET, host) || is_ip_address(AF_INET6, host);
  if (address || host == "localhost" || host == listen_host_) return true;
  return !local_only_ && (host == machine_ || host.find('.') == std::string::npos);
}

}  // namespace framelane
