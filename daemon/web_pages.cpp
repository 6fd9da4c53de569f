#include "daemon/web_pages.hpp"

#include <algorithm>
#include <string>
#include <string_view>

#include "daemon/web_files.hpp"

namespace framelane {
namespace {

/// Scripts and styles of files alone, nothing from elsewhere. blob: is for thumbnails and for what
/// hls.js hands to the video element.
constexpr std::string_view kPagePolicy =
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' blob:; "
    "connect-src 'self'; media-src 'self' blob:; frame-ancestors 'none'; base-uri 'none'; "
    "form-action 'none'";

/// If-None-Match: a list of tags, or *.
bool client_has(const HttpRequest& request, std::string_view etag) {
  const auto tags = request.headers.find("if-none-match");
  return tags != request.headers.end() &&
         (tags->second == "*" || tags->second.find(etag) != std::string::npos);
}

}  // namespace

bool wants_html(const HttpRequest& request) {
  const auto accept = request.headers.find("accept");
  return accept != request.headers.end() && accept->second.find("text/html") != std::string::npos;
}

HttpResponse web_page(const HttpRequest& request) {
  const std::string_view path = request.path;
  const std::string_view name =
      path.starts_with(kWebFolder) ? path.substr(kWebFolder.size()) : "index.html";
  const auto file = std::ranges::find(web_files(), name, &WebFile::name);
  if (file == web_files().end()) {
    return error_response(404, "not_found", "there is nothing at " + request.path);
  }
  HttpResponse response;
  response.content_type = file->content_type;
  response.headers = {{"Cache-Control", "no-cache"},
                      {"Content-Security-Policy", std::string(kPagePolicy)},
                      {"ETag", std::string(file->etag)},
                      {"Vary", "Accept"}};  // "/" is a list of paths for other clients
  if (client_has(request, file->etag)) {
    response.status = 304;
  } else {
    response.body = file->bytes;
  }
  return response;
}

}  // namespace framelane
