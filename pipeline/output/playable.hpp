#pragma once

#include <chrono>
#include <stop_token>
#include <string>

#include "pipeline/output/container.hpp"

namespace framelane {

/// What a file that was left unfinished holds.
enum class Contents {
  kPlayable,
  kNothing,  ///< no byte, or a container's header alone
  kDamaged,  ///< something of which nothing can be read
};

/// Looks into the file: it is playable if the container's demuxer opens it and finds a packet. Raw
/// video is as soon as there is a byte. Throws IoError if that could not be found out within
/// `limit` or before the stop: a disk may have to wake up, and what looks like a playlist may make
/// a demuxer wait for minutes.
Contents contents_of(const std::string& path, const Container& container,
                     const std::stop_token& stop,
                     std::chrono::milliseconds limit = std::chrono::seconds(5));

}  // namespace framelane
