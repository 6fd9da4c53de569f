#pragma once

namespace framelane {

/// Registers libavdevice's inputs (lavfi, v4l2) with libavformat, once per process. The library is
/// loaded only here, when an input asks for it: it brings 180 MB of others with it. It stays
/// loaded. Thread-safe. Throws FeedError(kConfiguration), naming the package, when it is missing.
void require_avdevice();

}  // namespace framelane
