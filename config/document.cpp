#include "config/document.hpp"

#include <utility>

#include "config/admin_keys.hpp"
#include "config/feed_keys.hpp"
#include "config/hook_keys.hpp"

namespace framelane {
namespace {

constexpr std::string_view kLimits = "limits";
constexpr std::string_view kProtocols = "protocols";

const Section<LogConfig>& log_keys() {
  static const Section<LogConfig> keys{
      {scalar<LogConfig>(
           "level", words({"trace", "debug", "info", "warn", "error"}),
           "The least important messages to write (info).",
           [](LogConfig& l, const Value& v) { l.level = static_cast<LogLevel>(v.number); }),
       scalar<LogConfig>(
           "format", words({"text", "json"}), "The form of the messages (text).",
           [](LogConfig& l, const Value& v) { l.format = static_cast<LogFormat>(v.number); })}};
  return keys;
}

const Section<WatchdogConfig>& watchdog_keys() {
  static const Section<WatchdogConfig> keys{{scalar<WatchdogConfig>(
      "max_abandoned", range(kInteger, 0, 100'000),
      "How many threads may be stuck in calls that do not return. With more, framelane ends "
      "with status 1, so that it is started again (no limit).",
      [](WatchdogConfig& w, const Value& v) { w.max_abandoned = static_cast<int>(v.number); })}};
  return keys;
}

const Section<RecorderConfig>& recorder_keys() {
  constexpr std::int64_t kMost = std::int64_t{64} << 30;
  static const Section<RecorderConfig> keys{
      {scalar<RecorderConfig>("memory", range(kSize, 0, kMost),
                              "How much memory the flight recorder has (64M). 0 turns it off.",
                              [](RecorderConfig& r, const Value& v) { r.memory = v.number; }),
       scalar<RecorderConfig>(
           "directory", of(kText),
           "The folder to which a trace is written when frames are lost, when a feed or a GPU "
           "fails, and on SIGUSR1 (none).",
           [](RecorderConfig& r, const Value& v) { r.directory = v.text; })}};
  return keys;
}

Shape layer_shape() {
  Shape shape = layer_keys().shape();
  shape.definition = "layer";
  return shape;
}

Shape feed_shape() {
  Shape shape = feed_keys().shape();
  shape.definition = "feed";
  return shape;
}

/// A key whose node is kept, to be read when the other parts are known.
Key<Document> part(std::string_view name, Shape shape, std::string_view help,
                   const Node* Document::*member) {
  return {{name, shape, help},
          [shape, member](const Node& node, Document& document, Reader& reader) {
            if (reader.require_map(node, shape)) document.*member = &node;
          }};
}

/// The keys of `limits`. Their values are read with those of each input.
const Section<Document>& limits_keys() {
  static const Section<Document> keys = [] {
    const auto later = [](const Node&, Document&, Reader&) {};
    Section<Document> table;
    for (const Property& limit : input_keys().find(kLimits)->property.shape.properties) {
      table.keys.push_back({limit, later});
    }
    table.keys.push_back({input_keys().find(kProtocols)->property, later});
    return table;
  }();
  return keys;
}

Node map_at(const Node& place) {
  Node map = place;
  map.kind = Node::Kind::kMap;
  map.entries.clear();
  return map;
}

Shape listed(Shape shape) {
  shape.list = true;
  return shape;
}

}  // namespace

const Section<Document>& document_keys() {
  static const Section<Document> keys = [] {
    Section<Document> table{
        {section<Document, LogConfig>("log", log_keys(), "The messages on standard error.",
                                      [](Document& d) -> LogConfig& { return d.log; }),
         {{"admin", admin_keys().shape(), "The admin listener."},
          [](const Node& node, Document& document, Reader& reader) {
            admin_keys().read(node, document.admin, reader);
            check_admin(node, document.admin, reader);
          }},
         section<Document, WatchdogConfig>(
             "watchdog", watchdog_keys(), "When framelane ends itself, to be started again.",
             [](Document& d) -> WatchdogConfig& { return d.watchdog; }),
         section<Document, RecorderConfig>(
             "recorder", recorder_keys(),
             "The flight recorder: what happened to every frame of the last minutes.",
             [](Document& d) -> RecorderConfig& { return d.recorder; }),
         {hooks_key().property,
          [](const Node& node, Document& document, Reader& reader) {
            hooks_key().read(node, document.hooks, reader);
          }},
         scalar<Document>(
             "device", of(kDeviceName),
             "Where frames are converted: on the CPU, on any GPU or on one (auto: on all "
             "GPUs, or the CPU if there is none).",
             [](Document& d, const Value& v) { d.device = v.device; }),
         // What it includes stands in the tree already.
         {{"include", listed(of(kText)),
           "Files with further feeds and profiles, as patterns such as feeds.d/*.yaml. Relative "
           "ones begin in the folder of this file."},
          [](const Node& node, Document&, Reader& reader) {
            for (const Node& item : node.items_or_self()) {
              if (item.kind != Node::Kind::kScalar) reader.wrong_type(item, of(kText));
            }
          }},
         {{kLimits, limits_keys().shape(),
           "What every input may make framelane read and hold, unless the defaults, its profile or "
           "its feed say otherwise."},
          [](const Node& node, Document& document, Reader& reader) {
            limits_keys().read(node, document, reader);
            if (node.is_map()) document.limits = &node;
          }},
         part("defaults", layer_shape(),
              "Keys that every feed has unless it, or its profile, says otherwise.",
              &Document::defaults),
         part("profiles", map_of(layer_shape()),
              "Named sets of keys. A feed that names one is merged over it, and it over the "
              "defaults.",
              &Document::profiles),
         part("feeds", map_of(feed_shape()), "The feeds, by name.", &Document::feeds)}};
    return table;
  }();
  return keys;
}

Node layer_of_limits(const Node& limits) {
  Node input = map_at(limits);
  Node of_input = map_at(limits);
  for (const Node::Entry& entry : limits.entries) {
    if (limits_keys().find(entry.key) == nullptr) continue;  // which is reported
    (entry.key == kProtocols ? input : of_input).entries.push_back(entry);
  }
  input.entries.push_back({std::string(kLimits), std::move(of_input)});
  Node layer = map_at(limits);
  layer.entries.push_back({"input", std::move(input)});
  return layer;
}

}  // namespace framelane
