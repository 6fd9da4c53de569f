#pragma once

#include <fontconfig/fontconfig.h>

#include <chrono>
#include <memory>
#include <optional>
#include <string>

namespace framelane {

using FcConfigPtr = std::unique_ptr<FcConfig, decltype(&FcConfigDestroy)>;
using FcPatternPtr = std::unique_ptr<FcPattern, decltype(&FcPatternDestroy)>;

/// The first font of a file. Throws FeedError(kConfiguration) if it cannot be read, is no font, or
/// is overwritten meanwhile.
FcPatternPtr require_font(const std::string& file);
/// The same of a file that a user has named: pipes and devices, which fontconfig does not find, are
/// refused and not opened.
FcPatternPtr require_named_font(const std::string& file);

/// The fonts of the system, and those of a file, which come before others of their names. Glyphs
/// are drawn with slight hinting, whatever the system's rules are. `font`: the first of the file;
/// null if there is none. Throws FeedError(kConfiguration), also if there is no font.
FcConfigPtr load_fonts(const std::string& file, const FcPattern* font);

/// Why the file is no font, as the end of a sentence; nothing if it is one. Reads it.
std::optional<std::string> why_no_font(const std::string& file);
/// Why a text without a font of its own cannot be drawn: a sentence; nothing if it can. Looks for
/// the system's fonts on a thread of its own, and waits for it for `limit` at most. The thread then
/// counts as stuck until it ends, and until then every call says at once that the fonts cannot be
/// read in time. Any thread; one call at a time, others wait for it. Throws std::system_error if no
/// thread starts.
std::optional<std::string> why_no_system_font(std::chrono::milliseconds limit);

}  // namespace framelane
