#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <string>

#include "kernels/overlay.hpp"
#include "pipeline/overlay/overlay_options.hpp"

namespace framelane {

/// Draws a text as an overlay says, in any language: Pango does what belongs to it (HarfBuzz,
/// FriBidi, FreeType, and fonts of the system for what the font lacks, by fontconfig). One thread
/// at a time.
class TextPainter {
 public:
  /// `pixels`: the size of the font. A line that is longer than `room` is wide is broken; of what
  /// does not fit into its height an ellipsis is left. `options` outlive it. Throws
  /// FeedError(kConfiguration) if there is no font, and FeedError(kMemory) if threads are short.
  TextPainter(const OverlayOptions& options, int pixels, const PictureSize& room);
  ~TextPainter();
  TextPainter(const TextPainter&) = delete;
  TextPainter& operator=(const TextPainter&) = delete;

  /// The text on its box, no larger than `room`. Empty if the text is. Letters that have not been
  /// drawn before may cost some milliseconds, for their fonts. Throws FeedError(kMemory).
  RgbaPicture paint(const std::string& text);

 private:
  struct Layout;
  const OverlayOptions& options_;
  const PictureSize room_;
  const int padding_;                // of the box, in pixels
  std::set<std::uint32_t> letters_;  // that have been drawn
  std::unique_ptr<Layout> layout_;
};

/// Why the file is no font, as the end of a sentence; nothing if it is one. Reads it.
std::optional<std::string> why_no_font(const std::string& file);

/// True if the text can be drawn: it is UTF-8.
bool is_utf8(const std::string& text);

}  // namespace framelane
