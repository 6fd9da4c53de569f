#include "pipeline/overlay/text_painter.hpp"

#include <pango/pangofc-fontmap.h>
#include <pango/pangoft2.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <latch>
#include <map>
#include <mutex>
#include <optional>
#include <span>
#include <string_view>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "kernels/picture_limits.hpp"
#include "pipeline/base/bus_guard.hpp"
#include "pipeline/base/failure.hpp"
#include "pipeline/base/log.hpp"
#include "pipeline/overlay/fonts.hpp"
#include "pipeline/overlay/plane_scaler.hpp"

namespace framelane {
namespace {

using FontPtr = std::unique_ptr<PangoFontDescription, decltype(&pango_font_description_free)>;

constexpr char kRename[] = "replace fonts by renaming a new file to their name";

/// Throws if a font could no longer be read since the scope began.
void require_unspoiled(const BusGuardScope& scope) {
  if (!scope.spoiled()) return;
  throw FeedError(FeedFault::kConfiguration,
                  std::string("the file of a font could no longer be read while it was in use; ") +
                      kRename + ", and see whether the disk or file server that it is on answers");
}

/// Pango starts threads to look for fonts, and GLib ends the process if it gets none.
void require_threads() {
  constexpr std::size_t kThreads = 3;
  std::latch asked(1);
  std::vector<std::jthread> threads;
  try {
    while (threads.size() < kThreads) threads.emplace_back([&asked] { asked.wait(); });
    asked.count_down();
  } catch (const std::system_error& error) {
    asked.count_down();
    throw FeedError(FeedFault::kMemory,
                    std::string("no thread can be started to look for fonts (") + error.what() +
                        "); raise the limit of threads (TasksMax), or use fewer feeds");
  }
}

GLogWriterOutput take_glib_message(GLogLevelFlags level, const GLogField* fields, gsize count,
                                   void*) {
  constexpr int kShown = G_LOG_LEVEL_WARNING | G_LOG_LEVEL_CRITICAL | G_LOG_LEVEL_ERROR;
  if ((level & kShown) == 0) return G_LOG_WRITER_HANDLED;
  std::string domain = "glib";
  std::string message;
  for (const GLogField& field : std::span(fields, count)) {
    if (field.length >= 0) continue;  // no text
    const auto* const text = static_cast<const char*>(field.value);
    if (std::string_view(field.key) == "GLIB_DOMAIN") domain = text;
    if (std::string_view(field.key) == "MESSAGE") message = text;
  }
  while (message.ends_with('\n')) message.pop_back();
  // If this returned, GLib would end the process. Pango's errors are fonts that it cannot open.
  if ((level & G_LOG_LEVEL_ERROR) != 0 && domain == "Pango") {
    throw FeedError(FeedFault::kConfiguration, "a text cannot be drawn: " + message);
  }
  log::warn("{}: {}", domain, message);
  return G_LOG_WRITER_HANDLED;
}

/// What Pango and GLib warn of goes to our log.
void take_glib_messages() {
  static std::once_flag once;
  std::call_once(once, [] { g_log_set_writer_func(&take_glib_message, nullptr, nullptr); });
}

/// `over` with this coverage (0 to 255) over `under`.
void put(const OverlayColor& over, int coverage, const OverlayColor& under, std::uint8_t* pixel) {
  constexpr int kAll = 255 * 255;
  const int top = coverage * over.alpha;                // of kAll
  const int bottom = under.alpha * (kAll - top) / 255;  // of kAll
  const int alpha = top + bottom;
  for (std::size_t k = 0; k < 3; ++k) {
    pixel[k] = alpha == 0 ? under.rgb[k]
                          : static_cast<std::uint8_t>(
                                (top * over.rgb[k] + bottom * under.rgb[k] + alpha / 2) / alpha);
  }
  pixel[3] = static_cast<std::uint8_t>((alpha + 127) / 255);
}

/// So many pixels of a side in square ones, as far as they can be scaled.
int square_pixels(int side, double each) {
  return static_cast<int>(std::min<double>(side * each, kMaxPictureSide));
}

PangoAlignment alignment_of(Along across) {
  switch (across) {
    case Along::kBegin:
      return PANGO_ALIGN_LEFT;
    case Along::kMiddle:
      return PANGO_ALIGN_CENTER;
    case Along::kEnd:
      return PANGO_ALIGN_RIGHT;
  }
  return PANGO_ALIGN_LEFT;
}

}  // namespace

struct TextPainter::Layout {
  /// What tells a file from what it was before it was overwritten.
  struct FileMark {
    dev_t device = 0;
    ino_t inode = 0;
    off_t size = 0;
    std::int64_t seconds = 0;  // of its last change
    std::int64_t nanoseconds = 0;
    bool operator==(const FileMark&) const = default;
  };
  /// Nothing if there is no such file.
  static std::optional<FileMark> mark_of(const std::string& file) {
    struct stat status {};
    if (stat(file.c_str(), &status) != 0) return std::nullopt;
    return FileMark{status.st_dev, status.st_ino, status.st_size, status.st_mtim.tv_sec,
                    status.st_mtim.tv_nsec};
  }
  struct Unref {
    void operator()(void* object) const { g_object_unref(object); }
  };
  /// A map keeps a reference to its configuration, also when it ends (Pango 1.50): a copy of all
  /// that is known of the system's fonts.
  struct UnrefMap {
    void operator()(PangoFontMap* map) const {
      pango_fc_font_map_set_config(PANGO_FC_FONT_MAP(map), nullptr);
      g_object_unref(map);
    }
  };
  /// Throws if the file of a font that the text needs cannot be read: Pango, which opens it when it
  /// draws, would then take another, and end the process if it could not open that either.
  void require_fonts_of(const std::string& text);
  /// Throws if the file of a font was overwritten. FreeType and HarfBuzz map these files, and do
  /// not expect that their contents change. A file that another was renamed to is mapped as it was.
  void require_unchanged() const;

