#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "kernels/pixel_format.hpp"

namespace framelane {

/// FFmpeg's names of the pixel formats of raw video: those that have the layout of a PixelFormat.
std::vector<std::string_view> raw_format_names();

/// What is wrong with the URL of raw video if it has no local_path().
inline constexpr std::string_view kNoPlaceOfRawVideo =
    "is no place of raw video, which is read from a file, a FIFO, - (standard input) or shared "
    "memory (shm:SOCKET)";

/// True for a file, a FIFO, standard input and shared memory.
bool is_place_of_raw_video(std::string_view url);
/// What is wrong with shared memory without format: rawvideo.
inline constexpr std::string_view kNeedsRawVideo =
    "is shared memory, which says nothing about its pixels: it needs the format rawvideo, and the "
    "pixel format, size and rate";

/// The layout of a format; nothing if it is none of these.
std::optional<PixelFormat> raw_format_layout(std::string_view name);

/// FFmpeg's names of the pixel formats that frames can be converted to: one for each layout.
std::vector<std::string_view> target_format_names();

}  // namespace framelane
