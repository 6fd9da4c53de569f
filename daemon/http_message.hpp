#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>

namespace framelane {

struct HttpRequest {
  /// It changes nothing.
  bool only_reads() const { return method == "GET" || method == "HEAD"; }

  std::string method;
  std::string path;  ///< without the query
  std::map<std::string, std::string> query;
  std::map<std::string, std::string> headers;  ///< names in lower case
  std::string body;
  std::string peer{};  ///< the client's IP address; empty: it came through a Unix socket
};

/// An answer that is sent piece by piece, as the client takes it.
class HttpStream {
 public:
  virtual ~HttpStream() = default;

  /// What comes next. Empty: there is nothing yet; more() will say when there is. Nothing: it was
  /// all. On the listener's thread: must not block.
  virtual std::optional<std::string> take() = 0;

  /// Who is to know that there is more. Empty: nobody any more. For the listener; waits until a
  /// call under way has returned.
  void set_wake(std::function<void()> wake) {
    const std::lock_guard lock(wake_mutex_);
    wake_ = std::move(wake);
  }

 protected:
  /// take() has something again, or its end. Any thread.
  void more() {
    const std::lock_guard lock(wake_mutex_);
    if (wake_) wake_();
  }

 private:
  std::mutex wake_mutex_;
  std::function<void()> wake_;
};

struct HttpResponse {
  int status = 200;
  std::string content_type = "application/json";
  std::string body{};
  /// Besides those that all answers have, or instead of them.
  std::multimap<std::string, std::string> headers = {};
  std::shared_ptr<HttpStream> stream{};         ///< instead of `body`
  std::optional<std::uint64_t> stream_bytes{};  ///< how long it is, if that is known
  /// So long its client need not read; nothing: as any other client.
  std::optional<std::chrono::seconds> stream_idle{};
};

/// {"error":{"code","message","key"}} with this status; "key" is null if `key` is empty.
HttpResponse error_response(int status, const std::string& code, const std::string& message,
                            const std::string& key = {});

}  // namespace framelane
