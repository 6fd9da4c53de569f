#pragma once

#include "daemon/admin_server.hpp"

namespace framelane {

/// Where the files of the status page are: "/web/NAME".
inline constexpr std::string_view kWebFolder = "/web/";

/// True if the client wants a page for people: it names text/html among what it accepts.
bool wants_html(const HttpRequest& request);
/// Answers GET and HEAD of "/" (index.html) and of what is below kWebFolder; 404 if no file has
/// that name, 304 if the client has it. Any thread; does not block.
HttpResponse web_page(const HttpRequest& request);

}  // namespace framelane
