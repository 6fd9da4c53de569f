#include "tests/pipeline/source/media_files.hpp"

#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <memory>

namespace framelane::testing {

std::string clip(const std::string& name) { return std::string(FRAMELANE_TEST_DATA) + "/" + name; }

void write_file(const std::string& path, const Bytes& bytes) {
  std::ofstream(path, std::ios::binary)
      .write(reinterpret_cast<const char*>(bytes.data()),
             static_cast<std::streamsize>(bytes.size()));
}

Bytes read_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

Bytes output_of(const std::string& command) {
  const auto close = [](FILE* pipe) { ::pclose(pipe); };
  std::unique_ptr<FILE, decltype(close)> pipe(::popen(command.c_str(), "r"), close);
  Bytes bytes;
  std::uint8_t chunk[65536];
  while (const std::size_t count = std::fread(chunk, 1, sizeof chunk, pipe.get())) {
    bytes.insert(bytes.end(), chunk, chunk + count);
  }
  EXPECT_EQ(::pclose(pipe.release()), 0) << command;
  return bytes;
}

Bytes ffmpeg(const std::string& arguments) {
  return output_of("ffmpeg -nostdin -v error -y " + arguments);
}

std::vector<std::int64_t> probe(const std::string& path, const std::string& what) {
  const Bytes text = output_of("ffprobe -v error -select_streams v:0 -show_entries " + what +
                               " -of csv=p=0 '" + path + "'");
  std::vector<std::int64_t> values;
  std::string line;
  for (const std::uint8_t byte : text) {
    if (byte != '\n') {
      line += static_cast<char>(byte);
      continue;
    }
    if (!line.empty()) values.push_back(std::stoll(line));
    line.clear();
  }
  return values;
}

void append_pixels(const ConstImageView& image, Bytes& to) {
  for (int plane = 0; plane < info(image.format).plane_count; ++plane) {
    const std::size_t row_bytes = plane_row_bytes(image.format, plane, image.width);
    for (int y = 0; y < plane_rows(image.format, plane, image.height); ++y) {
      const std::uint8_t* row = image.row(plane, y);
      to.insert(to.end(), row, row + row_bytes);
    }
  }
}

}  // namespace framelane::testing
