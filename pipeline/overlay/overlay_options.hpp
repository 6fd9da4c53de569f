#pragma once

#include <array>
#include <cstdint>
#include <string>

namespace framelane {

/// Where along one side of the frame something is drawn.
enum class Along : std::uint8_t { kBegin, kMiddle, kEnd };

/// R'G'B' in full range, and straight alpha.
struct OverlayColor {
  std::array<std::uint8_t, 3> rgb{};
  std::uint8_t alpha = 255;

  friend bool operator==(const OverlayColor&, const OverlayColor&) = default;
};

/// An entry of an encode's `overlay`: a text, or an image if `image` is not empty. Fractions are of
/// the encoded picture's height, or its width where that is said.
struct OverlayOptions {
  /// UTF-8, several lines perhaps, with the fields of strftime.
  std::string text;
  std::string font;  ///< a file; empty: a sans-serif font of the system
  double size = 0.04;
  OverlayColor color{{255, 255, 255}, 255};
  OverlayColor box{{0, 0, 0}, 128};  ///< behind the text; alpha 0: none

  std::string image;   ///< a PNG file
  double width = 0;    ///< of the picture's width; 0: the image's own size
  double opacity = 1;  ///< of the image

  Along across = Along::kBegin;
  Along down = Along::kBegin;

  friend bool operator==(const OverlayOptions&, const OverlayOptions&) = default;
};

}  // namespace framelane
