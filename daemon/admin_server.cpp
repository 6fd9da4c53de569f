#include "daemon/admin_server.hpp"

#include <fmt/core.h>
#include <gnutls/gnutls.h>
#include <microhttpd.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <condition_variable>
#include <cstdarg>
#include <cstdint>
#include <cstdio>
#include <list>
#include <memory>
#include <mutex>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <stdexcept>
#include <string_view>
#include <system_error>
#include <thread>
#include <utility>

#include "config/tls_certificate.hpp"
#include "daemon/admin_access.hpp"
#include "daemon/host_check.hpp"
#include "daemon/listen_socket.hpp"
#include "daemon/stream_sender.hpp"
#include "pipeline/base/abandoned_threads.hpp"
#include "pipeline/base/credential_names.hpp"
#include "pipeline/base/log.hpp"

namespace framelane {
namespace {

/// A body that announces no length and does not end is cut off at this size.
constexpr std::size_t kMaxDiscardedBytes = 16 * AdminServer::kMaxBodyBytes;
/// libmicrohttpd also counts connections that are being closed.
constexpr unsigned kConnectionSlots = 2 * AdminServer::kMaxConnections + AdminServer::kMaxStreams;
/// In every answer that does not have another. The policy keeps whatever a page holds from running
/// or loading anything, and all pages from being shown inside another's.
constexpr std::array<std::pair<const char*, const char*>, 5> kStandardHeaders{{
    {"Cache-Control", "no-store"},
    {"Content-Security-Policy", "default-src 'none'; frame-ancestors 'none'"},
    {"Cross-Origin-Resource-Policy", "same-origin"},
    {"Referrer-Policy", "no-referrer"},
    {"X-Content-Type-Options", "nosniff"},
}};

/// Adds a header or a query parameter to a map. Headers of one name are joined (RFC 9110, 5.3).
enum MHD_Result collect(void* map, enum MHD_ValueKind kind, const char* name, const char* value) {
  auto& values = *static_cast<std::map<std::string, std::string>*>(map);
  const bool is_header = kind == MHD_HEADER_KIND;
  const auto [entry, is_new] = values.emplace(is_header ? lowered(name) : name, value ? value : "");
  if (is_header && !is_new) entry->second.append(", ").append(value ? value : "");
  return MHD_YES;
}

[[gnu::format(printf, 2, 0)]] void log_line(void*, const char* format, va_list arguments) {
  std::array<char, 512> text{};
  std::vsnprintf(text.data(), text.size(), format, arguments);
  log::debug("admin listener: {}", text.data());
}

}  // namespace

HttpResponse error_response(int status, const std::string& code, const std::string& message,
                            const std::string& key) {
  nlohmann::ordered_json error{{"code", code}, {"message", message}, {"key", nullptr}};
  if (!key.empty()) error["key"] = key;
  HttpResponse response;
  response.status = status;
  response.body = nlohmann::ordered_json{{"error", error}}.dump(
                      -1, ' ', false, nlohmann::json::error_handler_t::replace) +
                  "\n";
  return response;
}

/// Everything but the constructor and the destructor runs on libmicrohttpd's one thread.
class AdminServer::Impl {
 public:
  Impl(const std::string& listen, Handler handler, TakesLong takes_long,
       std::chrono::seconds idle_timeout, std::shared_ptr<const AdminAccess> access)
      : handler_(std::move(handler)),
        takes_long_(std::move(takes_long)),
        access_(std::move(access)),
        idle_seconds_(static_cast<unsigned>(idle_timeout.count())),
        tls_(access_ != nullptr && access_->certificate() != nullptr) {
    const SocketAddress wanted = parse_socket_address(listen);
    ListenSocket socket = listen_on(wanted, listen);
    address_ = socket.address;
    local_only_ = socket.local_only;
    socket_path_ = wanted.path;
    host_check_.emplace(wanted.host, local_only_);
    // With epoll libmicrohttpd (0.9.75, 1.0.1) spins while a client stands still in a handshake.
    const unsigned flags =
        MHD_USE_ERROR_LOG | MHD_ALLOW_SUSPEND_RESUME |
        (tls_ ? MHD_USE_POLL_INTERNAL_THREAD | MHD_USE_TLS : MHD_USE_EPOLL_INTERNAL_THREAD);
    daemon_ =
        MHD_start_daemon(flags, 0, nullptr, nullptr, on_request, this,                      //
                         MHD_OPTION_EXTERNAL_LOGGER, log_line, nullptr,                     //
                         MHD_OPTION_LISTEN_SOCKET, socket.fd.get(),                         //
                         MHD_OPTION_CONNECTION_LIMIT, kConnectionSlots,                     //
                         MHD_OPTION_CONNECTION_MEMORY_LIMIT, std::size_t{kMaxHeaderBytes},  //
                         MHD_OPTION_CONNECTION_TIMEOUT, idle_seconds_,                      //
                         MHD_OPTION_NOTIFY_CONNECTION, on_connection, this,                 //
                         MHD_OPTION_NOTIFY_COMPLETED, on_completed, this,                   //
                         // Without TLS the options end here.
                         tls_ ? MHD_OPTION_HTTPS_CERT_CALLBACK2 : MHD_OPTION_END, on_handshake,  //
                         MHD_OPTION_HTTPS_PRIORITIES, TlsCertificate::kPriorities, MHD_OPTION_END);
    if (daemon_ == nullptr) throw std::runtime_error("cannot start the listener on " + listen);
    socket.fd.release();  // libmicrohttpd closes it
  }

