#include "config/common_keys.hpp"

namespace framelane {

const Section<BackoffOptions>& backoff_keys() {
  using namespace std::chrono_literals;
  static const Section<BackoffOptions> keys{
      {scalar<BackoffOptions>(
           "first", range(kDuration, micros(10ms), micros(1h)),
           "The first wait before another try (1s).",
           [](BackoffOptions& b, const Value& v) { b.first = v.milliseconds(); }),
       scalar<BackoffOptions>(
           "max", range(kDuration, micros(10ms), micros(24h)),
           "The longest wait (60s). The wait doubles from first up to this.",
           [](BackoffOptions& b, const Value& v) { b.max = v.milliseconds(); })}};
  return keys;
}

Key<ColorOverride> matrix_key(std::vector<std::string_view> names, std::string_view help) {
  return scalar<ColorOverride>(
      "matrix", words(std::move(names)), help,
      [](ColorOverride& c, const Value& v) { c.matrix = matrix_from_name(v.text); });
}

Key<ColorOverride> range_key(std::string_view help) {
  return scalar<ColorOverride>(
      "range", words({"auto", "limited", "full"}), help,
      [](ColorOverride& c, const Value& v) { c.range = range_from_name(v.text); });
}

Key<ColorOverride> siting_key(std::string_view help) {
  return scalar<ColorOverride>(
      "siting", words({"auto", "left", "center", "topleft"}), help,
      [](ColorOverride& c, const Value& v) { c.siting = siting_from_name(v.text); });
}

std::array<std::uint8_t, 3> color_of(const Value& value) {
  const auto byte = [&](int shift) {
    return static_cast<std::uint8_t>(value.number >> shift & 0xFF);
  };
  return {byte(16), byte(8), byte(0)};
}

}  // namespace framelane
