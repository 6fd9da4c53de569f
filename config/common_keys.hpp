#pragma once

#include <chrono>

#include "config/keys.hpp"
#include "pipeline/base/av_option.hpp"
#include "pipeline/base/backoff.hpp"
#include "pipeline/base/color_override.hpp"
#include "pipeline/base/redact.hpp"

namespace framelane {

// What inputs, encodes and outputs have in common.

/// Limits of durations are given to `range` in microseconds.
constexpr std::int64_t micros(std::chrono::microseconds time) { return time.count(); }

/// A key with a map of FFmpeg options: any names, any scalars, passed on as text.
template <typename T>
Key<T> av_options(std::string_view help, AvOptions& (*select)(T&), bool defaults_may_go_unused) {
  Shape shape = map_of(of(kAnyScalar));
  shape.any_names = true;
  return {{"options", shape, help},
          [shape, select, defaults_may_go_unused](const Node& node, T& target, Reader& reader) {
            if (!reader.require_map(node, shape)) return;
            for (const Node::Entry& entry : node.entries) {
              const auto value = reader.scalar(entry.value, *shape.element);
              if (!value) continue;
              const bool from_defaults = entry.value.path.starts_with("defaults.");
              select(target).push_back(
                  {entry.key, value->text, defaults_may_go_unused && from_defaults});
            }
          }};
}

const Section<BackoffOptions>& backoff_keys();

/// Where inputs and outputs are alike; the texts say which is meant.
struct EndHelp {
  std::string_view url;
  std::string_view format;
  std::string_view options;
  std::string_view timeout;
  std::string_view reconnect;
};

/// The keys url, format, options, timeout and reconnect of an input or an output.
/// `unknown_format`: what is wrong with a name of a format.
template <typename T>
std::vector<Key<T>> end_keys(const EndHelp& help,
                             std::optional<std::string> (*unknown_format)(const std::string&),
                             bool defaults_may_go_unused) {
  using namespace std::chrono_literals;
  const Shape format = of(kText);
  const auto read_format = [format, unknown_format](const Node& node, T& end, Reader& reader) {
    const auto value = reader.scalar(node, format);
    if (!value) return;
    end.format = value->text;
    if (!reader.is_certain(node)) return;
    if (const auto problem = unknown_format(end.format)) reader.problems().add(node, *problem);
  };
  return {
      scalar<T>("url", of(kText), help.url,
                [](T& end, const Value& v) {
                  register_url_secrets(v.text);
                  end.url = v.text;
                }),
      {{"format", format, help.format}, read_format},
      av_options<T>(
          help.options, [](T& end) -> AvOptions& { return end.options; }, defaults_may_go_unused),
      scalar<T>("timeout", range(kDuration, micros(100ms), micros(1h)), help.timeout,
                [](T& end, const Value& v) { end.timeout = v.milliseconds(); }),
      section<T, BackoffOptions>("reconnect", backoff_keys(), help.reconnect,
                                 [](T& end) -> BackoffOptions& { return end.reconnect; })};
}

Key<ColorOverride> matrix_key(std::vector<std::string_view> names, std::string_view help);
Key<ColorOverride> range_key(std::string_view help);
Key<ColorOverride> siting_key(std::string_view help);

}  // namespace framelane
