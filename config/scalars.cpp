#include "config/scalars.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <limits>
#include <numeric>
#include <span>

#include "kernels/picture_limits.hpp"

namespace framelane {
namespace {

constexpr std::int64_t kMax = std::numeric_limits<std::int64_t>::max();

bool is_digit(char c) { return c >= '0' && c <= '9'; }

/// Decimal digits only. No sign, and no leading zero, because other programs read those as octal.
std::optional<std::int64_t> parse_digits(std::string_view text) {
  if (text.empty() || !std::all_of(text.begin(), text.end(), is_digit)) return std::nullopt;
  if (text.size() > 1 && text[0] == '0') return std::nullopt;
  std::int64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return number;
}

/// "2.5" as 25 / 10.
struct Decimal {
  std::int64_t digits = 0;
  std::int64_t scale = 1;
};

std::optional<Decimal> parse_decimal(std::string_view text) {
  const std::size_t point = text.find('.');
  const auto whole = parse_digits(text.substr(0, point));
  if (!whole) return std::nullopt;
  Decimal result{*whole, 1};
  if (point == std::string_view::npos) return result;
  const std::string_view fraction = text.substr(point + 1);
  constexpr std::size_t kMostDigits = 6;
  if (fraction.empty() || fraction.size() > kMostDigits) return std::nullopt;
  for (const char c : fraction) {
    if (!is_digit(c) || result.digits > (kMax - 9) / 10) return std::nullopt;
    result.digits = result.digits * 10 + (c - '0');
    result.scale *= 10;
  }
  return result;
}

/// More than 0 % and at most 100 %.
std::optional<double> parse_percent_up_to_all(std::string_view text) {
  if (!text.ends_with('%')) return std::nullopt;
  const auto number = parse_decimal(text.substr(0, text.size() - 1));
  if (!number || number->digits <= 0 || number->digits > 100 * number->scale) return std::nullopt;
  return static_cast<double>(number->digits) / static_cast<double>(number->scale) / 100;
}

struct Unit {
  std::string_view suffix;
  std::int64_t factor;
};
// Smallest first. The first decimal unit is that of a number without a suffix.
constexpr std::array<Unit, 5> kDecimalUnits{
    {{"", 1}, {"k", 1'000}, {"M", 1'000'000}, {"G", 1'000'000'000}, {"T", 1'000'000'000'000}}};
constexpr std::array<Unit, 5> kTimeUnits{{{"ms", 1'000},
                                          {"s", 1'000'000},
                                          {"m", 60'000'000},
                                          {"h", 3'600'000'000},
                                          {"d", 86'400'000'000}}};

std::optional<std::int64_t> parse_decimal_units(std::string_view text) {
  std::int64_t factor = 1;
  if (!text.empty() && !is_digit(text.back())) {
    const std::string_view suffix = text.back() == 'K' ? "k" : text.substr(text.size() - 1);
    const auto* unit = std::find_if(kDecimalUnits.begin(), kDecimalUnits.end(),
                                    [&](const Unit& u) { return u.suffix == suffix; });
    if (unit == kDecimalUnits.end()) return std::nullopt;
    factor = unit->factor;
    text.remove_suffix(1);
  }
  const auto number = parse_decimal(text);
  if (!number || number->digits > kMax / factor) return std::nullopt;
  const std::int64_t scaled = number->digits * factor;
  if (scaled % number->scale != 0) return std::nullopt;
  return scaled / number->scale;
}

std::string format_units(std::int64_t number, std::span<const Unit> units) {
  const Unit* best = &units.front();
  for (const Unit& unit : units) {
    if (number != 0 && number % unit.factor == 0) best = &unit;
  }
  return std::to_string(number / best->factor) + std::string(best->suffix);
}
std::string format_decimal_units(std::int64_t number) {
  return format_units(number, kDecimalUnits);
}
std::string format_duration(std::int64_t number) { return format_units(number, kTimeUnits); }
std::string format_integer(std::int64_t number) { return std::to_string(number); }

template <typename T>
bool store(const std::optional<T>& parsed, T& target) {
  if (parsed) target = *parsed;
  return parsed.has_value();
}

bool is_control(char c) { return static_cast<unsigned char>(c) < 0x20 || c == '\x7f'; }

bool parse_text(std::string_view text, Value&) {
  return !text.empty() && std::none_of(text.begin(), text.end(), is_control);
}
constexpr std::size_t kLongestLines = 1000;
bool parse_lines(std::string_view text, Value&) {
  return !text.empty() && text.size() <= kLongestLines &&
         std::none_of(text.begin(), text.end(), [](char c) { return is_control(c) && c != '\n'; });
}
/// Options may have several lines (`headers`). A C string ends at its first NUL.
bool parse_any(std::string_view text, Value&) { return text.find('\0') == text.npos; }
bool parse_boolean(std::string_view text, Value& value) {
  value.number = text == "true" ? 1 : 0;
  return text == "true" || text == "false";
}
bool parse_integer(std::string_view text, Value& value) {
  return store(parse_digits(text), value.number);
}
bool parse_duration_value(std::string_view text, Value& value) {
  const auto duration = parse_duration(text);
  if (duration) value.number = duration->count();
  return duration.has_value();
}
bool parse_units_value(std::string_view text, Value& value) {
  return store(parse_decimal_units(text), value.number);
}
bool parse_size_or_percent(std::string_view text, Value& value) {
  if (text.ends_with('%')) return store(parse_percent(text), value.part);
  return parse_units_value(text, value) && value.number > 0;
}
bool parse_frame_rate_value(std::string_view text, Value& value) {
  return store(parse_frame_rate(text), value.ratio);
}
bool parse_identifier(std::string_view text, Value&) { return is_identifier(text); }

bool is_side(const std::optional<std::int64_t>& side) {
  return side && *side >= 1 && *side <= kMaxPictureSide;
}

bool parse_image_size(std::string_view text, Value& value) {
  const std::size_t x = text.find('x');
  if (x == std::string_view::npos) return false;
  const auto width = parse_digits(text.substr(0, x));
  const auto height = parse_digits(text.substr(x + 1));
  if (!is_side(width) || !is_side(height)) return false;
  value.width = static_cast<int>(*width);
  value.height = static_cast<int>(*height);
  return true;
}

bool parse_size_or_shape(std::string_view text, Value& value) {
  constexpr std::string_view kShape = "-2";
  constexpr int kMostPercent = 1600;
  if (text.ends_with('%')) {
    const auto percent = parse_digits(text.substr(0, text.size() - 1));
    return store(percent, value.number) && value.number >= 1 && value.number <= kMostPercent;
  }
  const std::size_t x = text.find('x');
  if (x == std::string_view::npos) return false;
  const auto side = [&](std::string_view part, int& target) {
    const auto number = part == kShape ? std::optional<std::int64_t>(1) : parse_digits(part);
    if (!is_side(number)) return false;
    target = part == kShape ? -2 : static_cast<int>(*number);
    return true;
  };
  return side(text.substr(0, x), value.width) && side(text.substr(x + 1), value.height) &&
         (value.width > 0 || value.height > 0);
}

bool parse_image_part(std::string_view text, Value& value) {
  const std::size_t plus = text.find('+');
  if (plus == std::string_view::npos || !parse_image_size(text.substr(0, plus), value)) {
    return false;
  }
  const std::string_view place = text.substr(plus + 1);
  const std::size_t second = place.find('+');
  if (second == std::string_view::npos) return false;
  const auto x = parse_digits(place.substr(0, second));
  const auto y = parse_digits(place.substr(second + 1));
  const auto fits = [](const std::optional<std::int64_t>& offset) {
    return offset && *offset < kMaxPictureSide;
  };
  if (!fits(x) || !fits(y)) return false;
  value.x = static_cast<int>(*x);
  value.y = static_cast<int>(*y);
  return true;
}

bool parse_fraction(std::string_view text, Value& value) {
  const auto number = parse_decimal(text);
  if (!number || number->digits > number->scale) return false;
  value.part = static_cast<double>(number->digits) / static_cast<double>(number->scale);
  return true;
}

bool parse_quarter_turns(std::string_view text, Value& value) {
  for (const int degrees : {0, 90, 180, 270}) {
    if (text != std::to_string(degrees)) continue;
    value.number = degrees;
    return true;
  }
  return false;
}

bool parse_percent_value(std::string_view text, Value& value) {
  return store(parse_percent_up_to_all(text), value.part);
}

bool parse_color_digits(std::string_view text, std::size_t digits, Value& value) {
  if (text.size() != digits + 1 || text[0] != '#') return false;
  value.number = 0;
  for (const char c : text.substr(1)) {
    const std::size_t digit =
        std::string_view("0123456789abcdef")
            .find(c >= 'A' && c <= 'F' ? static_cast<char>(c - 'A' + 'a') : c);
    if (digit == std::string_view::npos) return false;
    value.number = value.number * 16 + static_cast<std::int64_t>(digit);
  }
  return true;
}
bool parse_color_code(std::string_view text, Value& value) {
  return parse_color_digits(text, 6, value);
}
bool parse_color_with_alpha(std::string_view text, Value& value) {
  if (parse_color_digits(text, 8, value)) return true;
  if (!parse_color_digits(text, 6, value)) return false;
  value.number = value.number * 256 + 255;
  return true;
}

bool parse_device(std::string_view text, Value& value) {
  using Kind = DeviceChoice::Kind;
  constexpr std::string_view kWithIndex = "cuda:";
  constexpr std::int64_t kMostDevices = 128;
  value.device = {};
  if (text == "auto") return true;
  if (text == "cpu") {
    value.device.kind = Kind::kCpu;
    return true;
  }
  value.device.kind = Kind::kCuda;
  if (text == "cuda") return true;
  if (!text.starts_with(kWithIndex)) return false;
  const auto index = parse_digits(text.substr(kWithIndex.size()));
  if (!index || *index >= kMostDevices) return false;
  value.device.gpu = static_cast<int>(*index);
  return true;
}

bool parse_listen_address(std::string_view text, Value&) {
  constexpr std::string_view kUnix = "unix:";
  constexpr std::size_t kLongestPath = 107;  // of sockaddr_un, without the NUL at its end
  if (text.empty()) return true;
  if (std::any_of(text.begin(), text.end(), is_control)) return false;
  if (text.starts_with(kUnix)) {
    return text.size() > kUnix.size() && text.size() <= kUnix.size() + kLongestPath;
  }
  const std::size_t colon = text.rfind(':');
  if (colon == std::string_view::npos || colon == 0) return false;
  const auto port = parse_digits(text.substr(colon + 1));
  if (!port || *port > 65535) return false;
  const std::string_view host = text.substr(0, colon);
  if (host.front() == '[') return host.size() > 2 && host.back() == ']';
  return host.find_first_of(":[] /") == std::string_view::npos;
}

}  // namespace

/// The schema's pattern of a side of a picture: 1 to kMaxPictureSide. A macro, so that the compiler
/// joins it with what is around it.
#define FRAMELANE_SIDE "([1-9][0-9]{0,3}|1[0-5][0-9]{3}|16[0-2][0-9]{2}|163[0-7][0-9]|1638[0-4])"

const ScalarType kText{"text that is not empty and has no control characters", parse_text,
                       format_integer, "", R"(^[^\u0000-\u001f\u007f]+$)"};
const ScalarType kAnyScalar{"text or a number, without the character NUL", parse_any,
                            format_integer, "any", ""};
const ScalarType kBoolean{"true or false", parse_boolean, format_integer, "boolean", ""};
const ScalarType kInteger{"a whole number", parse_integer, format_integer, "integer", ""};
const ScalarType kDuration{"a duration such as 500ms, 10s, 5m, 1h or 7d", parse_duration_value,
                           format_duration, "", "^(0|[1-9][0-9]*)(ms|s|m|h|d)$"};
const ScalarType kBitrate{"a bit rate such as 800k or 2M", parse_units_value, format_decimal_units,
                          "integer", R"(^(0|[1-9][0-9]*)(\.[0-9]{1,6})?[kKMGT]?$)"};
const ScalarType kSize{"a size in bytes such as 500M or 80G", parse_units_value,
                       format_decimal_units, "integer",
                       R"(^(0|[1-9][0-9]*)(\.[0-9]{1,6})?[kKMGT]?$)"};
const ScalarType kSizeOrPercent{
    "a size in bytes such as 5G, or a part of the file system such as 5%", parse_size_or_percent,
    format_decimal_units, "integer",
    R"(^(?!0(\.0*)?[kKMGT%]?$)((0|[1-9][0-9]*)(\.[0-9]{1,6})?[kKMGT]?|)"
    R"((0|[1-9][0-9]?)(\.[0-9]{1,6})?%)$)"};
const ScalarType kFrameRate{"a frame rate such as 30, 29.97 or 30000/1001", parse_frame_rate_value,
                            format_integer, "number",
                            R"(^[1-9][0-9]*/[1-9][0-9]*$|)"
                            R"(^(?!0(\.0*)?$)(0|[1-9][0-9]*)(\.[0-9]{1,6})?$)"};
const ScalarType kImageSize{"a size such as 1920x1080, at most 16384x16384", parse_image_size,
                            format_integer, "", "^" FRAMELANE_SIDE "x" FRAMELANE_SIDE "$"};
const ScalarType kSizeOrShape{
    "a size such as 1280x720, 1280x-2 (the height that keeps the shape) or 50%",
    parse_size_or_shape, format_integer, "",
    "^(-2|" FRAMELANE_SIDE ")x" FRAMELANE_SIDE "$|^" FRAMELANE_SIDE
    "x-2$"
    "|^([1-9][0-9]{0,2}|1[0-5][0-9]{2}|1600)%$"};
const ScalarType kImagePart{
    "a part of the picture such as 640x480+0+120 (width x height + left + top)", parse_image_part,
    format_integer, "",
    "^" FRAMELANE_SIDE "x" FRAMELANE_SIDE "(\\+(0|(?!16384)" FRAMELANE_SIDE ")){2}$"};
const ScalarType kFraction{"a number from 0 to 1 with at most six decimals, such as 0.25",
                           parse_fraction, format_integer, "number",
                           R"(^(0(\.[0-9]{1,6})?|1(\.0{1,6})?)$)"};
const ScalarType kQuarterTurns{"0, 90, 180 or 270 (degrees, clockwise)", parse_quarter_turns,
                               format_integer, "integer", "^(0|90|180|270)$"};
const ScalarType kPercent{"a percentage such as 4%, more than 0% and at most 100%",
                          parse_percent_value, format_integer, "",
                          R"(^(?!0(\.0*)?%)((0|[1-9][0-9]?)(\.[0-9]{1,6})?|100(\.0{1,6})?)%$)"};
const ScalarType kColorWithAlpha{
    "a colour such as \"#102030\", or \"#10203080\" (red, green, blue, alpha)",
    parse_color_with_alpha, format_integer, "", "^#[0-9a-fA-F]{6}([0-9a-fA-F]{2})?$"};
const ScalarType kLines{"text of 1 to 1000 bytes that has no control characters but line feeds",
                        parse_lines, format_integer, "",
                        R"(^[^\u0000-\u0009\u000b-\u001f\u007f]{1,1000}$)"};
const ScalarType kColorCode{"a colour such as \"#102030\" (red, green, blue)", parse_color_code,
                            format_integer, "", "^#[0-9a-fA-F]{6}$"};
const ScalarType kIdentifier{
    "a name of at most 63 of a-z, 0-9, _ and -, beginning with a letter or digit", parse_identifier,
    format_integer, "", "^[a-z0-9][a-z0-9_-]{0,62}$"};
const ScalarType kDeviceName{"auto, cpu, cuda or cuda:N", parse_device, format_integer, "",
                             "^(auto|cpu|cuda(:([1-9]?[0-9]|1[01][0-9]|12[0-7]))?)$"};
const ScalarType kListenAddress{
    "HOST:PORT, [IPV6]:PORT, unix:PATH with at most 107 bytes in PATH, "
    "or \"\" for none",
    parse_listen_address, format_integer, "",
    R"(^$|^unix:[^\u0000-\u001f\u007f]{1,107}$|)"
    R"(^(\[[^\]\u0000-\u001f\u007f]+\]|[^\]\[: /\u0000-\u001f\u007f]+):)"
    "(0|[1-9][0-9]{0,3}|[1-5][0-9]{4}|6[0-4][0-9]{3}|65[0-4][0-9]{2}"
    "|655[0-2][0-9]|6553[0-5])$"};

bool is_identifier(std::string_view text) {
  const auto is_alnum = [](char c) { return is_digit(c) || (c >= 'a' && c <= 'z'); };
  constexpr std::size_t kLongest = 63;
  return !text.empty() && text.size() <= kLongest && is_alnum(text[0]) &&
         std::all_of(text.begin(), text.end(),
                     [&](char c) { return is_alnum(c) || c == '_' || c == '-'; });
}

std::optional<std::chrono::microseconds> parse_duration(std::string_view text) {
  const auto is_unit = [](char c) { return !is_digit(c); };
  const auto* const suffix = std::find_if(text.begin(), text.end(), is_unit);
  const auto digits = static_cast<std::size_t>(suffix - text.begin());
  const auto* unit = std::find_if(kTimeUnits.begin(), kTimeUnits.end(),
                                  [&](const Unit& u) { return u.suffix == text.substr(digits); });
  const auto number = parse_digits(text.substr(0, digits));
  if (unit == kTimeUnits.end() || !number || *number > kMax / unit->factor) return std::nullopt;
  return std::chrono::microseconds(*number * unit->factor);
}

std::optional<double> parse_percent(std::string_view text) {
  const auto part = parse_percent_up_to_all(text);
  return part && *part < 1 ? part : std::nullopt;
}

std::optional<Rational> parse_frame_rate(std::string_view text) {
  constexpr std::int64_t kMaxTerm = std::numeric_limits<int>::max();
  const std::size_t slash = text.find('/');
  std::int64_t num = 0;
  std::int64_t den = 1;
  if (slash != std::string_view::npos) {
    const auto n = parse_digits(text.substr(0, slash));
    const auto d = parse_digits(text.substr(slash + 1));
    if (!n || !d) return std::nullopt;
    num = *n;
    den = *d;
  } else {
    struct Ntsc {
      std::string_view text;
      int num;
    };
    for (const Ntsc& rate : {Ntsc{"23.976", 24000}, Ntsc{"29.97", 30000}, Ntsc{"59.94", 60000},
                             Ntsc{"119.88", 120000}}) {
      if (text == rate.text) return Rational{rate.num, 1001};
    }
    const auto decimal = parse_decimal(text);
    if (!decimal) return std::nullopt;
    const std::int64_t divisor = std::gcd(decimal->digits, decimal->scale);
    num = decimal->digits / divisor;
    den = decimal->scale / divisor;
  }
  if (num < 1 || den < 1 || num > kMaxTerm || den > kMaxTerm) return std::nullopt;
  return Rational{static_cast<int>(num), static_cast<int>(den)};
}

}  // namespace framelane
