#include <nlohmann/json.hpp>

#include <cstdio>
#include <fstream>
#include <iterator>
#include <stdexcept>
#include <string>
#include <vector>

#include "config/config.hpp"
#include "daemon/cli.hpp"
#include "daemon/commands.hpp"
#include "daemon/gzip.hpp"
#include "daemon/http_client.hpp"
#include "daemon/trace_request.hpp"
#include "pipeline/base/redact.hpp"
#include "pipeline/output/replace_file.hpp"

namespace framelane {
namespace {

/// The daemon packs what it has recorded; a large recorder is full after minutes.
constexpr std::chrono::minutes kTracePatience{2};
constexpr std::size_t kMostUnpacked = std::size_t{8} << 30;

/// The file's text without white space at its end.
std::string read_token(const std::string& file) {
  std::ifstream stream(file);
  std::string token{std::istreambuf_iterator<char>(stream), {}};
  if (!stream.good() && !stream.eof()) {
    throw std::runtime_error("the token file " + file + " cannot be read");
  }
  token.erase(token.find_last_not_of(" \t\r\n") + 1);
  if (token.empty()) throw std::runtime_error("the token file " + file + " is empty");
  if (token.find_first_of("\r\n") != std::string::npos) {
    throw std::runtime_error("the token file " + file + " has more than one line");
  }
  register_secret(token);
  return token;
}

/// What the daemon says against the request.
std::string reason_of(const FetchResult& result) {
  const auto json = nlohmann::json::parse(result.body, nullptr, false);
  const auto message = nlohmann::json::json_pointer("/error/message");
  const bool says = !json.is_discarded() && json.contains(message) && json[message].is_string();
  return "HTTP status " + std::to_string(result.status) +
         (says ? ": " + json[message].get<std::string>() : std::string());
}

std::string fetch(const TraceArguments& arguments, const AdminAddress& listener) {
  std::vector<std::string> headers{"Accept-Encoding: gzip"};
  if (!arguments.token_file.empty()) {
    headers.push_back("Authorization: Bearer " + read_token(arguments.token_file));
  }
  std::string path = "/api/v1/trace?seconds=" + std::to_string(arguments.seconds);
  if (!arguments.feed.empty()) path += "&feed=" + arguments.feed;
  FetchResult result = http_get(listener.listen, path, kTracePatience, listener.tls, headers);
  if (result.status != 200) throw std::runtime_error(reason_of(result));
  return std::move(result.body);
}

void write(const std::string& trace, const std::string& output) {
  if (output != "-") return replace_file(output, trace);
  std::fwrite(trace.data(), 1, trace.size(), stdout);
  if (std::fflush(stdout) != 0) throw std::runtime_error("standard output cannot be written");
}

}  // namespace

int trace_command(const TraceArguments& arguments) {
  std::vector<Problem> problems;
  try {
    const AdminAddress listener = find_listener(arguments.config, arguments.url, problems);
    const std::string packed = fetch(arguments, listener);
    const bool stays_packed = arguments.output.ends_with(".gz");
    write(stays_packed ? packed : unpack_gzip(packed, kMostUnpacked), arguments.output);
    return kExitDone;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "framelane: %s\n", redact(error.what()).c_str());
  }
  // The configuration was unreadable, so the default address was asked.
  return problems.empty() ? kExitFailed : print_problems(problems);
}

}  // namespace framelane
