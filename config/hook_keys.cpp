#include "config/hook_keys.hpp"

#include <curl/curl.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "config/common_keys.hpp"
#include "pipeline/base/redact.hpp"

namespace framelane {
namespace {

constexpr std::size_t kMostHooks = 32;
constexpr std::size_t kShortestSecret = 16;

Key<HookConfig> on_key() {
  Shape shape = words({"segment", "incident"});
  shape.list = true;
  return {
      {"on", shape,
       "What is delivered: segment (a file of a recording is complete), incident (one begins or "
       "ends), or both.",
       true},
      [shape](const Node& node, HookConfig& hook, Reader& reader) {
        if (node.items_or_self().empty()) {
          reader.problems().add(node, "names nothing; name segment, incident or both");
        }
        for (const Node& item : node.items_or_self()) {
          const auto word = reader.scalar(item, shape);
          if (!word) continue;
          (word->number == 0 ? hook.on_segment : hook.on_incident) = true;
        }
      }};
}

/// The host of a URL as libcurl reads it; what is wrong with the URL in `problem`.
std::string checked_host(const std::string& url, std::string& problem) {
  const std::unique_ptr<CURLU, decltype(&curl_url_cleanup)> parsed(curl_url(), curl_url_cleanup);
  const auto part = [&](CURLUPart which) {
    char* text = nullptr;
    std::string found;
    if (curl_url_get(parsed.get(), which, &text, 0) == CURLUE_OK) found = text;
    curl_free(text);
    return found;
  };
  const bool whole =
      curl_url_set(parsed.get(), CURLUPART_URL, url.c_str(), CURLU_NON_SUPPORT_SCHEME) == CURLUE_OK;
  const std::string scheme = part(CURLUPART_SCHEME);
  std::string host = part(CURLUPART_HOST);
  if (whole && scheme != "http" && scheme != "https") {
    problem = "is not a URL of http:// or https://, the only ones that events are sent to";
  } else if (!whole || host.empty() || url.find(":///") < url.find_first_of("?#")) {
    // libcurl takes the first part of http:///path for the host.
    problem =
        "is not a whole URL; write one such as https://host:8443/path, with a port up to 65535, "
        "and percent-encode spaces and other special characters (@ as %40)";
  } else if (part(CURLUPART_PORT) == "0") {
    problem = "has port 0, where nothing can listen; write the receiver's port";
  } else if (url.find('#') != std::string::npos) {
    problem = "has a fragment (#), which no receiver gets; leave it out, or write # as %23";
  }
  return host;
}

const Section<HookConfig>& hook_keys() {
  using namespace std::chrono_literals;
  static const Section<HookConfig> keys{
      {on_key(),
       {{"url", of(kText), "Where events are sent with POST: http:// or https://.", true},
        [](const Node& node, HookConfig& hook, Reader& reader) {
          const auto url = reader.scalar(node, of(kText));
          if (!url) return;
          register_url_secrets(url->text);
          hook.url = url->text;
          if (!reader.is_certain(node)) return;
          std::string problem;
          const std::string host = checked_host(hook.url, problem);
          if (!problem.empty()) return reader.problems().add(node, std::move(problem));
          if (hook.name.empty()) hook.name = host;
        }},
       {{"secret", of(kText),
         "The key with which deliveries are signed (none: they are not signed)."},
        [](const Node& node, HookConfig& hook, Reader& reader) {
          const auto secret = reader.scalar(node, of(kText));
          if (!secret) return;
          register_secret(secret->text);
          hook.secret = secret->text;
          if (!reader.is_certain(node) || hook.secret.size() >= kShortestSecret) return;
          reader.problems().add(node, "has less than " + std::to_string(kShortestSecret) +
                                          " characters; make one with: openssl rand -hex 32");
        }},
       scalar<HookConfig>("name", of(kIdentifier),
                          "What the hook is called in the log and in metrics (the URL's host).",
                          [](HookConfig& h, const Value& v) { h.name = v.text; }),
       scalar<HookConfig>("timeout", range(kDuration, micros(100ms), micros(5min)),
                          "How long a try may take (10s).",
                          [](HookConfig& h, const Value& v) { h.timeout = v.milliseconds(); })}};
  return keys;
}

}  // namespace

Key<std::vector<HookConfig>> hooks_key() {
  Shape shape = hook_keys().shape();
  shape.list = true;
  shape.least_items = 0;
  shape.most_items = kMostHooks;
  return {{"hooks", shape, "Where events are sent, as JSON over HTTP (nowhere)."},
          [](const Node& node, std::vector<HookConfig>& hooks, Reader& reader) {
            const auto nodes = node.items_or_self();
            if (nodes.size() > kMostHooks) {
              return reader.problems().add(
                  node, "has more than " + std::to_string(kMostHooks) +
                            " hooks; let one receiver hand events on to the others");
            }
            std::set<std::pair<std::string, std::string>> told;  // the URLs, and what each is told
            for (const Node& item : nodes) {
              HookConfig hook;
              hook_keys().read(item, hook, reader);
              if (!item.is_map()) continue;
              constexpr std::array<std::array<const char*, 2>, 2> kRequired{
                  {{"on", "say what is delivered: segment, incident or both"},
                   {"url", "say where events are sent"}}};
              for (const auto& [key, remedy] : kRequired) {
                if (item.find(key) == nullptr) reader.problems().add_missing(item, key, remedy);
              }
              const Node* const url = item.find("url");
              const bool known = !hook.url.empty() && reader.is_certain(*url);
              std::string twice;
              for (const auto& [is_told, what] : {std::pair(hook.on_segment, "segment"),
                                                  std::pair(hook.on_incident, "incident")}) {
                if (known && is_told && !told.emplace(hook.url, what).second) twice = what;
              }
              if (!twice.empty()) {
                std::string problem = "is that of another hook, so each ";
                problem.append(twice).append(" would come twice; leave ").append(twice);
                problem += " out of one of the two, or remove one";
                reader.problems().add(*url, std::move(problem));
                continue;
              }
              const bool named = !hook.name.empty();
              if (named && std::ranges::find(hooks, hook.name, &HookConfig::name) != hooks.end()) {
                const Node* const name = item.find("name");
                reader.problems().add(name == nullptr ? item : *name,
                                      "is the second hook that is called " + in_quotes(hook.name) +
                                          "; give it another name");
              }
              hooks.push_back(std::move(hook));
            }
          }};
}

}  // namespace framelane
