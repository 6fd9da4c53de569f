#include "daemon/admin_server.hpp"

#include <fmt/core.h>
#include <gnutls/gnutls.h>
#include <microhttpd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cstdarg>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <mutex>
#include <new>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <stdexcept>
#include <string_view>
#include <utility>

#include "config/tls_certificate.hpp"
#include "daemon/admin_access.hpp"
#include "daemon/answer_threads.hpp"
#include "daemon/client_connections.hpp"
#include "daemon/host_check.hpp"
#include "daemon/json_text.hpp"
#include "daemon/listen_socket.hpp"
#include "daemon/stream_sender.hpp"
#include "pipeline/base/credential_names.hpp"
#include "pipeline/base/log.hpp"

namespace framelane {
namespace {

/// A body that announces no length and does not end is cut off at this size.
constexpr std::size_t kMaxDiscardedBytes = 16 * AdminServer::kMaxBodyBytes;
/// libmicrohttpd also counts connections that are being closed.
constexpr unsigned kConnectionSlots = 2 * AdminServer::kMaxConnections + AdminServer::kMaxStreams;
/// Shorter answers are sent however much waits: probes and errors are.
constexpr std::size_t kSmallAnswer = 64 * 1024;
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

/// Finds the first query parameter with a NUL in its value.
enum MHD_Result find_nul(void* found, enum MHD_ValueKind, const char* name, std::size_t,
                         const char* value, std::size_t size) {
  if (std::string_view(value ? value : "", value ? size : 0).find('\0') == std::string_view::npos) {
    return MHD_YES;
  }
  *static_cast<std::string*>(found) = name;
  return MHD_NO;
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
  response.body = json_text({{"error", error}}) + "\n";
  return response;
}

/// Everything but the constructor and the destructor runs on libmicrohttpd's one thread.
class AdminServer::Impl {
 public:
  Impl(const std::string& listen, Handler handler, AdminServerOptions options)
      : handler_(std::move(handler)),
        options_(std::move(options)),
        idle_seconds_(static_cast<unsigned>(options_.idle_timeout.count())),
        tls_(options_.access != nullptr && options_.access->certificate() != nullptr) {
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
                         MHD_OPTION_URI_LOG_CALLBACK, on_address, this,                     //
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
    if (!socket_path_.empty()) ::unlink(socket_path_.c_str());
    if (!answers_.end(kLastAnswers)) return false;
    const std::lock_guard lock(senders_mutex_);
    stopping_ = true;
    for (StreamSender* const sender : senders_) sender->end();
    return true;
  }

  const std::string& address() const { return address_; }
  bool uses_tls() const { return tls_; }
  bool local_only() const { return local_only_; }

 private:
  struct Upload {
    bool has_nul = false;  ///< in its address: the path or a parameter would end there
    bool begun = false;
    HttpRequest request{};
    std::size_t received = 0;
    bool takes_long = false;
    std::optional<HttpResponse> answer{};  ///< to a request that took long
    std::unique_ptr<StreamSender> sender{};
  };
  /// The text of an answer, which counts until libmicrohttpd frees it.
  struct Unsent {
    Unsent(std::string answer, std::size_t& all) : text(std::move(answer)), sum(all) {
      sum += text.size();
    }
    ~Unsent() { sum -= text.size(); }
    Unsent(const Unsent&) = delete;
    Unsent& operator=(const Unsent&) = delete;
    static void free(void* self) { delete static_cast<Unsent*>(self); }

    std::string text;
    std::size_t& sum;
  };

  static void on_connection(void* self, MHD_Connection* connection, void** context,
                            enum MHD_ConnectionNotificationCode event) {
    auto& impl = *static_cast<Impl*>(self);
    if (event == MHD_CONNECTION_NOTIFY_STARTED) {
      if (impl.tls_) {
        const auto* info = MHD_get_connection_info(connection, MHD_CONNECTION_INFO_GNUTLS_SESSION);
        gnutls_session_set_ptr(static_cast<gnutls_session_t>(info->tls_session), self);
      }
      const auto* fd = MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD);
      try {
        auto entry = std::make_unique<ClientConnections::Entry>();
        *entry = impl.connections_.add(fd->connect_fd);
        *context = entry.release();
      } catch (const std::exception& error) {
        log::error("admin listener: a connection is refused: {}", error.what());
        ::shutdown(fd->connect_fd, SHUT_RDWR);  // libmicrohttpd closes it
      }
    } else if (*context != nullptr) {
      auto* entry = static_cast<ClientConnections::Entry*>(*context);
      impl.connections_.remove(*entry);
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
    const std::shared_ptr<const TlsCertificate> certificate = impl.options_.access->certificate();
    *ocsp = nullptr;
    *ocsp_count = 0;
    *flags = GNUTLS_CERT_RETR_DEINIT_ALL;
    return certificate && certificate->copy(*certificates, *count, *key) ? 0 : -1;
  }

