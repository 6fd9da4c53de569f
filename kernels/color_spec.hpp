#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace framelane {

/// How samples are made from R'G'B'. kRgb: the samples are R'G'B' themselves. kBt2020 is the
/// non-constant-luminance form.
enum class Matrix : std::uint8_t { kRgb, kBt601, kBt709, kBt2020 };

/// kLimited: luma (or R'G'B') 16..235, chroma 16..240. kFull: 0..255, chroma centred on 128.
enum class Range : std::uint8_t { kLimited, kFull };

/// Where a subsampled chroma sample sits relative to luma (H.273 ChromaLocType 0, 1, 2).
/// Ignored if chroma is not subsampled. In 4:2:2, kLeft and kTopLeft are the same position.
enum class Siting : std::uint8_t { kLeft, kCenter, kTopLeft };

/// ITU-T H.273 code points. They are passed from source to output unchanged: framelane converts
/// matrices and ranges, never primaries or transfer curves.
using Primaries = std::uint8_t;
using Transfer = std::uint8_t;
inline constexpr std::uint8_t kUnspecified = 2;

/// What the samples of a frame mean. Always complete: what a source does not say is decided and
/// logged when the source is opened, so that nothing after that has to guess.
struct ColorSpec {
  Matrix matrix = Matrix::kBt709;
  Range range = Range::kLimited;
  Siting siting = Siting::kLeft;
  Primaries primaries = kUnspecified;
  Transfer transfer = kUnspecified;

  friend bool operator==(const ColorSpec&, const ColorSpec&) = default;
};

/// The names used in the configuration: rgb, bt601, bt709, bt2020; limited, full; left, center,
/// topleft. The reverse functions return nothing for other names.
std::string_view to_string(Matrix matrix);
std::string_view to_string(Range range);
std::string_view to_string(Siting siting);
std::optional<Matrix> matrix_from_name(std::string_view name);
std::optional<Range> range_from_name(std::string_view name);
std::optional<Siting> siting_from_name(std::string_view name);

/// For logs: "bt709 limited left".
std::string describe(const ColorSpec& color);

}  // namespace framelane
