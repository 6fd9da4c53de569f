#pragma once

#include <optional>
#include <string>

#include "daemon/admin_server.hpp"

namespace framelane {

/// The check of the Host header. It stops "DNS rebinding": a web page whose own domain resolves to
/// the listener's address cannot read from it. Accepted are IP addresses, localhost and the name
/// listened on; if other machines can connect, also names without dots and this machine's name.
class HostCheck {
 public:
  /// `listen_host`: as configured. `local_only`: other machines cannot connect.
  HostCheck(const std::string& listen_host, bool local_only);

  /// Why the request is refused; nothing if it is not. With `any_name` only the header's form
  /// counts.
  std::optional<HttpResponse> refuse(const HttpRequest& request, bool any_name) const;

 private:
  bool accepts(const std::string& host) const;

  const std::string listen_host_;
  const std::string machine_;
  const bool local_only_;
};

}  // namespace framelane
