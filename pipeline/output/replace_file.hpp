#pragma once

#include <filesystem>
#include <string>
#include <string_view>

namespace framelane {

/// Ends the name of what is not complete.
inline constexpr std::string_view kTemporary = ".tmp";

/// Gives a file another's name. Throws IoError.
void rename_over(const std::filesystem::path& from, const std::filesystem::path& to);

/// Whether a file is on the disk when a function returns, so that a power cut does not empty it.
enum class OnDisk { kSoon, kNow };

/// Replaces the file as a whole: readers find the old text or the new one. Throws IoError and
/// DiskFull. Blocks as long as the file system does.
void replace_file(const std::filesystem::path& path, std::string_view text,
                  OnDisk when = OnDisk::kSoon);

}  // namespace framelane
