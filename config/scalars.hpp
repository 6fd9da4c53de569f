#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>

#include "config/config.hpp"

namespace framelane {

/// A scalar that was understood; which fields are set depends on its type.
struct Value {
  std::string text;         ///< always: with variables expanded
  std::int64_t number = 0;  ///< integers, bytes, bits/s, microseconds, 0 or 1, index of a word
  Rational ratio;           ///< frame rates
  int width = 0;            ///< image sizes
  int height = 0;
  DeviceConfig device;

  std::chrono::microseconds microseconds() const { return std::chrono::microseconds(number); }
  std::chrono::milliseconds milliseconds() const {
    return std::chrono::duration_cast<std::chrono::milliseconds>(microseconds());
  }
};

/// A type of scalar. Text decides, quotes do not: `loop: "true"` is true.
struct ScalarType {
  std::string_view expected;  ///< completes "must be "
  bool (*parse)(std::string_view text, Value& value);
  /// How a limit of this type is written.
  std::string (*format)(std::int64_t number);
  /// For the schema: the JSON type this can be other than a string, and what a string looks like
  /// (empty: anything, or, with `json_type`, no string).
  std::string_view json_type;
  std::string_view pattern;
};

extern const ScalarType kText;       ///< not empty
extern const ScalarType kAnyScalar;  ///< as FFmpeg will read it
extern const ScalarType kBoolean;
extern const ScalarType kInteger;
extern const ScalarType kDuration;
extern const ScalarType kBitrate;
extern const ScalarType kSize;
extern const ScalarType kFrameRate;
extern const ScalarType kImageSize;
extern const ScalarType kIdentifier;  ///< names of feeds, encodes, outputs and profiles
extern const ScalarType kDeviceName;
extern const ScalarType kListenAddress;

inline constexpr int kMaxImageSide = 16384;

bool is_identifier(std::string_view text);

}  // namespace framelane
