#pragma once

namespace framelane {

/// Registers libavdevice's inputs (device_formats.hpp) with libavformat, once per process. The
/// library is loaded here, when an input asks for it, and stays loaded: it brings 180 MB of others
/// with it. Thread-safe. Throws FeedError(kConfiguration), naming the package, when it is missing;
/// the next call tries again.
void require_avdevice();

}  // namespace framelane