  ~Impl() { MHD_stop_daemon(daemon_); }

  /// Before the end: no connection may be suspended when libmicrohttpd's daemon stops. False if an
  /// answer does not come to an end: this must not be destroyed then.
  bool end() {
    std::unique_lock lock(answering_mutex_);
    stopping_ = true;
    if (!socket_path_.empty()) ::unlink(socket_path_.c_str());
    if (!answered_.wait_for(lock, kLastAnswers, [this] { return answering_.empty(); })) {
      for (const auto& thread : answering_) thread->abandon();
      return false;
    }
    for (StreamSender* const sender : senders_) sender->end();
    return true;
  }

  const std::string& address() const { return address_; }
  bool uses_tls() const { return tls_; }
  bool local_only() const { return local_only_; }

 private:
  struct Connection {
    int fd;
    std::string host;  ///< empty for Unix sockets
    bool closing = false;
    bool streams = false;
  };
  using Connections = std::list<Connection>;

  struct Upload {
    std::string body;
    std::size_t received = 0;
    std::optional<HttpResponse> answer{};  ///< to a request that took long
    std::unique_ptr<StreamSender> sender{};
  };

  static void on_connection(void* self, MHD_Connection* connection, void** context,
                            enum MHD_ConnectionNotificationCode event) {
    auto& impl = *static_cast<Impl*>(self);
    if (event == MHD_CONNECTION_NOTIFY_STARTED) {
      if (impl.tls_) {
        const auto* info = MHD_get_connection_info(connection, MHD_CONNECTION_INFO_GNUTLS_SESSION);
        gnutls_session_set_ptr(static_cast<gnutls_session_t>(info->tls_session), self);
      }
      impl.make_room_for(impl.describe(connection));
      *context = new Connections::iterator(std::prev(impl.connections_.end()));
    } else if (*context != nullptr) {
      auto* entry = static_cast<Connections::iterator*>(*context);
      impl.connections_.erase(*entry);
      delete entry;
      *context = nullptr;
    }
  }

  /// Gives a handshake the present certificate.
  static int on_handshake(gnutls_session_t session, const gnutls_cert_retr_st*,
                          gnutls_pcert_st** certificates, unsigned* count,
                          gnutls_ocsp_data_st** ocsp, unsigned* ocsp_count, gnutls_privkey_t* key,
                          unsigned* flags) {
    const auto& impl = *static_cast<Impl*>(gnutls_session_get_ptr(session));
    const std::shared_ptr<const TlsCertificate> certificate = impl.access_->certificate();
    *ocsp = nullptr;
    *ocsp_count = 0;
    *flags = GNUTLS_CERT_RETR_DEINIT_ALL;
    return certificate && certificate->copy(*certificates, *count, *key) ? 0 : -1;
  }

  static Connection describe(MHD_Connection* connection) {
    const auto* fd = MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD);
    sockaddr_storage peer{};
    socklen_t length = sizeof peer;
    auto* address = reinterpret_cast<sockaddr*>(&peer);
    if (getpeername(fd->connect_fd, address, &length) != 0) return {fd->connect_fd, {}};
    return {fd->connect_fd, host_of(address, length)};
  }

  /// Adds a connection; at a limit it first closes one. The list is in the order of the last
  /// completed request, or of the start, so the first one that counts towards the limit is closed.
  void make_room_for(Connection added) {
    const auto close_first = [&](std::size_t limit, auto counts) {
      const auto open = [&](const Connection& c) { return !c.closing && !c.streams && counts(c); };
      if (std::count_if(connections_.begin(), connections_.end(), open) <
          static_cast<std::ptrdiff_t>(limit)) {
        return;
      }
      const auto oldest = std::find_if(connections_.begin(), connections_.end(), open);
      oldest->closing = true;
      ::shutdown(oldest->fd, SHUT_RDWR);
    };
    if (!added.host.empty()) {
      close_first(kMaxConnectionsPerAddress,
                  [&](const Connection& c) { return c.host == added.host; });
    }
    close_first(kMaxConnections, [](const Connection&) { return true; });
    connections_.push_back(std::move(added));
  }

