#include "daemon/incident_json.hpp"

#include <algorithm>
#include <chrono>
#include <nlohmann/json.hpp>

#include "daemon/json_text.hpp"
#include "pipeline/base/labels.hpp"
#include "pipeline/base/utc_time.hpp"

namespace framelane {
namespace {

using Json = nlohmann::ordered_json;
using std::chrono::milliseconds;
using std::chrono::system_clock;

/// Numbers in JSON are exact up to here.
constexpr std::uint64_t kMostId = std::uint64_t{1} << 53;
constexpr double kMostSeconds = 1e10;

Json seconds(milliseconds time) { return std::chrono::duration<double>(time).count(); }

/// The keys of an object. Throws Json::exception, or Wrong, if one is not as incident_json()
/// writes it.
class Reader {
 public:
  struct Wrong {};

  explicit Reader(const Json& json) : json_(json) {}

  std::string text(const char* key) const {
    const Json& value = json_.at(key);
    return value.is_null() ? std::string() : value.get<std::string>();
  }
  system_clock::time_point time(const char* key) const {
    const auto time = parse_utc_time(json_.at(key).get<std::string>());
    return time ? *time : throw Wrong();
  }
  std::uint64_t number(const char* key) const {
    const Json& value = json_.at(key);
    if (!value.is_number_unsigned() || value.get<std::uint64_t>() > kMostId) throw Wrong();
    return value.get<std::uint64_t>();
  }
  milliseconds time_span(const char* key) const {
    const auto seconds = json_.at(key).get<double>();
    if (!(seconds >= 0 && seconds <= kMostSeconds)) throw Wrong();
    return std::chrono::round<milliseconds>(std::chrono::duration<double>(seconds));
  }
  template <typename Enum, typename Names>
  Enum name(const char* key, const Names& names) const {
    const auto found = std::ranges::find(names, json_.at(key).get<std::string>());
    return found != names.end() ? static_cast<Enum>(found - names.begin()) : throw Wrong();
  }
  bool has(const char* key) const { return !json_.at(key).is_null(); }

 private:
  const Json& json_;
};

}  // namespace

std::string incident_json(const Incident& incident) {
  const Json json{{"id", incident.id},
                  {"kind", kIncidentKindNames[index_of(incident.kind)]},
                  {"feed", text_or_null(incident.feed)},
                  {"encode", text_or_null(incident.encode)},
                  {"output", text_or_null(incident.output)},
                  {"device", text_or_null(incident.device)},
                  {"code", text_or_null(incident.code)},
                  {"reason", text_or_null(incident.reason)},
                  {"text", incident.text},
                  {"begin", utc_time(incident.begin)},
                  {"end", incident.end ? Json(utc_time(*incident.end)) : Json(nullptr)},
                  {"seconds", incident.end ? seconds(incident.lasted) : Json(nullptr)},
                  {"retries", incident.retries},
                  {"gap_seconds", incident.gap ? seconds(*incident.gap) : Json(nullptr)},
                  {"severity", kSeverityNames[index_of(incident.severity)]}};
  return json_text(json);
}

std::optional<Incident> parse_incident(std::string_view text) {
  try {
    const Json json = Json::parse(text);
    const Reader reader(json);
    Incident incident;
    incident.id = reader.number("id");
    incident.kind = reader.name<IncidentKind>("kind", kIncidentKindNames);
    incident.severity = reader.name<Severity>("severity", kSeverityNames);
    incident.feed = reader.text("feed");
    incident.encode = reader.text("encode");
    incident.output = reader.text("output");
    incident.device = reader.text("device");
    incident.code = reader.text("code");
    incident.reason = reader.text("reason");
    incident.text = reader.text("text");
    incident.begin = reader.time("begin");
    if (reader.has("end")) {
      incident.end = reader.time("end");
      incident.lasted = reader.time_span("seconds");
    }
    incident.retries = reader.number("retries");
    if (reader.has("gap_seconds")) incident.gap = reader.time_span("gap_seconds");
    return incident;
  } catch (const Json::exception&) {
    return std::nullopt;
  } catch (const Reader::Wrong&) {
    return std::nullopt;
  }
}

}  // namespace framelane
