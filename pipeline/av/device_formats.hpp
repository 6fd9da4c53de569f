#pragma once

#include <algorithm>
#include <array>
#include <string_view>

namespace framelane {

/// An input of libavdevice. FFmpeg calls it a demuxer, and finds it only after require_avdevice().
struct DeviceFormat {
  enum class Kind {
    kGenerator,  ///< makes its pictures: a test source
    kV4l2,       ///< a camera or capture card behind /dev/video*
    kGrabber,    ///< takes pictures from a screen or a card
  };

  std::string_view name;  ///< the demuxer's, as `input.format` gives it
  Kind kind = Kind::kGrabber;
  bool is_scheme = false;  ///< a URL may begin with the name: "v4l2:/dev/video0"

  /// True if its pictures show what happens now: the source is live.
  constexpr bool captures() const { return kind != Kind::kGenerator; }
};

/// The devices that framelane knows.
inline constexpr std::array kDeviceFormats{
    DeviceFormat{"lavfi", DeviceFormat::Kind::kGenerator, true},
    DeviceFormat{"v4l2", DeviceFormat::Kind::kV4l2, true},
    DeviceFormat{"video4linux2", DeviceFormat::Kind::kV4l2},
    DeviceFormat{"x11grab"},
    DeviceFormat{"fbdev"},
    DeviceFormat{"kmsgrab"},
    DeviceFormat{"decklink"},
};

/// The device of that name; null if there is none.
constexpr const DeviceFormat* device_format(std::string_view name) {
  const auto found = std::ranges::find(kDeviceFormats, name, &DeviceFormat::name);
  return found != kDeviceFormats.end() ? &*found : nullptr;
}

/// The device that a URL's scheme names; null if the scheme names no device.
constexpr const DeviceFormat* device_of_scheme(std::string_view scheme) {
  const DeviceFormat* device = device_format(scheme);
  return device != nullptr && device->is_scheme ? device : nullptr;
}

}  // namespace framelane