  /// Called first for each request, with its address before that is decoded. Makes its Upload.
  static void* on_address(void*, const char* address, MHD_Connection*) {
    auto* const upload = new (std::nothrow) Upload;
    if (upload == nullptr) return nullptr;
    // Some versions of libmicrohttpd know no address.
    upload->has_nul =
        address != nullptr && std::string_view(address).find("%00") != std::string_view::npos;
    return upload;
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
    const ClientConnections::Entry* const entry = entry_of(connection);
    // on_connection() has refused it, or there was no memory for it.
    if (entry == nullptr || *context == nullptr) return MHD_NO;
    auto& upload = *static_cast<Upload*>(*context);
    if (!std::exchange(upload.begun, true)) {
      const char* length =
          MHD_lookup_connection_value(connection, MHD_HEADER_KIND, "content-length");
      const bool too_large =
          length != nullptr && std::strtoull(length, nullptr, 10) > kMaxBodyBytes;
      if (!too_large) return MHD_YES;
      return send(connection, body_too_large(), upload);
    }
    if (upload.answer) return send(connection, *std::move(upload.answer), upload);
    if (*size > 0) {
      upload.received += *size;
      if (upload.received > kMaxDiscardedBytes) return MHD_NO;
      if (upload.received <= kMaxBodyBytes) upload.request.body.append(data, *size);
      *size = 0;
      return MHD_YES;
    }
    if (upload.received > kMaxBodyBytes) return send(connection, body_too_large(), upload);
    HttpRequest& request = upload.request;
    request.method = method;
    request.path = url;
    request.peer = (*entry)->host;
    MHD_get_connection_values(connection, MHD_HEADER_KIND, collect, &request.headers);
    MHD_get_connection_values(connection, MHD_GET_ARGUMENT_KIND, collect, &request.query);
    if (auto refusal = refuse(request)) return send(connection, *std::move(refusal), upload);
    if (upload.has_nul) return send(connection, nul_refused(connection), upload);
    upload.takes_long = options_.takes_long && options_.takes_long(request);
    if (!upload.takes_long) return send(connection, respond(request), upload);
    if (unsent_ >= kMaxUnsentBytes) return send(connection, too_much_unsent(), upload);
    answer_later(connection, upload);
    return MHD_YES;
  }

  /// Has a thread of its own answer, while the connection is suspended: it has no time-out then,
  /// and `upload` stays.
  void answer_later(MHD_Connection* connection, Upload& upload) {
    MHD_suspend_connection(connection);
    const bool starts = answers_.start(
        [this, connection, &upload] {
          upload.answer = respond(upload.request);
          MHD_resume_connection(connection);
        },
        upload.request.only_reads() ? kMaxAnswering : kMaxAnswering + kReservedAnswering);
    if (starts) return;
    upload.answer = later("busy", "too many requests that take long are under way", "1");
    MHD_resume_connection(connection);
  }

  static HttpResponse later(const std::string& code, const std::string& why,
                            const std::string& seconds) {
    HttpResponse response =
        error_response(MHD_HTTP_SERVICE_UNAVAILABLE, code, why + "; ask again later");
    response.headers.emplace("Retry-After", seconds);
    return response;
  }

  /// Whoever does not read is disconnected after the idle timeout.
  HttpResponse too_much_unsent() const {
    return later("busy", "too much waits to be sent to clients that read slowly",
                 std::to_string(options_.idle_timeout.count()));
  }

  static HttpResponse nul_refused(MHD_Connection* connection) {
    std::string parameter;
    MHD_get_connection_values_n(connection, MHD_GET_ARGUMENT_KIND, find_nul, &parameter);
    return error_response(MHD_HTTP_BAD_REQUEST, "wrong_parameter",
                          (parameter.empty() ? "the address" : parameter + ":") +
                              " has a NUL (%00), which nothing here can have",
                          parameter);
  }

