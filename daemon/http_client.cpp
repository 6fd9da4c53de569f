#include "daemon/http_client.hpp"

#include <curl/curl.h>

#include <array>
#include <cstdlib>
#include <stdexcept>
#include <system_error>
#include <utility>

#include "daemon/socket_address.hpp"
#include "daemon/version.hpp"

namespace framelane {
namespace {

struct Body {
  std::string text;
  std::size_t most;
  bool too_long = false;
};

std::size_t take_body(const char* data, std::size_t /*one*/, std::size_t size, void* body_of_call) {
  Body& body = *static_cast<Body*>(body_of_call);
  body.too_long = body.text.size() + size > body.most;
  if (body.too_long) return 0;  // which ends the call
  body.text.append(data, size);
  return size;
}

/// What went wrong. `text` is libcurl's own, and may be empty.
std::string curl_problem(CURL* curl, CURLcode code, const std::string& text) {
  std::string detail = text.empty() ? curl_easy_strerror(code) : text;
  switch (code) {
    case CURLE_OPERATION_TIMEDOUT:
      return "no answer in time";
    case CURLE_COULDNT_CONNECT: {
      long error = 0;
      curl_easy_getinfo(curl, CURLINFO_OS_ERRNO, &error);
      return "cannot connect: " +
             (error == 0 ? detail : std::generic_category().message(static_cast<int>(error)));
    }
    case CURLE_PEER_FAILED_VERIFICATION:
      return "its certificate is not accepted: " + detail;
    case CURLE_SSL_CACERT_BADFILE:
      return "its certificate cannot be checked: " + detail +
             "; install ca-certificates, or name a file with authorities in SSL_CERT_FILE";
    case CURLE_SSL_CONNECT_ERROR:
      return "no TLS connection: " + detail;
    case CURLE_UNSUPPORTED_PROTOCOL:
    case CURLE_WEIRD_SERVER_REPLY:
      return "the answer is not HTTP";
    case CURLE_PARTIAL_FILE:
      return "the answer was cut off";
    case CURLE_GOT_NOTHING:
      return "the connection was closed without an answer";
    default:
      return detail;
  }
}

std::string authority_of(const SocketAddress& address) {
  // A wildcard address can only be listened on, so the listener is on this machine.
  if (address.host == "0.0.0.0") return "127.0.0.1:" + address.port;
  if (address.host == "::") return "[::1]:" + address.port;
  const bool v6 = address.host.find(':') != std::string::npos;
  return (v6 ? "[" + address.host + "]" : address.host) + ":" + address.port;
}

HttpCall call_of(const std::string& listen_or_url, bool tls) {
  HttpCall call;
  if (listen_or_url.starts_with("http://") || listen_or_url.starts_with("https://")) {
    call.url = listen_or_url;
    while (call.url.ends_with('/')) call.url.pop_back();
    return call;
  }
  call.check_certificate = false;
  const SocketAddress address = parse_socket_address(listen_or_url);
  call.unix_socket = address.path;
  call.url = address.is_unix() ? "http://localhost"
                               : (tls ? "https://" : "http://") + authority_of(address);
  return call;
}

}  // namespace

struct HttpClient::Handles {
  Handles() {
    static const CURLcode ready = curl_global_init(CURL_GLOBAL_DEFAULT);
    multi = curl_multi_init();
    easy = curl_easy_init();
    if (ready != CURLE_OK || multi == nullptr || easy == nullptr) {
      clean();
      throw std::runtime_error("no HTTP client: memory is short");
    }
  }
  ~Handles() { clean(); }
  Handles(const Handles&) = delete;
  Handles& operator=(const Handles&) = delete;

  CURLM* multi = nullptr;
  CURL* easy = nullptr;

