#include "pipeline/overlay/fonts.hpp"

#include <fontconfig/fontconfig.h>  // must precede fcfreetype.h

#include <fontconfig/fcfreetype.h>
#include <glib.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <mutex>
#include <system_error>

#include "pipeline/base/bus_guard.hpp"
#include "pipeline/base/detached_read.hpp"
#include "pipeline/base/failure.hpp"

namespace framelane {
namespace {

constexpr char kNoFonts[] =
    "there is no font on this system, apart from folders that this user may not read; install one "
    "(Debian: fonts-dejavu-core), or give font: FILE";

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

/// Null if it is no font, or is overwritten meanwhile.
FcPatternPtr first_font_in(const std::string& file) {
  int count = 0;
  FcPatternPtr font(nullptr, &FcPatternDestroy);
  const BusGuardScope scope;
  font.reset(FcFreeTypeQuery(as_fc(file), 0, nullptr, &count));
  if (scope.spoiled()) font.reset();
  return font;
}

/// How glyphs are drawn, whatever this system's rules are: a text looks the same everywhere.
constexpr char kDrawing[] =
    "<match target=\"font\"><edit name=\"antialias\" mode=\"assign\"><bool>true</bool></edit>"
    "<edit name=\"hinting\" mode=\"assign\"><bool>true</bool></edit>"
    "<edit name=\"autohint\" mode=\"assign\"><bool>false</bool></edit>"
    "<edit name=\"hintstyle\" mode=\"assign\"><const>hintslight</const></edit></match>";

/// Leaves out the system's fonts of the families that `font` names.
std::string without_families(const FcPattern& font) {
  std::string xml = "<selectfont><rejectfont>";
  FcChar8* family = nullptr;
  for (int i = 0; FcPatternGetString(&font, FC_FAMILY, i, &family) == FcResultMatch; ++i) {
    char* const name = g_markup_escape_text(reinterpret_cast<const char*>(family), -1);
    xml += std::string("<pattern><patelt name=\"family\"><string>") + name +
           "</string></patelt></pattern>";
    g_free(name);
  }
  return xml + "</rejectfont></selectfont>";
}

bool has_fonts(FcConfig* fonts) {
  for (const FcSetName set : {FcSetSystem, FcSetApplication}) {
    const FcFontSet* const found = FcConfigGetFonts(fonts, set);
    if (found != nullptr && found->nfont > 0) return true;
  }
  return false;
}

}  // namespace

FcPatternPtr require_font(const std::string& file) {
  FcPatternPtr font = first_font_in(file);
  if (font != nullptr) return font;
  throw FeedError(FeedFault::kConfiguration,
                  "the font " + file + ' ' + why_no_font(file).value_or("is being overwritten"));
}

FcPatternPtr require_named_font(const std::string& file) {
  if (const auto why = why_unreadable(file)) {
    throw FeedError(FeedFault::kConfiguration, "the font " + file + ' ' + *why);
  }
  return require_font(file);
}

FcConfigPtr load_fonts(const std::string& file, const FcPattern* font) {
  std::string rules = "<fontconfig>";
  rules += kDrawing;
  if (font != nullptr) rules += without_families(*font);
  rules += "</fontconfig>";
  FcConfigPtr fonts(FcInitLoadConfig(), &FcConfigDestroy);
  if (fonts == nullptr ||
      FcConfigParseAndLoadFromMemory(fonts.get(), as_fc(rules), FcTrue) == FcFalse ||
      FcConfigBuildFonts(fonts.get()) == FcFalse) {
    throw FeedError(FeedFault::kConfiguration,
                    "fontconfig cannot be used; check /etc/fonts/fonts.conf");
  }
  if (font != nullptr && FcConfigAppFontAddFile(fonts.get(), as_fc(file)) == FcFalse) {
    throw FeedError(FeedFault::kConfiguration, "the font " + file + " cannot be used");
  }
  if (!has_fonts(fonts.get())) throw FeedError(FeedFault::kConfiguration, kNoFonts);
  return fonts;
}

std::optional<std::string> why_no_font(const std::string& file) {
  if (auto why = why_unreadable(file)) return why;
  if (first_font_in(file) != nullptr) return std::nullopt;
  return "is no font that can be read; give a TrueType or OpenType file";
}

std::optional<std::string> why_no_system_font(std::chrono::milliseconds limit) {
  using Answer = std::optional<std::string>;
  static std::mutex mutex;
  static DetachedRead<Answer> looking;  // guarded by mutex
  const std::lock_guard lock(mutex);
  const bool begun = looking.begin([]() -> Answer {
    const BusGuardScope scope;
    try {
      load_fonts({}, nullptr);
    } catch (const FeedError& error) {
      return error.what();
    }
    return std::nullopt;
  });
  if (begun) {
    if (const std::optional<Answer> answer = looking.wait_for(limit)) return *answer;
    looking.abandon();
  }
  return "the fonts of this system cannot be read in time; see whether the disk or file server "
         "that they are on answers";
}

}  // namespace framelane
