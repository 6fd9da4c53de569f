#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "config/keys.hpp"
#include "pipeline/base/av_option.hpp"
#include "pipeline/base/backoff.hpp"
#include "pipeline/base/color_override.hpp"
#include "pipeline/base/redact.hpp"

namespace framelane {

// The keys that inputs, encodes and outputs have in common.

/// A limit of a duration, in the unit that `range` takes.
constexpr std::int64_t micros(std::chrono::microseconds time) { return time.count(); }

/// The key `options`: a map of FFmpeg options with any names and any scalars, which are passed on
/// as text. With `defaults_may_go_unused`, an option that comes from `defaults` may be one that
/// nothing uses.
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
              register_option_secrets(entry.key, value->text);
              const bool from_defaults = entry.value.path.starts_with("defaults.");
              select(target).push_back(
                  {entry.key, value->text, defaults_may_go_unused && from_defaults});
            }
          }};
}

const Section<BackoffOptions>& backoff_keys();

/// The help texts of endpoint_keys(), which differ between inputs and outputs.
struct EndpointHelp {
  std::string_view url;
  std::string_view format;
  std::string_view options;
  std::string_view timeout;
  std::string_view reconnect;
};

/// The keys url, format, options, timeout and reconnect of an input or an output. `unknown_format`
/// returns what is wrong with the name of a format.
template <typename T>
std::vector<Key<T>> endpoint_keys(const EndpointHelp& help,
                                  std::optional<std::string> (*unknown_format)(const std::string&),
                                  bool defaults_may_go_unused) {
  using namespace std::chrono_literals;
  const Shape format = of(kText);
  const auto read_format = [format, unknown_format](const Node& node, T& endpoint, Reader& reader) {
    const auto value = reader.scalar(node, format);
    if (!value) return;
    endpoint.format = value->text;
    if (!reader.is_certain(node)) return;
    if (const auto problem = unknown_format(endpoint.format)) reader.problems().add(node, *problem);
  };
  return {scalar<T>("url", of(kText), help.url,
                    [](T& endpoint, const Value& v) {
                      register_url_secrets(v.text);
                      endpoint.url = v.text;
                    }),
          {{"format", format, help.format}, read_format},
          av_options<T>(
              help.options, [](T& endpoint) -> AvOptions& { return endpoint.options; },
              defaults_may_go_unused),
          scalar<T>("timeout", range(kDuration, micros(100ms), micros(1h)), help.timeout,
                    [](T& endpoint, const Value& v) { endpoint.timeout = v.milliseconds(); }),
          section<T, BackoffOptions>(
              "reconnect", backoff_keys(), help.reconnect,
              [](T& endpoint) -> BackoffOptions& { return endpoint.reconnect; })};
}

Key<ColorOverride> matrix_key(std::vector<std::string_view> names, std::string_view help);
Key<ColorOverride> range_key(std::string_view help);
Key<ColorOverride> siting_key(std::string_view help);

/// R'G'B' of a value of the type kColorCode.
std::array<std::uint8_t, 3> color_of(const Value& value);

}  // namespace framelane
