#include <fmt/core.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "bench/harness/pictures.hpp"
#include "bench/harness/report.hpp"
#include "tune/tune.hpp"

namespace framelane::bench {
namespace {

using Json = nlohmann::ordered_json;

std::string names_of(const FeedKind& kind) {
  if (kind.names.empty()) return fmt::format("{} feed{}", kind.feeds, kind.feeds == 1 ? "" : "s");
  std::string text;
  for (const std::string& name : kind.names) text += (text.empty() ? "" : ", ") + name;
  return text;
}

std::string setting(const char* name, const std::string& value, const std::string& reason) {
  return fmt::format("  {:<8} {:<9} {}\n", name, value, reason);
}

}  // namespace

std::string as_text(const Tuning& tuning) {
  // The measurements are shown only if they led to no recommendation.
  if (tuning.kinds.empty()) return as_text(tuning.measured);
  std::string text;
  for (const Parameter& parameter : tuning.measured.setup) {
    text += fmt::format("{}: {}\n", parameter.name, to_string(parameter));
  }
  text += setting("device", tuning.device, tuning.device_reason);
  for (const TunedKind& tuned : tuning.kinds) {
    text += fmt::format("\n{}: {}\n", names_of(tuned.kind), describe(tuned.kind));
    if (!tuned.kind.assumed.empty()) text += "  (" + tuned.kind.assumed + ")\n";
    if (!tuned.kind.advice.empty()) text += setting("input", "too large", tuned.kind.advice);
    text += setting("lanes", std::to_string(tuned.settings.lanes), tuned.lanes_reason);
    text += setting("ring", std::to_string(tuned.settings.ring), tuned.ring_reason);
    text += setting("slices", slices_text(tuned.settings.slices), tuned.slices_reason);
    text +=
        setting("ceiling",
                fmt::format("{} feed{}", tuned.ceiling.feeds, tuned.ceiling.feeds == 1 ? "" : "s"),
                tuned.ceiling_reason);
  }
  const double percent = tuning.load * 100;
  text += fmt::format(
      "\nThese feeds' conversions need {} % of what {} does{}. Decoding and encoding are not in "
      "any of "
      "this.\n",
      percent < 10 ? fmt::format("{:.2g}", percent) : fmt::format("{:.0f}", percent),
      tuning.device == "cpu" ? "the CPU" : "the GPU",
      tuning.load > 1 ? ": they cannot all run at their rate" : "");
  for (const std::string& what : tuning.measured.left_out) text += "left out: " + what + '\n';
  for (const std::string& sentence : tuning.measured.verdict) text += "check: " + sentence + '\n';
  return text + "\nWhat to set in the configuration:\n\n" +
         as_yaml(tuning.device, settings_of(tuning));
}

std::string as_json(const Tuning& tuning) {
  Json json{{"device", tuning.device},
            {"device_reason", tuning.device_reason},
            {"load", tuning.load},
            {"kinds", Json::array()}};
  for (const TunedKind& tuned : tuning.kinds) {
    const FeedKind& kind = tuned.kind;
    const Conversion& any = kind.conversions.front();
    Json slices = tuned.settings.slices;
    if (tuned.settings.slices == kAutoSlices) slices = slices_text(tuned.settings.slices);
    json["kinds"].push_back({{"feeds", kind.names},
                             {"count", kind.feeds},
                             {"size", fmt::format("{}x{}", any.width, any.height)},
                             {"formats", formats_of(kind.conversions)},
                             {"rate", kind.rate},
                             {"encodes", kind.conversions.size()},
                             {"assumed", kind.assumed},
                             {"advice", kind.advice},
                             {"lanes", tuned.settings.lanes},
                             {"ring", tuned.settings.ring},
                             {"slices", std::move(slices)},
                             {"lanes_reason", tuned.lanes_reason},
                             {"ring_reason", tuned.ring_reason},
                             {"slices_reason", tuned.slices_reason},
                             {"ceiling_feeds", tuned.ceiling.feeds},
                             {"ceiling_reason", tuned.ceiling_reason},
                             {"frames_per_second", tuned.frames_per_second}});
  }
  json["measured"] = Json::parse(as_json(std::span(&tuning.measured, 1))).at("suites").at(0);
  return json.dump(2) + '\n';
}

}  // namespace framelane::bench
