#pragma once

#include <stop_token>
#include <string>

#include "pipeline/output/container.hpp"

namespace framelane {

/// Whether a part file holds something a player can show: its container's demuxer opens it and
/// finds a packet. Throws IoError when that could not be told in five seconds or before the stop.
bool is_playable(const std::string& path, const Container& container, const std::stop_token& stop);

}  // namespace framelane
