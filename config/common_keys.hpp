#pragma once

#include <chrono>

#include "config/keys.hpp"
#include "pipeline/options.hpp"

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
/// A key with how long a peer may be silent.
Shape timeout_shape();
Key<ColorOverride> matrix_key(std::vector<std::string_view> names, std::string_view help);
Key<ColorOverride> range_key(std::string_view help);
Key<ColorOverride> siting_key(std::string_view help);

}  // namespace framelane
