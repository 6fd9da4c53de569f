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

bool is_capture_device(const InputOptions& input, const std::string& scheme) {
  const auto captures = [](const DeviceFormat* device) { return device && device->captures(); };
  return captures(device_of_scheme(scheme)) || captures(device_format(input.format)) ||
         names_v4l2_device(input.url);
}

}  // namespace

bool is_live(const InputOptions& input) {
  static constexpr std::array<std::string_view, 23> kLive{
      "rtsp",   "rtsps", "satip", "rtmp", "rtmpe",   "rtmps", "rtmpt", "rtmpte",
      "rtmpts", "rtp",   "srtp",  "udp",  "udplite", "srt",   "rist",  "tcp",
      "tls",    "sctp",  "mmsh",  "mmst", "amqp",    "zmq",   "shm"};
  if (input.pace == InputOptions::Pace::kRealtime) return true;
  const std::string scheme = url_scheme(input.url);
  return is_one_of(scheme, kLive) || is_capture_device(input, scheme);
}

bool waits_for_reader(const InputOptions& input) {
  static constexpr std::array<std::string_view, 5> kLossy{"udp", "udplite", "rtp", "srtp", "shm"};
  static constexpr std::array<std::string_view, 3> kStreams{"tcp", "http", "https"};
  const std::string scheme = url_scheme(input.url);
  if (scheme == "rtsp" || scheme == "satip") {
    return std::ranges::any_of(input.options, [](const AvOption& option) {
      return option.key == "rtsp_transport" && is_one_of(option.value, kStreams);
    });
  }
  const bool sdp = input.format == "sdp" || input.url.ends_with(".sdp");
  return !sdp && !is_one_of(scheme, kLossy) && !is_capture_device(input, scheme);
}

std::optional<std::string> shm_socket(std::string_view url) {
  constexpr std::string_view kScheme = "shm:";
  if (!url.starts_with(kScheme)) return std::nullopt;
  return std::string(url.substr(kScheme.size()));
}

bool names_v4l2_device(std::string_view url) {
  constexpr std::string_view kPrefix = "/dev/video";
  return url.starts_with(kPrefix) && url.find('/', kPrefix.size()) == std::string_view::npos;
}

}  // namespace framelane
