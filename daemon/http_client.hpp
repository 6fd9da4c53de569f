#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace framelane {

/// One request of HttpClient.
struct HttpCall {
  std::string url;
  std::string unix_socket{};           ///< its path, if the URL's host is to be reached through one
  std::vector<std::string> headers{};  ///< lines without their ends
  std::optional<std::string> body{};   ///< of a POST; nothing: a GET
  bool check_certificate = true;       ///< it has to come from this machine's authorities
  bool use_proxy = false;              ///< that the environment names
  std::size_t most_body = std::size_t{64} << 20U;  ///< bytes of the answer's body that are read
  std::chrono::milliseconds timeout{10'000};       ///< of all of it
};

struct HttpAnswer {
  int status = 0;  ///< 0: there was no answer
  std::string body{};
  std::chrono::seconds retry_after{0};  ///< what the server asks for; 0: nothing
  std::string problem{};                ///< why the answer is missing or not whole; else empty
};

/// An HTTP client over libcurl, which follows no redirect. Its connection stays open for the next
/// call to the same server. One thread uses it, unless it says otherwise.
class HttpClient {
 public:
  /// Throws std::runtime_error if memory is short.
  HttpClient();
  ~HttpClient();
  HttpClient(const HttpClient&) = delete;
  HttpClient& operator=(const HttpClient&) = delete;

  /// Blocks for call.timeout at most. Never throws for what the network does.
  HttpAnswer ask(const HttpCall& call);
  /// The call under way, and all that follow, end at once. Any thread.
  void interrupt();

 private:
  struct Handles;
  const std::unique_ptr<Handles> handles_;
  std::atomic<bool> interrupted_{false};
};

/// GETs `path` from a listener, for `healthcheck`, `trace` and the watchdog. The listener is given
/// as to AdminServer or as an http:// or https:// URL. Blocks for up to `timeout`. Throws
/// std::runtime_error if there is no answer in time.
///
/// The certificate of an https:// URL must be one that this machine's authorities have issued for
/// its name. With `tls` the listener is one's own, on this machine. Its certificate is not checked:
/// it may be for another name, or have been replaced since, and no secret is sent.
///
/// `headers`: further lines of the request, without their ends.
struct FetchResult {
  int status = 0;
  std::string body;
};
FetchResult http_get(const std::string& listen_or_url, const std::string& path,
                     std::chrono::milliseconds timeout, bool tls = false,
                     const std::vector<std::string>& headers = {});

}  // namespace framelane
