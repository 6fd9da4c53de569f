#include <chrono>
#include <cstdio>
#include <exception>
#include <stdexcept>
#include <string>
#include <vector>

#include "config/config.hpp"
#include "daemon/cli.hpp"
#include "daemon/commands.hpp"
#include "daemon/http_client.hpp"
#include "pipeline/base/redact.hpp"

namespace framelane {
namespace {

/// Asks the listener of the configuration. Where `tls` has come into the file, or gone from it, and
/// waits for the next start, it speaks the other protocol until then.
FetchResult ask_own_listener(const AdminAddress& listener) {
  using namespace std::chrono_literals;
  try {
    return http_get(listener.listen, "/readyz", 3s, listener.tls);
  } catch (const std::exception&) {
    try {
      return http_get(listener.listen, "/readyz", 1s, !listener.tls);  // the image's check has 5 s
    } catch (const std::exception&) {
      // The first failure is told: it is that of the protocol in the file.
    }
    throw;
  }
}

}  // namespace

AdminAddress find_listener(const std::string& config, const std::string& url,
                           std::vector<Problem>& problems) {
  if (!url.empty()) {
    register_url_secrets(url);
    return {url, false};
  }
  AdminAddress listener = load_admin_address(config, problems);
  if (!listener.listen.empty()) return listener;
  throw std::runtime_error(config +
                           ": admin.listen is empty, so there is no admin listener to ask");
}

int healthcheck_command(const std::string& config, const std::string& url) {
  std::vector<Problem> problems;
  std::string failure;
  try {
    const AdminAddress listener = find_listener(config, url, problems);
    const FetchResult result = url.empty() ? ask_own_listener(listener)
                                           : http_get(url, "/readyz", std::chrono::seconds(3));
    if (result.status == 200) return kExitDone;
    failure = "not ready: HTTP status " + std::to_string(result.status);
  } catch (const std::exception& error) {
    failure = redact(error.what());
  }
  // If the address could not be read, the default one was asked, which tells nothing.
  if (!problems.empty()) return print_problems(problems);
  std::fprintf(stderr, "%s\n", failure.c_str());
  return kExitFailed;
}

}  // namespace framelane