 private:
  void clean() {
    curl_easy_cleanup(easy);
    curl_multi_cleanup(multi);
  }
};

HttpClient::HttpClient() : handles_(std::make_unique<Handles>()) {}
HttpClient::~HttpClient() = default;

HttpAnswer HttpClient::ask(const HttpCall& call) {
  CURL* const curl = handles_->easy;
  CURLM* const multi = handles_->multi;
  std::array<char, CURL_ERROR_SIZE> text{};
  Body body{.text = {}, .most = call.most_body};
  curl_slist* lines = nullptr;
  for (const std::string& line : call.headers) lines = curl_slist_append(lines, line.c_str());
  const std::unique_ptr<curl_slist, decltype(&curl_slist_free_all)> headers(lines,
                                                                            curl_slist_free_all);
  const std::string agent = "framelane/" + version_info().version;

  curl_easy_reset(curl);
  curl_easy_setopt(curl, CURLOPT_ERRORBUFFER, text.data());
  curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L);
  curl_easy_setopt(curl, CURLOPT_QUICK_EXIT, 1L);  // a name server that is silent holds up nothing
  curl_easy_setopt(curl, CURLOPT_PROTOCOLS_STR, "http,https");
  curl_easy_setopt(curl, CURLOPT_URL, call.url.c_str());
  curl_easy_setopt(curl, CURLOPT_USERAGENT, agent.c_str());
  curl_easy_setopt(curl, CURLOPT_HTTPHEADER, headers.get());
  curl_easy_setopt(curl, CURLOPT_TIMEOUT_MS, static_cast<long>(call.timeout.count()));
  curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, take_body);
  curl_easy_setopt(curl, CURLOPT_WRITEDATA, &body);
  if (!call.use_proxy) curl_easy_setopt(curl, CURLOPT_PROXY, "");
  if (!call.unix_socket.empty()) {
    curl_easy_setopt(curl, CURLOPT_UNIX_SOCKET_PATH, call.unix_socket.c_str());
  }
  if (call.body) {
    curl_easy_setopt(curl, CURLOPT_POSTFIELDSIZE_LARGE, static_cast<curl_off_t>(call.body->size()));
    curl_easy_setopt(curl, CURLOPT_POSTFIELDS, call.body->data());
  }
  if (!call.check_certificate) {
    curl_easy_setopt(curl, CURLOPT_SSL_VERIFYPEER, 0L);
    curl_easy_setopt(curl, CURLOPT_SSL_VERIFYHOST, 0L);
  } else if (const char* const authorities = std::getenv("SSL_CERT_FILE")) {
    curl_easy_setopt(curl, CURLOPT_CAINFO, authorities);
  }

  CURLcode code = CURLE_ABORTED_BY_CALLBACK;
  CURLMcode state = curl_multi_add_handle(multi, curl);
  for (int running = 1; state == CURLM_OK && running > 0 && !interrupted_;) {
    state = curl_multi_perform(multi, &running);
    if (state == CURLM_OK && running > 0) {
      state = curl_multi_poll(multi, nullptr, 0, 1000, nullptr);  // interrupt() wakes it
    }
  }
  int left = 0;
  if (const CURLMsg* const message = curl_multi_info_read(multi, &left)) {
    code = message->data.result;
  }
  HttpAnswer answer;
  long status = 0;
  curl_off_t wait = 0;
  curl_easy_getinfo(curl, CURLINFO_RESPONSE_CODE, &status);
  curl_easy_getinfo(curl, CURLINFO_RETRY_AFTER, &wait);
  answer.status = static_cast<int>(status);
  answer.retry_after = std::chrono::seconds(wait);
  if (state != CURLM_OK) {
    answer.problem = curl_multi_strerror(state);
  } else if (body.too_long) {
    answer.problem = "the answer does not end";
  } else if (code == CURLE_ABORTED_BY_CALLBACK) {
    answer.problem = "the call was interrupted";
  } else if (code != CURLE_OK) {
    answer.problem = curl_problem(curl, code, text.data());
  }
  curl_multi_remove_handle(multi, curl);
  answer.body = std::move(body.text);
  return answer;
}

void HttpClient::interrupt() {
  interrupted_ = true;
  curl_multi_wakeup(handles_->multi);
}

FetchResult http_get(const std::string& listen_or_url, const std::string& path,
                     std::chrono::milliseconds timeout, bool tls,
                     const std::vector<std::string>& headers) {
  try {
    HttpCall call = call_of(listen_or_url, tls);
    call.url += path;
    call.headers = headers;
    call.timeout = timeout;
    HttpAnswer answer = HttpClient().ask(call);
    if (!answer.problem.empty()) throw std::runtime_error(answer.problem);
    return {answer.status, std::move(answer.body)};
  } catch (const std::runtime_error& error) {
    throw std::runtime_error(listen_or_url + ": " + error.what());
  }
}

}  // namespace framelane