  static HttpResponse body_too_large() {
    return error_response(MHD_HTTP_CONTENT_TOO_LARGE, "body_too_large",
                          fmt::format("the body is larger than {} bytes", kMaxBodyBytes));
  }

  HttpResponse respond(const HttpRequest& request) {
    try {
      return handler_(request);
    } catch (const std::exception& error) {
      log::error("admin listener: {} {}: {}", request.method, request.path, error.what());
      return error_response(MHD_HTTP_INTERNAL_SERVER_ERROR, "internal", "see the log");
    }
  }

  std::optional<HttpResponse> refuse(const HttpRequest& request) const {
    if (socket_path_.empty()) {  // browsers cannot connect to Unix sockets
      const bool any_name = tls_ || (options_.access != nullptr && options_.access->has_tokens());
      if (auto refusal = host_check_->refuse(request, any_name)) return refusal;
    }
    return options_.refuse ? options_.refuse(request) : std::nullopt;
  }

  enum MHD_Result send(MHD_Connection* connection, HttpResponse answer, Upload& upload) {
    const std::size_t most = kMaxUnsentBytes + (upload.takes_long ? 0 : kReservedBytes);
    if (answer.body.size() > kSmallAnswer && unsent_ + answer.body.size() > most) {
      answer = too_much_unsent();
    }
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
      auto unsent = std::make_unique<Unsent>(std::move(answer.body), unsent_);
      response = MHD_create_response_from_buffer_with_free_callback_cls(
          unsent->text.size(), unsent->text.data(), &Unsent::free, unsent.get());
      if (response != nullptr) static_cast<void>(unsent.release());
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
    upload.sender = std::make_unique<StreamSender>(
        answer.stream, connection, [this, &upload] { return !refuse(upload.request); });
    {
      const std::lock_guard lock(senders_mutex_);
      senders_.insert(upload.sender.get());
      if (stopping_) upload.sender->end();
    }
    if (const auto* entry = entry_of(connection)) (*entry)->streams = true;
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
      if (const auto* entry = entry_of(connection)) (*entry)->streams = false;
      const std::lock_guard lock(impl.senders_mutex_);
      impl.senders_.erase(upload->sender.get());
    }
    if (code != MHD_REQUEST_TERMINATED_COMPLETED_OK) return;
    if (upload && upload->sender) {  // the next request may come
      MHD_set_connection_option(connection, MHD_CONNECTION_OPTION_TIMEOUT, impl.idle_seconds_);
    }
    if (const auto* entry = entry_of(connection)) impl.connections_.completed(*entry);
  }

  static const ClientConnections::Entry* entry_of(MHD_Connection* connection) {
    const auto* info = MHD_get_connection_info(connection, MHD_CONNECTION_INFO_SOCKET_CONTEXT);
    return info == nullptr ? nullptr : static_cast<ClientConnections::Entry*>(info->socket_context);
  }

  const Handler handler_;
  const AdminServerOptions options_;
  const unsigned idle_seconds_;
  const bool tls_;
  AnswerThreads answers_;
  std::size_t unsent_ = 0;  // bytes of answers
  std::mutex senders_mutex_;
  std::set<StreamSender*> senders_;  // changed with senders_mutex_ held, on the listener's thread
  bool stopping_ = false;            // guarded by senders_mutex_
  std::string address_;
  std::string socket_path_;
  std::optional<HostCheck> host_check_;
  bool local_only_ = true;
  ClientConnections connections_{kMaxConnections, kMaxConnectionsPerAddress};
  MHD_Daemon* daemon_ = nullptr;
};

AdminServer::AdminServer(const std::string& listen, Handler handler, AdminServerOptions options)
    : impl_(std::make_unique<Impl>(listen, std::move(handler), std::move(options))) {}
AdminServer::~AdminServer() {
  if (!impl_->end()) static_cast<void>(impl_.release());  // its stuck threads still use it
}
const std::string& AdminServer::address() const { return impl_->address(); }
bool AdminServer::uses_tls() const { return impl_->uses_tls(); }
bool AdminServer::local_only() const { return impl_->local_only(); }

}  // namespace framelane
