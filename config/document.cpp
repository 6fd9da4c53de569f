#include "config/document.hpp"

#include "config/feed_keys.hpp"

namespace framelane {
namespace {

const Section<LogConfig>& log_keys() {
  static const Section<LogConfig> keys{
      {scalar<LogConfig>(
           "level", words({"trace", "debug", "info", "warn", "error"}),
           "The least important messages to write (info).",
           [](LogConfig& l, const Value& v) { l.level = static_cast<LogLevel>(v.number); }),
       scalar<LogConfig>(
           "format", words({"text", "json"}), "How to write them (text).",
           [](LogConfig& l, const Value& v) { l.format = static_cast<LogFormat>(v.number); })},
      {}};
  return keys;
}

const Section<AdminConfig>& admin_keys() {
  static const Section<AdminConfig> keys{
      {scalar<AdminConfig>("listen", of(kListenAddress),
                           "Where metrics, API and status page are served (127.0.0.1:9853).",
                           [](AdminConfig& a, const Value& v) { a.listen = v.text; })},
      {"tokens", "tls", "insecure"}};
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

/// A part that cannot be read before the others are known.
Key<Document> part(std::string_view name, Shape shape, std::string_view help,
                   const Node* Document::*member) {
  return {{name, shape, help},
          [shape, member](const Node& node, Document& document, Reader& reader) {
            if (reader.require_map(node, shape)) document.*member = &node;
          }};
}

}  // namespace

const Section<Document>& document_keys() {
  static const Section<Document> keys = [] {
    Section<Document> section_of_all{
        {section<Document, LogConfig>("log", log_keys(), "What is written to standard error.",
                                      [](Document& d) -> LogConfig& { return d.log; }),
         section<Document, AdminConfig>("admin", admin_keys(), "The admin listener.",
                                        [](Document& d) -> AdminConfig& { return d.admin; }),
         scalar<Document>("device", of(kDeviceName), "Where frames are converted (auto).",
                          [](Document& d, const Value& v) { d.device = v.device; }),
         part("defaults", layer_shape(), "Merged under every feed.", &Document::defaults),
         part("profiles", map_of(layer_shape()),
              "Merged between the defaults and the feeds that name one.", &Document::profiles),
         part("feeds", map_of(feed_shape()), "The feeds, by name.", &Document::feeds)},
        {"recorder", "watchdog", "limits"}};
    section_of_all.keys.back().property.required = true;
    return section_of_all;
  }();
  return keys;
}

}  // namespace framelane
