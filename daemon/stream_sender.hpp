#pragma once

#include <microhttpd.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>

#include "daemon/http_message.hpp"

namespace framelane {

/// A stream on its way to a client. Suspends the connection while there is nothing to send.
class StreamSender {
 public:
  /// For the connection's present request, whose completion it does not outlive. The stream ends
  /// before a piece for which `goes_on` is false.
  StreamSender(std::shared_ptr<HttpStream> stream, MHD_Connection* connection,
               std::function<bool()> goes_on);
  ~StreamSender();
  StreamSender(const StreamSender&) = delete;
  StreamSender& operator=(const StreamSender&) = delete;

  /// libmicrohttpd's content reader; the first argument is the sender. The listener's thread.
  static ssize_t read(void* self, std::uint64_t, char* buffer, std::size_t size);
  /// Nothing more is sent: no connection may be suspended when the listener ends. Any thread.
  void end();

 private:
  bool ended();
  void go_on();
  ssize_t read(char* buffer, std::size_t size);

  const std::shared_ptr<HttpStream> stream_;
  MHD_Connection* const connection_;
  const std::function<bool()> goes_on_;
  std::string piece_;  // of the listener's thread, as at_
  std::size_t at_ = 0;
  std::mutex mutex_;
  bool woken_ = false;  // guarded by mutex_, with what follows
  bool suspended_ = false;
  bool ended_ = false;
};

}  // namespace framelane
