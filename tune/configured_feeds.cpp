// The other side of what daemon/tune_feeds.cpp writes.
#include <fmt/core.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <stdexcept>

#include "kernels/scale_filter_names.hpp"
#include "tune/tune.hpp"

namespace framelane::bench {
namespace {

using Json = nlohmann::ordered_json;

/// The value of this name. Throws if there is none.
template <typename T>
T named(const Json& json, std::optional<T> (*from_name)(std::string_view)) {
  const auto name = json.get<std::string>();
  const std::optional<T> value = from_name(name);
  if (!value) throw std::runtime_error(name + " is not known");
  return *value;
}

ColorSpec color_of(const Json& json) {
  ColorSpec color;
  color.matrix = named(json.at(0), matrix_from_name);
  color.range = named(json.at(1), range_from_name);
  color.siting = named(json.at(2), siting_from_name);
  return color;
}

std::optional<ScaleFilter> filter_from_name(std::string_view name) {
  const auto* const found = std::ranges::find(kScaleFilterNames, name);
  if (found == kScaleFilterNames.end()) return std::nullopt;
  return static_cast<ScaleFilter>(found - kScaleFilterNames.begin());
}

Rect rect_of(const Json& json) { return {json.at(0), json.at(1), json.at(2), json.at(3)}; }

Scaling scaling_of(const Json& json) {
  const Json& target = json.at("target");
  const Json& background = json.at("background");
  return {.crop = rect_of(json.at("crop")),
          .target = {target.at(0), target.at(1)},
          .place = rect_of(json.at("place")),
          .filter = named(json.at("filter"), filter_from_name),
          .background = {background.at(0), background.at(1), background.at(2)},
          .orientation = {.transposed = json.at("transposed"),
                          .mirrored = json.at("mirrored"),
                          .upside_down = json.at("upside_down")}};
}

/// `feed` has the source, which all conversions of a feed have in common.
Conversion conversion_of(const Json& feed, const Json& json) {
  Conversion conversion{.width = feed.at("width"),
                        .height = feed.at("height"),
                        .source = named(feed.at("source"), pixel_format_from_name),
                        .source_color = color_of(feed.at("source_color")),
                        .target = named(json.at("target"), pixel_format_from_name),
                        .target_color = color_of(json.at("target_color")),
                        .overlaid = json.at("overlaid")};
  if (const Json& scaling = json.at("scaling"); !scaling.is_null()) {
    conversion.scaling = scaling_of(scaling);
  }
  if (is_bypass(conversion)) throw std::runtime_error("a conversion that makes nothing");
  if (const auto why = why_unsupported(conversion); why && !is_identity(conversion)) {
    throw std::runtime_error(*why);
  }
  return conversion;
}

FeedKind kind_of(const Json& json) {
  FeedKind kind;
  kind.names.push_back(json.at("name"));
  const auto own = [&json](const char* key) -> std::optional<int> {
    const Json& keys = json.at("own");
    if (std::ranges::find(keys, key) == keys.end()) return std::nullopt;
    return json.at(key).get<int>();
  };
  kind.own.push_back({own("lanes"), own("ring"), own("slices")});
  for (const Json& conversion : json.at("conversions")) {
    kind.conversions.push_back(conversion_of(json, conversion));
  }
  if (kind.conversions.empty()) throw std::runtime_error(kind.names.front() + " has no conversion");
  kind.rate = json.at("rate");
  kind.present = Settings{json.at("lanes"), json.at("ring"), json.at("slices")};
  kind.assumed = json.at("assumed");
  kind.advice = json.at("advice");
  return kind;
}

bool are_alike(const FeedKind& a, const FeedKind& b) {
  // What is set for ring and slices may stay, so feeds are alike only if it is the same.
  return a.conversions == b.conversions && a.rate == b.rate && a.assumed == b.assumed &&
         a.advice == b.advice && a.present->ring == b.present->ring &&
         a.present->slices == b.present->slices;
}

ConfiguredFeeds parsed(const std::string& text) {
  const Json json = Json::parse(text);
  ConfiguredFeeds result{json.at("device"), {}, json.at("left_out")};
  for (const Json& feed : json.at("feeds")) {
    FeedKind kind = kind_of(feed);
    const auto alike = std::ranges::find_if(
        result.kinds, [&](const FeedKind& other) { return are_alike(kind, other); });
    if (alike == result.kinds.end()) {
      result.kinds.push_back(std::move(kind));
    } else {
      alike->names.push_back(kind.names.front());
      alike->own.push_back(kind.own.front());
      ++alike->feeds;
    }
  }
  return result;
}

}  // namespace

ConfiguredFeeds configured_feeds(const std::string& text) {
  try {
    return parsed(text);
  } catch (const std::exception& error) {
    throw std::runtime_error(
        fmt::format("what framelane tune-feeds says is not what this framelane-bench reads, which "
                    "has to be of the same version: {}",
                    error.what()));
  }
}

}  // namespace framelane::bench
