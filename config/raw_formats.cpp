#include "config/raw_formats.hpp"

#include <array>

#include "pipeline/base/url.hpp"
#include "pipeline/source/input_options.hpp"

namespace framelane {
namespace {

struct RawFormat {
  std::string_view name;
  PixelFormat layout;
};

constexpr std::array<RawFormat, 20> kRawFormats{{
    {"bgra", PixelFormat::kBgra},     {"bgr0", PixelFormat::kBgra},
    {"rgba", PixelFormat::kRgba},     {"rgb0", PixelFormat::kRgba},
    {"argb", PixelFormat::kArgb},     {"0rgb", PixelFormat::kArgb},
    {"abgr", PixelFormat::kAbgr},     {"0bgr", PixelFormat::kAbgr},
    {"bgr24", PixelFormat::kBgr24},   {"rgb24", PixelFormat::kRgb24},
    {"yuv420p", PixelFormat::kI420},  {"yuvj420p", PixelFormat::kI420},
    {"nv12", PixelFormat::kNv12},     {"yuv422p", PixelFormat::kI422},
    {"yuvj422p", PixelFormat::kI422}, {"yuyv422", PixelFormat::kYuyv},
    {"uyvy422", PixelFormat::kUyvy},  {"yuv444p", PixelFormat::kI444},
    {"yuvj444p", PixelFormat::kI444}, {"gray", PixelFormat::kGray8},
}};

}  // namespace

std::vector<std::string_view> raw_format_names() {
  std::vector<std::string_view> names;
  for (const RawFormat& format : kRawFormats) names.push_back(format.name);
  return names;
}

bool is_place_of_raw_video(std::string_view url) {
  return local_path(url).has_value() || shm_socket(url).has_value();
}

std::vector<std::string_view> target_format_names() {
  return {"yuv420p", "nv12", "yuv422p", "yuyv422", "uyvy422", "yuv444p", "gray",
          "bgra",    "rgba", "argb",    "abgr",    "bgr24",   "rgb24"};
}

std::optional<PixelFormat> raw_format_layout(std::string_view name) {
  for (const RawFormat& format : kRawFormats) {
    if (format.name == name) return format.layout;
  }
  return std::nullopt;
}

}  // namespace framelane
