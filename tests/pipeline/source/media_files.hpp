#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "kernels/image_view.hpp"
#include "tests/temp_folder.hpp"

namespace framelane::testing {

using Bytes = std::vector<std::uint8_t>;

/// A clip of tests/data.
std::string clip(const std::string& name);

void write_file(const std::string& path, const Bytes& bytes);
Bytes read_file(const std::string& path);

/// What a shell command prints. Fails the test when the command does.
Bytes output_of(const std::string& command);

/// Runs the ffmpeg command; returns what it writes to standard output.
Bytes ffmpeg(const std::string& arguments);

/// The first video stream's packet or frame timestamps as ffprobe reads them; `what` is for
/// example "packet=dts" or "frame=best_effort_timestamp".
std::vector<std::int64_t> probe(const std::string& path, const std::string& what);

/// The pixels without padding, plane after plane: what `ffmpeg -f rawvideo` writes.
void append_pixels(const ConstImageView& image, Bytes& to);

}  // namespace framelane::testing
