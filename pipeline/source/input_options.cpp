#include "pipeline/source/input_options.hpp"

#include <algorithm>
#include <array>
#include <string>
#include <string_view>

#include "pipeline/av/device_formats.hpp"
#include "pipeline/base/url.hpp"

namespace framelane {
namespace {

template <std::size_t N>
bool is_one_of(std::string_view value, const std::array<std::string_view, N>& values) {
  return std::ranges::find(values, value) != values.end();
}

// True if the demuxer or the URL's ending says that it is a camera. Otherwise it counts as a file
// until it is opened; so does a playlist, which may be finished or grow.
bool is_live_http(const InputOptions& input) {
  static constexpr std::array<std::string_view, 2> kFormats{"mpjpeg", "mpegts"};
  static constexpr std::array<std::string_view, 2> kEndings{".mjpg", ".mjpeg"};
  if (is_one_of(input.format, kFormats)) return true;
  const std::string_view url = input.url;
  const std::string_view path = url.substr(0, url.find_first_of("?#"));
  return std::ranges::any_of(kEndings, [&](std::string_view end) { return path.ends_with(end); });
}

}  // namespace

bool is_live(const InputOptions& input) {
  static constexpr std::array<std::string_view, 22> kNetwork{
      "rtsp",   "rtsps", "satip", "rtmp", "rtmpe",   "rtmps", "rtmpt", "rtmpte",
      "rtmpts", "rtp",   "srtp",  "udp",  "udplite", "srt",   "rist",  "tcp",
      "tls",    "sctp",  "mmsh",  "mmst", "amqp",    "zmq"};
  if (input.pace == InputOptions::Pace::kRealtime) return true;
  const std::string scheme = url_scheme(input.url);
  if (scheme == "http" || scheme == "https") return is_live_http(input);
  const auto captures = [](const DeviceFormat* device) { return device && device->captures(); };
  return is_one_of(scheme, kNetwork) || captures(device_of_scheme(scheme)) ||
         captures(device_format(input.format)) || names_v4l2_device(input.url);
}

bool names_v4l2_device(std::string_view url) {
  constexpr std::string_view kPrefix = "/dev/video";
  return url.starts_with(kPrefix) && url.find('/', kPrefix.size()) == std::string_view::npos;
}

}  // namespace framelane
