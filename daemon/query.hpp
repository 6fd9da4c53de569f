#pragma once

#include <chrono>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>

#include "daemon/admin_server.hpp"
#include "daemon/supervisor.hpp"
#include "pipeline/base/redact.hpp"

namespace framelane {

/// A request that cannot be answered as it is: the answer says why.
struct RequestError : std::runtime_error {
  RequestError(int http_status, std::string error_code, const std::string& message,
               std::string error_key = {})
      : std::runtime_error(message),
        status(http_status),
        code(std::move(error_code)),
        key(std::move(error_key)) {}
  HttpResponse response() const {
    HttpResponse answer = error_response(status, code, redact(what()), redact(key));
    if (code == "busy") answer.headers.emplace("Retry-After", "1");
    return answer;
  }

  int status;
  std::string code;
  std::string key;
};

// The parameters of a request's query. A wrong one throws RequestError with status 400, its name
// and what is right.

/// The feed of this name. Throws RequestError with status 404 if there is none.
FeedView require_feed(const Supervisor& supervisor, const std::string& name);
/// The error for that.
RequestError no_such_feed(const std::string& name);

/// Throws if there are parameters other than these.
void require_known(const HttpRequest& request, std::initializer_list<std::string_view> names);
/// A whole number; `standard` if the query does not have it.
std::int64_t number_in(const HttpRequest& request, const std::string& name, std::int64_t standard,
                       std::int64_t least, std::int64_t most);
/// A time in RFC 3339, or in seconds since 1970. Nothing if the query does not have it.
std::optional<std::chrono::system_clock::time_point> time_in(const HttpRequest& request,
                                                             const std::string& name);
/// Empty if the query does not have it.
std::string text_in(const HttpRequest& request, const std::string& name);

}  // namespace framelane
