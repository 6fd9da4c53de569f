#pragma once

#include <cstdint>
#include <memory>
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
  /// `pixels`: the height of the font. `shape`: the width of a pixel as it is shown, divided by its
  /// height: where pixels are wide, letters have fewer of them across. A line that is longer than
  /// `room` is wide is broken; of what does not fit into its height an ellipsis is left. Where
  /// pixels are not square, the room is at most kMaxPictureSide of their smaller side. `options`
  /// outlive it. Throws FeedError(kConfiguration) if there is no font, and FeedError(kMemory) if
  /// threads are short.
  TextPainter(const OverlayOptions& options, int pixels, const PictureSize& room, double shape = 1);
  ~TextPainter();
  TextPainter(const TextPainter&) = delete;
  TextPainter& operator=(const TextPainter&) = delete;

  /// The text on its box, no larger than `room`. Empty if the text is. Letters that have not been
  /// drawn before may cost some milliseconds, for their fonts. Throws FeedError(kMemory), and
  /// FeedError(kConfiguration) if the file of a font cannot be read, or was overwritten: then a new
  /// painter is needed.
  RgbaPicture paint(const std::string& text);

 private:
  struct Layout;
  void warn_of_boxes(const std::string& text);

  const OverlayOptions& options_;
  // A text is drawn with square pixels, as small as the smaller side of those of the picture.
  const double across_;              // such pixels in the width of one of the picture
  const double down_;                // and in its height
  const PictureSize room_;           // in such pixels
  const int padding_;                // of the box, in such pixels
  std::set<std::uint32_t> letters_;  // that have been drawn
  bool warned_ = false;
  std::unique_ptr<Layout> layout_;
};

/// True if the text can be drawn: it is UTF-8.
bool is_utf8(const std::string& text);

}  // namespace framelane
