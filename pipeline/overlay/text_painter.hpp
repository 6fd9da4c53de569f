#pragma once

#include <memory>
#include <optional>
#include <string>

#include "kernels/overlay.hpp"
#include "pipeline/overlay/overlay_options.hpp"

namespace framelane {

/// Draws a text as an overlay says, in any language: Pango does what belongs to it (HarfBuzz,
/// FriBidi, FreeType, and fonts of the system for what the font lacks, by fontconfig). One thread
/// at a time.
class TextPainter {
 public:
  /// `pixels`: the size of the font. A line that is longer than `width` pixels is broken. Throws
  /// FeedError(kConfiguration) if there is no font.
  TextPainter(const OverlayOptions& options, int pixels, int width);
  ~TextPainter();
  TextPainter(const TextPainter&) = delete;
  TextPainter& operator=(const TextPainter&) = delete;

  /// The text on its box. Empty if the text is.
  RgbaPicture paint(const std::string& text);

 private:
  struct Layout;
  const OverlayOptions& options_;
  const int padding_;  // of the box, in pixels
  std::unique_ptr<Layout> layout_;
};

/// Why the file is no font, as the end of a sentence; nothing if it is one. Reads it.
std::optional<std::string> why_no_font(const std::string& file);

/// True if the text can be drawn: it is UTF-8.
bool is_utf8(const std::string& text);

}  // namespace framelane
