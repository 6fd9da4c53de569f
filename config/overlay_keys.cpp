#include <array>
#include <atomic>
#include <chrono>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "config/common_keys.hpp"
#include "config/feed_keys.hpp"
#include "pipeline/base/failure.hpp"
#include "pipeline/encode/encode_options.hpp"
#include "pipeline/overlay/clock_text.hpp"
#include "pipeline/overlay/fonts.hpp"
#include "pipeline/overlay/overlay_image.hpp"
#include "pipeline/overlay/overlay_options.hpp"
#include "pipeline/overlay/text_painter.hpp"

namespace framelane {
namespace {

/// Of a value of the type kColorWithAlpha.
OverlayColor overlay_color(const Value& value) {
  Value rgb = value;
  rgb.number >>= 8;
  return {color_of(rgb), static_cast<std::uint8_t>(value.number & 0xFF)};
}

// From left to right, line by line.
const std::vector<std::string_view> kPlaces{"top-left",    "top",    "top-right",
                                            "left",        "center", "right",
                                            "bottom-left", "bottom", "bottom-right"};

constexpr std::size_t kMostOverlays = 32;
/// Looking for fonts takes seconds where there are many that no cache knows.
constexpr std::chrono::seconds kFontsLimit{10};

Shape box_shape() {
  Shape shape = of(kColorWithAlpha);
  shape.words = {"none"};
  return shape;
}

const Section<OverlayOptions>& overlay_keys() {
  static const Section<OverlayOptions> keys{
      {scalar<OverlayOptions>("text", of(kLines),
                              "What to write, with the fields of strftime for when the picture was "
                              "taken, such as \"${feed}  %F %T\".",
                              [](OverlayOptions& o, const Value& v) { o.text = v.text; }),
       scalar<OverlayOptions>("image", of(kText), "What to show: a PNG file.",
                              [](OverlayOptions& o, const Value& v) { o.image = v.text; }),
       scalar<OverlayOptions>("at", words(kPlaces), "Where (top-left).",
                              [](OverlayOptions& o, const Value& v) {
                                o.across = static_cast<Along>(v.number % 3);
                                o.down = static_cast<Along>(v.number / 3);
                              }),
       scalar<OverlayOptions>("size", of(kPercent),
                              "The size of the text's font, of the picture's height (4%).",
                              [](OverlayOptions& o, const Value& v) { o.size = v.part; }),
       scalar<OverlayOptions>("font", of(kText),
                              "A font file (default: a sans-serif font of the system).",
                              [](OverlayOptions& o, const Value& v) { o.font = v.text; }),
       scalar<OverlayOptions>(
           "color", of(kColorWithAlpha), "The colour of the text (#ffffff).",
           [](OverlayOptions& o, const Value& v) { o.color = overlay_color(v); }),
       scalar<OverlayOptions>("box", box_shape(),
                              "The colour of the box behind the text, or none (#00000080).",
                              [](OverlayOptions& o, const Value& v) {
                                o.box = v.text == "none" ? OverlayColor{{}, 0} : overlay_color(v);
                              }),
       scalar<OverlayOptions>("width", of(kPercent),
                              "The width of the image, of the picture's (default: its own).",
                              [](OverlayOptions& o, const Value& v) { o.width = v.part; }),
       scalar<OverlayOptions>("opacity", of(kFraction),
                              "How much the image covers, from 0 to 1 (1).",
                              [](OverlayOptions& o, const Value& v) { o.opacity = v.part; })}};
  return keys;
}

/// Reports the first of these keys that `item` has, since it belongs to the other kind of overlay.
template <std::size_t kCount>
void refuse_keys(const Node& item, const std::array<std::string_view, kCount>& names,
                 std::string_view kind, Reader& reader) {
  for (const std::string_view name : names) {
    const Node* const node = item.find(name);
    if (node == nullptr) continue;
    reader.problems().add(
        node->key_position, node->path,
        "has no effect on " + std::string(kind) + "; remove it, or make it an entry of its own");
  }
}

/// What the files and the text of an overlay are worth, where they are known.
void check_overlay(const Node& item, const OverlayOptions& overlay, Reader& reader) {
  const Node* const text = item.find("text");
  const Node* const image = item.find("image");
  if (text == nullptr && image == nullptr) {
    return reader.problems().add_missing(item, "text", "give a text, or an image: a PNG file");
  }
  if (image != nullptr) {
    refuse_keys(item, std::array<std::string_view, 5>{"text", "size", "font", "color", "box"},
                "an image", reader);
  } else {
    refuse_keys(item, std::array<std::string_view, 2>{"width", "opacity"}, "a text", reader);
  }
  const bool looks = reader.scope().options.require_files;
  if (looks && image != nullptr && reader.is_certain(*image) && !overlay.image.empty()) {
    try {
      read_png(overlay.image);
    } catch (const FeedError& error) {
      reader.problems().add(*image, error.what());
    }
  }
  if (text != nullptr && reader.is_certain(*text)) {
    if (const auto why = ClockText::why_not(overlay.text)) reader.problems().add(*text, *why);
    if (!is_utf8(overlay.text)) reader.problems().add(*text, "is not UTF-8");
  }
  const Node* const font = item.find("font");
  static std::atomic<bool> system_has_fonts{false};  // looking again costs milliseconds
  if (looks && text != nullptr && font == nullptr && !system_has_fonts) {
    const auto why = why_no_system_font(kFontsLimit);
    if (why) reader.problems().add(*text, "cannot be drawn: " + *why);
    system_has_fonts = !why;
  }
  if (!looks || font == nullptr || !reader.is_certain(*font) || overlay.font.empty()) return;
  if (const auto why = why_no_font(overlay.font)) {
    reader.problems().add(*font, in_quotes(overlay.font) + ' ' + *why);
  }
}

}  // namespace

Key<EncodeOptions> overlay_key() {
  Shape shape = overlay_keys().shape();
  shape.list = true;
  shape.most_items = kMostOverlays;
  return {{"overlay", shape, "Texts and images that are drawn on the encoded pictures, in order."},
          [](const Node& node, EncodeOptions& encode, Reader& reader) {
            const auto nodes = node.items_or_self();
            if (nodes.empty()) {
              reader.problems().add(node, "is empty; remove it if nothing is to be drawn");
            }
            if (nodes.size() > kMostOverlays) {
              reader.problems().add(node, "has more than " + std::to_string(kMostOverlays) +
                                              " entries; put what belongs together into one");
              return;
            }
            for (const Node& item : nodes) {
              OverlayOptions overlay;
              overlay_keys().read(item, overlay, reader);
              if (item.is_map()) check_overlay(item, overlay, reader);
              encode.overlays.push_back(std::move(overlay));
            }
          }};
}

}  // namespace framelane