  static enum MHD_Result on_request(void* self, MHD_Connection* connection, const char* url,
                                    const char* method, const char*, const char* data,
                                    std::size_t* size, void** context) {
    try {
      return static_cast<Impl*>(self)->receive(connection, url, method, data, size, context);
    } catch (const std::exception& error) {
      log::error("admin listener: {} {}: {}", method, url, error.what());
      return MHD_NO;  // closes the connection
    }
  }

  enum MHD_Result receive(MHD_Connection* connection, const char* url, const char* method,
                          const char* data, std::size_t* size, void** context) {
    if (*context == nullptr) {
      *context = new Upload;
      const char* length =
          MHD_lookup_connection_value(connection, MHD_HEADER_KIND, "content-length");
      const bool too_large =
          length != nullptr && std::strtoull(length, nullptr, 10) > kMaxBodyBytes;
      if (!too_large) return MHD_YES;
      return send(connection, body_too_large(), *static_cast<Upload*>(*context));
    }
    auto& upload = *static_cast<Upload*>(*context);
    if (upload.answer) return send(connection, *std::move(upload.answer), upload);
    if (*size > 0) {
      upload.received += *size;
      if (upload.received > kMaxDiscardedBytes) return MHD_NO;
      if (upload.received <= kMaxBodyBytes) upload.body.append(data, *size);
      *size = 0;
      return MHD_YES;
    }
    if (upload.received > kMaxBodyBytes) return send(connection, body_too_large(), upload);
    HttpRequest request;
    request.method = method;
    request.path = url;
    request.body = std::move(upload.body);
    if (const Connections::iterator* entry = entry_of(connection)) request.peer = (*entry)->host;
    MHD_get_connection_values(connection, MHD_HEADER_KIND, collect, &request.headers);
    MHD_get_connection_values(connection, MHD_GET_ARGUMENT_KIND, collect, &request.query);
    if (takes_long_ && takes_long_(request))
      return answer_later(connection, std::move(request), upload);
    return send(connection, respond(request), upload);
  }

  /// Has a thread of its own answer, while the connection is suspended: it has no time-out then,
  /// and `upload` stays.
  enum MHD_Result answer_later(MHD_Connection* connection, HttpRequest request, Upload& upload) {
    const auto shared = std::make_shared<const HttpRequest>(std::move(request));
    const auto self = std::make_shared<AbandonableThread>();
    bool is_busy = false;
    {
      const std::lock_guard lock(answering_mutex_);
      if (stopping_) return MHD_NO;
      is_busy = answering_.size() >= kMaxAnswering;
      if (!is_busy) answering_.insert(self);
    }
    if (is_busy) return send(connection, busy(), upload);
    MHD_suspend_connection(connection);
    const auto finish = [this, connection, self, &upload](HttpResponse response) {
      upload.answer = std::move(response);
      MHD_resume_connection(connection);
      const std::lock_guard lock(answering_mutex_);
      answering_.erase(self);
      answered_.notify_all();
    };
    try {
      std::thread([this, shared, self, finish]() noexcept {
        finish(respond(*shared));
        self->end();
      }).detach();
    } catch (const std::exception&) {  // threads or memory are short
      finish(busy());
    }
    return MHD_YES;
  }

  static HttpResponse busy() {
    return error_response(MHD_HTTP_SERVICE_UNAVAILABLE, "busy",
                          "too many requests that take long are under way; ask again later");
  }

  static HttpResponse body_too_large() {
    return error_response(MHD_HTTP_CONTENT_TOO_LARGE, "body_too_large",
                          fmt::format("the body is larger than {} bytes", kMaxBodyBytes));
  }

  HttpResponse respond(const HttpRequest& request) {
    try {
      if (auto refusal = refuse_host(request)) return std::move(*refusal);
      return handler_(request);
    } catch (const std::exception& error) {
      log::error("admin listener: {} {}: {}", request.method, request.path, error.what());
      return error_response(MHD_HTTP_INTERNAL_SERVER_ERROR, "internal", "see the log");
    }
  }

  std::optional<HttpResponse> refuse_host(const HttpRequest& request) const {
    if (!socket_path_.empty()) return std::nullopt;  // browsers cannot connect to Unix sockets
    const bool any_name = tls_ || (access_ != nullptr && access_->has_tokens());
    return host_check_->refuse(request, any_name);
  }

  /// Frees the text of an answer.
  static void free_text(void* text) { delete static_cast<std::string*>(text); }