  std::unique_ptr<PangoFontMap, UnrefMap> fonts;
  std::unique_ptr<PangoContext, Unref> context;
  std::unique_ptr<PangoLayout, Unref> layout;
  std::map<std::string, FileMark> files;  // of the fonts in use, as they were before
};

void TextPainter::Layout::require_fonts_of(const std::string& text) {
  PangoAttrList* const no_attributes = pango_attr_list_new();
  GList* const items = pango_itemize(context.get(), text.data(), 0, static_cast<int>(text.size()),
                                     no_attributes, nullptr);
  pango_attr_list_unref(no_attributes);
  std::set<std::string> used;
  for (const GList* at = items; at != nullptr; at = at->next) {
    PangoFont* const font = static_cast<const PangoItem*>(at->data)->analysis.font;
    FcChar8* file = nullptr;
    if (font != nullptr && FcPatternGetString(pango_fc_font_get_pattern(PANGO_FC_FONT(font)),
                                              FC_FILE, 0, &file) == FcResultMatch) {
      used.insert(reinterpret_cast<const char*>(file));
    }
  }
  g_list_free_full(items, [](void* item) { pango_item_free(static_cast<PangoItem*>(item)); });
  for (const std::string& file : used) {
    if (files.contains(file)) continue;
    const std::optional<FileMark> mark = mark_of(file);
    require_font(file);
    files.emplace(file, mark.value_or(FileMark{}));
  }
}

void TextPainter::Layout::require_unchanged() const {
  for (const auto& [file, before] : files) {
    const std::optional<FileMark> now = mark_of(file);
    const bool same_file = now && now->device == before.device && now->inode == before.inode;
    if (!same_file || *now == before) continue;
    throw FeedError(FeedFault::kConfiguration,
                    "the font " + file + " was overwritten while it was in use; " + kRename);
  }
}

TextPainter::TextPainter(const OverlayOptions& options, int pixels, const PictureSize& room,
                         double shape)
    : options_(options),
      across_(std::max(shape, 1.0)),
      down_(std::max(1 / shape, 1.0)),
      room_{square_pixels(room.width, across_), square_pixels(room.height, down_)},
      padding_(options.box.alpha > 0 ? std::max(static_cast<int>(pixels * down_ / 4), 1) : 0),
      layout_(std::make_unique<Layout>()) {
  take_glib_messages();
  require_threads();
  const BusGuardScope scope;
  FcInit();  // else Pango does it on a thread of its own, outside the scope
  FcPatternPtr own(nullptr, &FcPatternDestroy);
  if (!options.font.empty()) {
    const auto mark = Layout::mark_of(options.font);
    own = require_named_font(options.font);
    layout_->files.emplace(options.font, mark.value_or(Layout::FileMark{}));
  }
  const FcConfigPtr fonts = load_fonts(options.font, own.get());
  FontPtr font(pango_font_description_from_string("sans"), &pango_font_description_free);
  if (own != nullptr) font.reset(pango_fc_font_description_from_pattern(own.get(), FALSE));
  pango_font_description_set_absolute_size(font.get(), pixels * down_ * PANGO_SCALE);
  layout_->fonts.reset(pango_ft2_font_map_new());
  pango_fc_font_map_set_config(PANGO_FC_FONT_MAP(layout_->fonts.get()), fonts.get());
  layout_->context.reset(pango_font_map_create_context(layout_->fonts.get()));
  pango_context_set_font_description(layout_->context.get(), font.get());
  layout_->layout.reset(pango_layout_new(layout_->context.get()));
  PangoLayout* const layout = layout_->layout.get();
  pango_layout_set_alignment(layout, alignment_of(options.across));
  pango_layout_set_width(layout, std::max(room_.width - 2 * padding_, 1) * PANGO_SCALE);
  pango_layout_set_height(layout, std::max(room_.height - 2 * padding_, 1) * PANGO_SCALE);
  pango_layout_set_wrap(layout, PANGO_WRAP_WORD_CHAR);
  pango_layout_set_ellipsize(layout, PANGO_ELLIPSIZE_END);
  require_unspoiled(scope);
}

TextPainter::~TextPainter() = default;

/// Pango draws a box for a letter that no font has.
void TextPainter::warn_of_boxes(const std::string& text) {
  const int boxes = pango_layout_get_unknown_glyphs_count(layout_->layout.get());
  if (boxes <= 0 || std::exchange(warned_, true)) return;
  constexpr long kShown = 60;  // letters
  const bool is_long = g_utf8_strlen(text.c_str(), -1) > kShown;
  const std::string shown(text.c_str(), is_long ? g_utf8_offset_to_pointer(text.c_str(), kShown)
                                                : text.c_str() + text.size());
  log::warn(
      "the text \"{}{}\" is drawn with {} boxes: no font on this system has these letters; install "
      "one that has them (Debian: fonts-noto-core, fonts-noto-cjk), or give font: FILE",
      shown, is_long ? "…" : "", boxes);
}

RgbaPicture TextPainter::paint(const std::string& text) {
  if (text.empty()) return {};
  bool is_new = false;
  for (const char* at = text.c_str(); *at != '\0'; at = g_utf8_next_char(at)) {
    is_new = letters_.insert(g_utf8_get_char(at)).second || is_new;
  }
  if (is_new) require_threads();
  const BusGuardScope scope;
  layout_->require_fonts_of(text);
  layout_->require_unchanged();
  PangoLayout* const layout = layout_->layout.get();
  pango_layout_set_text(layout, text.data(), static_cast<int>(text.size()));
  PangoRectangle ink;
  PangoRectangle logical;
  pango_layout_get_pixel_extents(layout, &ink, &logical);
  if (ink.width == 0) ink = logical;  // blanks alone
  // Glyphs may reach beyond the lines that they stand in.
  const int left = std::min(ink.x, logical.x) - padding_;
  const int top = std::min(ink.y, logical.y) - padding_;
  const int right = std::max(ink.x + ink.width, logical.x + logical.width) + padding_;
  const int bottom = std::max(ink.y + ink.height, logical.y + logical.height) + padding_;
  // Some letters have no width.
  const PictureSize size{std::clamp(right - left, 1, room_.width),
                         std::clamp(bottom - top, 1, room_.height)};
  std::vector<std::uint8_t> drawn(static_cast<std::size_t>(size.width) *
                                  static_cast<std::size_t>(size.height));
  FT_Bitmap bitmap{};
  bitmap.width = static_cast<unsigned>(size.width);
  bitmap.rows = static_cast<unsigned>(size.height);
  bitmap.pitch = size.width;
  bitmap.buffer = drawn.data();
  bitmap.num_grays = 256;
  bitmap.pixel_mode = FT_PIXEL_MODE_GRAY;
  pango_ft2_render_layout(&bitmap, layout, -left, -top);
  layout_->require_unchanged();
  require_unspoiled(scope);
  if (is_new) warn_of_boxes(text);
  const auto part = [](int side, double by) {
    return std::max(static_cast<int>(std::lround(side / by)), 1);
  };
  RgbaPicture picture{part(size.width, across_), part(size.height, down_), {}};
  const PictureSize shown{picture.width, picture.height};
  const std::vector<std::uint8_t> coverage =
      shown == size ? std::move(drawn) : PlaneScaler(size, shown, ScaleFilter::kArea).scaled(drawn);
  std::array<std::array<std::uint8_t, 4>, 256> pixels{};  // by coverage
  for (std::size_t i = 0; i < pixels.size(); ++i) {
    put(options_.color, static_cast<int>(i), options_.box, pixels[i].data());
  }
  picture.pixels.resize(4 * coverage.size());
  for (std::size_t i = 0; i < coverage.size(); ++i) {
    std::ranges::copy(pixels[coverage[i]], &picture.pixels[4 * i]);
  }
  return picture;
}

bool is_utf8(const std::string& text) {
  return g_utf8_validate(text.data(), static_cast<gssize>(text.size()), nullptr) != FALSE;
}

}  // namespace framelane
