#include "daemon/hooks.hpp"

#include <fmt/core.h>
#include <gnutls/crypto.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <system_error>

#include "daemon/incident_json.hpp"
#include "daemon/json_text.hpp"
#include "pipeline/base/log.hpp"
#include "pipeline/base/utc_time.hpp"

namespace framelane {
namespace {

using Json = nlohmann::ordered_json;

std::string this_host() {
  std::array<char, 256> name{};
  return gethostname(name.data(), name.size() - 1) == 0 ? name.data() : "";
}

std::string new_event_id() {
  std::array<unsigned char, 16> random{};
  gnutls_rnd(GNUTLS_RND_NONCE, random.data(), random.size());
  std::string id;
  for (const unsigned char byte : random) id += fmt::format("{:02x}", byte);
  return id;
}

Json time_or_null(const std::optional<CompletedFile::Time>& time) {
  return time ? Json(utc_time(*time)) : Json(nullptr);
}

void tell(const std::vector<std::shared_ptr<Hook>>& hooks, const char* kind, const Json& content) {
  std::string id = new_event_id();
  Json event{{"event", kind},
             {"id", id},
             {"time", utc_time(std::chrono::system_clock::now())},
             {"host", this_host()}};
  event.update(content);
  const auto shared =
      std::make_shared<const HookEvent>(HookEvent{kind, std::move(id), json_text(event)});
  for (const auto& hook : hooks) hook->push(shared);
}

}  // namespace

void Hooks::replace(const std::vector<HookConfig>& hooks) {
  List old = present();
  List next;
  for (const HookConfig& config : hooks) {
    const auto same = std::ranges::find_if(
        old, [&](const auto& hook) { return hook->config().name == config.name; });
    if (same != old.end()) {
      (*same)->change(config);
      next.push_back(std::move(*same));
      old.erase(same);
      continue;
    }
    try {
      next.push_back(std::make_shared<Hook>(config));
    } catch (const std::system_error& error) {
      log::error(
          "hook {}: delivers nothing, because no thread can be started ({}); raise the limit of "
          "threads (TasksMax), and reload the configuration",
          config.name, error.code().message());
    }
  }
  const std::lock_guard lock(mutex_);
  hooks_ = std::move(next);
}

Hooks::List Hooks::present() const {
  const std::lock_guard lock(mutex_);
  return hooks_;
}

Hooks::List Hooks::takers(bool HookConfig::*wants) const {
  List list = present();
  std::erase_if(list, [&](const auto& hook) { return !(hook->config().*wants); });
  return list;
}

void Hooks::file_completed(const CompletedFile& file) {
  const List hooks = takers(&HookConfig::on_segment);
  if (hooks.empty()) return;
  tell(hooks, "segment",
       {{"feed", file.feed},
        {"output", file.output},
        {"file", file.path},
        {"begin", time_or_null(file.begin)},
        {"end", time_or_null(file.end)},
        {"bytes", file.bytes}});
}

void Hooks::incidents_changed(const std::vector<Incident>& changed) {
  const List hooks = takers(&HookConfig::on_incident);
  const std::uint64_t before = newest_;
  for (const Incident& incident : changed) {
    newest_ = std::max(newest_, incident.id);
    const bool was_open = open_.contains(incident.id);
    const bool is_new = incident.id > before;
    if (incident.end ? !was_open && !is_new : was_open) continue;  // neither begins nor ends
    if (incident.end) {
      open_.erase(incident.id);
    } else {
      open_.insert(incident.id);
    }
    if (!hooks.empty()) {
      tell(hooks, "incident", {{"incident", Json::parse(incident_json(incident))}});
    }
  }
}

std::vector<std::pair<std::string, HookCounts>> Hooks::counts() const {
  std::vector<std::pair<std::string, HookCounts>> counts;
  for (const auto& hook : present()) counts.emplace_back(hook->config().name, hook->counts());
  return counts;
}

void Hooks::begin_stop(Clock::time_point now) {
  const std::lock_guard lock(mutex_);
  stop_by_ = now + kAfterStop;
}

void Hooks::finish(Clock::time_point now) {
  Clock::time_point until = now + kLast;
  {
    const std::lock_guard lock(mutex_);
    if (stop_by_) until = std::max(std::min(until, *stop_by_), now + kLeast);
  }
  for (const auto& hook : present()) hook->finish(until);
}

void Hooks::wait_finished() {
  for (const auto& hook : present()) {
    hook->finish(Clock::now());  // one that a reload has made since finish()
    hook->wait_finished();
  }
}

}  // namespace framelane