  enum MHD_Result send(MHD_Connection* connection, HttpResponse answer, Upload& upload) {
    if (answer.stream && senders_.size() >= kMaxStreams) {
      return send(connection,
                  error_response(MHD_HTTP_SERVICE_UNAVAILABLE, "too_many_streams",
                                 fmt::format("there are {} streams already; close a page or a "
                                             "download, and ask again",
                                             kMaxStreams)),
                  upload);
    }
    MHD_Response* response = nullptr;
    if (answer.stream) {
      response = begin_stream(connection, answer, upload);
    } else {
      auto text = std::make_unique<std::string>(std::move(answer.body));
      response = MHD_create_response_from_buffer_with_free_callback_cls(text->size(), text->data(),
                                                                        &free_text, text.get());
      if (response != nullptr) static_cast<void>(text.release());
    }
    if (response == nullptr) return MHD_NO;
    MHD_add_response_header(response, "Content-Type", answer.content_type.c_str());
    for (const auto& [name, value] : kStandardHeaders) {
      if (!answer.headers.contains(name)) MHD_add_response_header(response, name, value);
    }
    for (const auto& [name, value] : answer.headers) {
      MHD_add_response_header(response, name.c_str(), value.c_str());
    }
    const auto result =
        MHD_queue_response(connection, static_cast<unsigned>(answer.status), response);
    MHD_destroy_response(response);
    return result;
  }

  /// What libmicrohttpd reads the answer from; the connection's Upload owns the sender.
  MHD_Response* begin_stream(MHD_Connection* connection, const HttpResponse& answer,
                             Upload& upload) {
    constexpr std::size_t kBlock = 32 * 1024;
    upload.sender = std::make_unique<StreamSender>(answer.stream, connection);
    {
      const std::lock_guard lock(answering_mutex_);
      senders_.insert(upload.sender.get());
      if (stopping_) upload.sender->end();
    }
    if (const Connections::iterator* entry = entry_of(connection)) (*entry)->streams = true;
    if (answer.stream_idle) {
      const auto seconds = static_cast<unsigned>(answer.stream_idle->count());
      MHD_set_connection_option(connection, MHD_CONNECTION_OPTION_TIMEOUT, seconds);
    }
    return MHD_create_response_from_callback(answer.stream_bytes.value_or(MHD_SIZE_UNKNOWN), kBlock,
                                             &StreamSender::read, upload.sender.get(), nullptr);
  }

  static void on_completed(void* self, MHD_Connection* connection, void** context,
                           enum MHD_RequestTerminationCode code) {
    auto& impl = *static_cast<Impl*>(self);
    const std::unique_ptr<Upload> upload(static_cast<Upload*>(std::exchange(*context, nullptr)));
    if (upload && upload->sender) {
      if (const Connections::iterator* entry = entry_of(connection)) (*entry)->streams = false;
      const std::lock_guard lock(impl.answering_mutex_);
      impl.senders_.erase(upload->sender.get());
    }
    if (code != MHD_REQUEST_TERMINATED_COMPLETED_OK) return;
    if (upload && upload->sender) {  // the next request may come
      MHD_set_connection_option(connection, MHD_CONNECTION_OPTION_TIMEOUT, impl.idle_seconds_);
    }
    Connections& all = impl.connections_;
    if (const Connections::iterator* entry = entry_of(connection))
      all.splice(all.end(), all, *entry);
  }

  static const Connections::iterator* entry_of(MHD_Connection* connection) {
    const auto* info = MHD_get_connection_info(connection, MHD_CONNECTION_INFO_SOCKET_CONTEXT);
    return info == nullptr ? nullptr : static_cast<Connections::iterator*>(info->socket_context);
  }

  const Handler handler_;
  const TakesLong takes_long_;
  const std::shared_ptr<const AdminAccess> access_;
  const unsigned idle_seconds_;
  const bool tls_;
  std::mutex answering_mutex_;
  std::condition_variable answered_;
  // The threads of answer_later(); guarded by answering_mutex_.
  std::set<std::shared_ptr<AbandonableThread>> answering_;
  bool stopping_ = false;            // likewise
  std::set<StreamSender*> senders_;  // changed with answering_mutex_ held, on the listener's thread
  std::string address_;
  std::string socket_path_;
  std::optional<HostCheck> host_check_;
  bool local_only_ = true;
  Connections connections_;
  MHD_Daemon* daemon_ = nullptr;
};

AdminServer::AdminServer(const std::string& listen, Handler handler, TakesLong takes_long,
                         std::chrono::seconds idle_timeout,
                         std::shared_ptr<const AdminAccess> access)
    : impl_(std::make_unique<Impl>(listen, std::move(handler), std::move(takes_long), idle_timeout,
                                   std::move(access))) {}
AdminServer::~AdminServer() {
  if (!impl_->end()) static_cast<void>(impl_.release());  // its stuck threads still use it
}
const std::string& AdminServer::address() const { return impl_->address(); }
bool AdminServer::uses_tls() const { return impl_->uses_tls(); }
bool AdminServer::local_only() const { return impl_->local_only(); }

}  // namespace framelane
