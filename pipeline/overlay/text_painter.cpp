#include "pipeline/overlay/text_painter.hpp"

#include <fontconfig/fontconfig.h>  // must precede fcfreetype.h

#include <fontconfig/fcfreetype.h>
#include <pango/pangofc-fontmap.h>
#include <pango/pangoft2.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cmath>
#include <filesystem>
#include <future>
#include <latch>
#include <mutex>
#include <string_view>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "kernels/picture_limits.hpp"
#include "pipeline/base/abandoned_threads.hpp"
#include "pipeline/base/failure.hpp"
#include "pipeline/base/log.hpp"
#include "pipeline/overlay/plane_scaler.hpp"

namespace framelane {
namespace {

using FcConfigPtr = std::unique_ptr<FcConfig, decltype(&FcConfigDestroy)>;
using FcPatternPtr = std::unique_ptr<FcPattern, decltype(&FcPatternDestroy)>;
using FontPtr = std::unique_ptr<PangoFontDescription, decltype(&pango_font_description_free)>;

const FcChar8* as_fc(const std::string& text) {
  return reinterpret_cast<const FcChar8*>(text.c_str());
}

/// Why the file cannot be opened, or not without waiting for somebody; nothing if it can.
std::optional<std::string> why_unreadable(const std::string& file) {
  std::error_code error;
  const auto type = std::filesystem::status(file, error).type();
  if (type == std::filesystem::file_type::regular) {
    if (access(file.c_str(), R_OK) == 0) return std::nullopt;
    error = std::error_code(errno, std::generic_category());
  }
  if (error) return "cannot be read: " + error.message();
  if (type == std::filesystem::file_type::directory) return "is a folder; name one of its files";
  return "is a pipe or a device; give a TrueType or OpenType file";
}

FcPatternPtr first_font_in(const std::string& file) {
  int count = 0;
  if (why_unreadable(file)) return {nullptr, &FcPatternDestroy};
  return {FcFreeTypeQuery(as_fc(file), 0, nullptr, &count), &FcPatternDestroy};
}

/// A configuration that leaves out the system's fonts of the families that `font` names.
std::string without_families(const FcPattern& font) {
  std::string xml = "<fontconfig><selectfont><rejectfont>";
  FcChar8* family = nullptr;
  for (int i = 0; FcPatternGetString(&font, FC_FAMILY, i, &family) == FcResultMatch; ++i) {
    char* const name = g_markup_escape_text(reinterpret_cast<const char*>(family), -1);
    xml += std::string("<pattern><patelt name=\"family\"><string>") + name +
           "</string></patelt></pattern>";
    g_free(name);
  }
  return xml + "</rejectfont></selectfont></fontconfig>";
}

/// The system's fonts, and that of a file, which comes before those of the same name.
FcConfigPtr load_fonts(const std::string& file, const FcPattern* font) {
  FcConfigPtr fonts(font == nullptr ? FcInitLoadConfigAndFonts() : FcInitLoadConfig(),
                    &FcConfigDestroy);
  if (fonts == nullptr) {
    throw FeedError(FeedFault::kConfiguration,
                    "fontconfig cannot be used; check /etc/fonts/fonts.conf");
  }
  if (font == nullptr) return fonts;
  const std::string rules = without_families(*font);
  if (FcConfigParseAndLoadFromMemory(fonts.get(), as_fc(rules), FcTrue) == FcFalse ||
      FcConfigBuildFonts(fonts.get()) == FcFalse ||
      FcConfigAppFontAddFile(fonts.get(), as_fc(file)) == FcFalse) {
    throw FeedError(FeedFault::kConfiguration, "the font " + file + " cannot be used");
  }
  return fonts;
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

constexpr char kNoFonts[] =
    "there is no font on this system; install one (Debian: fonts-dejavu-core), or give font: FILE";

bool has_fonts(FcConfig* fonts) {
  for (const FcSetName set : {FcSetSystem, FcSetApplication}) {
    const FcFontSet* const found = FcConfigGetFonts(fonts, set);
    if (found != nullptr && found->nfont > 0) return true;
  }
  return false;
}

/// Warnings of Pango and fontconfig's glue go to our log.
void take_glib_messages() {
  static std::once_flag once;
  std::call_once(once, [] {
    g_log_set_default_handler(
        [](const char* domain, GLogLevelFlags, const char* message, void*) {
          log::warn("{}: {}", domain != nullptr ? domain : "glib", message);
        },
        nullptr);
  });
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
  std::unique_ptr<PangoFontMap, UnrefMap> fonts;
  std::unique_ptr<PangoContext, Unref> context;
  std::unique_ptr<PangoLayout, Unref> layout;
};

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
  const FcPatternPtr own =
      options.font.empty() ? FcPatternPtr{nullptr, &FcPatternDestroy} : first_font_in(options.font);
  if (!options.font.empty() && own == nullptr) {
    throw FeedError(FeedFault::kConfiguration,
                    "the font " + options.font + ' ' + why_no_font(options.font).value_or(""));
  }
  const FcConfigPtr fonts = load_fonts(options.font, own.get());
  if (!has_fonts(fonts.get())) throw FeedError(FeedFault::kConfiguration, kNoFonts);
  FontPtr font(pango_font_description_from_string("sans"), &pango_font_description_free);
  if (own != nullptr) font.reset(pango_fc_font_description_from_pattern(own.get(), FALSE));
  pango_font_description_set_absolute_size(font.get(), pixels * down_ * PANGO_SCALE);
  layout_->fonts.reset(pango_ft2_font_map_new());
  pango_fc_font_map_set_config(PANGO_FC_FONT_MAP(layout_->fonts.get()), fonts.get());
  layout_->context.reset(pango_font_map_create_context(layout_->fonts.get()));
  layout_->layout.reset(pango_layout_new(layout_->context.get()));
  PangoLayout* const layout = layout_->layout.get();
  pango_layout_set_font_description(layout, font.get());
  pango_layout_set_alignment(layout, alignment_of(options.across));
  pango_layout_set_width(layout, std::max(room_.width - 2 * padding_, 1) * PANGO_SCALE);
  pango_layout_set_height(layout, std::max(room_.height - 2 * padding_, 1) * PANGO_SCALE);
  pango_layout_set_wrap(layout, PANGO_WRAP_WORD_CHAR);
  pango_layout_set_ellipsize(layout, PANGO_ELLIPSIZE_END);
}

TextPainter::~TextPainter() = default;

/// Pango draws a box for a letter that no font has.
void TextPainter::warn_of_boxes(const std::string& text) {
  const int boxes = pango_layout_get_unknown_glyphs_count(layout_->layout.get());
  if (boxes <= 0 || std::exchange(warned_, true)) return;
  log::warn(
      "the text \"{}\" is drawn with {} boxes: no font on this system has these letters; install "
      "one that has them (Debian: fonts-noto-core, fonts-noto-cjk), or give font: FILE",
      text, boxes);
}

RgbaPicture TextPainter::paint(const std::string& text) {
  if (text.empty()) return {};
  bool is_new = false;
  for (const char* at = text.c_str(); *at != '\0'; at = g_utf8_next_char(at)) {
    is_new = letters_.insert(g_utf8_get_char(at)).second || is_new;
  }
  if (is_new) require_threads();
  PangoLayout* const layout = layout_->layout.get();
  pango_layout_set_text(layout, text.data(), static_cast<int>(text.size()));
  if (is_new) warn_of_boxes(text);
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

std::optional<std::string> why_no_font(const std::string& file) {
  if (auto why = why_unreadable(file)) return why;
  if (first_font_in(file) != nullptr) return std::nullopt;
  return "is no font that can be read; give a TrueType or OpenType file";
}

std::optional<std::string> why_no_system_font(std::chrono::milliseconds limit) {
  using Answer = std::optional<std::string>;
  static std::mutex mutex;
  static std::future<Answer> looking;  // guarded by mutex
  const std::lock_guard lock(mutex);
  const auto has_ended = [](std::chrono::milliseconds time) {
    return looking.wait_for(time) == std::future_status::ready;
  };
  const bool hangs = looking.valid() && !has_ended(std::chrono::milliseconds(0));
  if (!hangs) {
    std::packaged_task<Answer()> look([]() -> Answer {
      try {
        if (!has_fonts(load_fonts({}, nullptr).get())) return kNoFonts;
      } catch (const FeedError& error) {
        return error.what();
      }
      return std::nullopt;
    });
    looking = look.get_future();
    std::thread(std::move(look)).detach();
    if (has_ended(limit)) return looking.get();
    count_abandoned_threads(1);
  }
  return "the fonts of this system cannot be read in time; see whether the disk or file server "
         "that they are on answers";
}

bool is_utf8(const std::string& text) {
  return g_utf8_validate(text.data(), static_cast<gssize>(text.size()), nullptr) != FALSE;
}

}  // namespace framelane
