#pragma once

#include <algorithm>
#include <array>
#include <string_view>

namespace framelane {

/// The inputs of libavdevice that framelane knows by name.
inline constexpr std::array<std::string_view, 7> kDeviceFormats{
    "lavfi", "v4l2", "video4linux2", "x11grab", "fbdev", "kmsgrab", "decklink"};
inline bool is_device_format(std::string_view format) {
  return std::ranges::find(kDeviceFormats, format) != kDeviceFormats.end();
}

/// Registers libavdevice's inputs (lavfi, v4l2) with libavformat, once per process. The library is
/// loaded only here, when an input asks for it: it brings 180 MB of others with it. It stays
/// loaded. Thread-safe. Throws FeedError(kConfiguration), naming the package, when it is missing.
void require_avdevice();

}  // namespace framelane
