#pragma once

#include <chrono>
#include <stop_token>
#include <string>

#include "pipeline/output/container.hpp"

namespace framelane {

/// True if a file holds something to play: the container's demuxer opens it and finds a packet. Raw
/// video counts as soon as there is a byte. Throws IoError if that could not be found out within
/// `limit` or before the stop: a disk may have to wake up, and what looks like a playlist may make
/// a demuxer wait for minutes.
bool is_playable(const std::string& path, const Container& container, const std::stop_token& stop,
                 std::chrono::milliseconds limit = std::chrono::seconds(5));

}  // namespace framelane
