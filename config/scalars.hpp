#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "pipeline/base/rational.hpp"
#include "pipeline/stage/device_choice.hpp"

namespace framelane {

/// A scalar after parsing. Which fields are set depends on its type.
struct Value {
  std::string text;  ///< always set: the text, with variables expanded
  /// An integer; bytes; bits per second; microseconds; a boolean as 0 or 1; the index of a word.
  std::int64_t number = 0;
  double part = 0;  ///< a percentage of a whole, as 0 to 1; with it `number` is 0
  Rational ratio;   ///< frame rates
  int width = 0;    ///< image sizes, and parts of images
  int height = 0;
  int x = 0;
  int y = 0;
  DeviceChoice device;

  std::chrono::microseconds microseconds() const { return std::chrono::microseconds(number); }
  std::chrono::milliseconds milliseconds() const {
    return std::chrono::duration_cast<std::chrono::milliseconds>(microseconds());
  }
};

/// A type of scalar. Quotes make no difference: `loop: "true"` is true.
struct ScalarType {
  std::string_view expected;  ///< completes "must be "
  bool (*parse)(std::string_view text, Value& value);
  /// Writes a limit of this type for a message.
  std::string (*format)(std::int64_t number);
  /// For the schema: the JSON type that such a value may have besides string ("any", or empty for
  /// none), and the pattern of a string. Without a pattern a string may be anything; with a
  /// `json_type` and without a pattern there is no string.
  std::string_view json_type;
  std::string_view pattern;
};

extern const ScalarType kText;       ///< not empty, without control characters
extern const ScalarType kAnyScalar;  ///< text or number, for FFmpeg to parse
extern const ScalarType kBoolean;
extern const ScalarType kInteger;
extern const ScalarType kDuration;
extern const ScalarType kBitrate;
extern const ScalarType kSize;
extern const ScalarType kSizeOrPercent;
extern const ScalarType kFrameRate;
extern const ScalarType kImageSize;
extern const ScalarType kSizeOrShape;  ///< a side may be -2; or percent, in `number`
extern const ScalarType kImagePart;
extern const ScalarType kQuarterTurns;    ///< `number` is in degrees
extern const ScalarType kFraction;        ///< 0 to 1, in `part`
extern const ScalarType kPercent;         ///< more than 0 % and at most 100 %, in `part`
extern const ScalarType kColorCode;       ///< `number` is 0xRRGGBB
extern const ScalarType kColorWithAlpha;  ///< `number` is 0xRRGGBBAA
extern const ScalarType kLines;           ///< as kText, but may have line feeds
extern const ScalarType kIdentifier;      ///< names of feeds, encodes, outputs and profiles
extern const ScalarType kDeviceName;
extern const ScalarType kListenAddress;

/// Whether `text` may be the name of a feed, an encode, an output or a profile.
bool is_identifier(std::string_view text);

// Each returns nothing if the text is not such a value.

/// "500ms", "10s", "5m", "1h", "7d".
std::optional<std::chrono::microseconds> parse_duration(std::string_view text);
/// "5%", "0.5%" as 0.05, 0.005; more than nothing and less than all.
std::optional<double> parse_percent(std::string_view text);
/// "30", "29.97", "30000/1001". 23.976, 29.97, 59.94 and 119.88 mean the NTSC rates that they
/// abbreviate (24000/1001 and so on).
std::optional<Rational> parse_frame_rate(std::string_view text);

}  // namespace framelane
