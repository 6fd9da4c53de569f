#pragma once

#include <chrono>
#include <cstdint>
#include <istream>
#include <optional>
#include <stop_token>
#include <string>

#include "pipeline/output/container.hpp"

namespace framelane {

bool is_matroska(const Container& container);
/// Or one of its kin.
bool is_mp4(const Container& container);

/// Where to cut a recording that breaks off, so that nothing in it is half: the end of its last
/// whole fragment (MP4 and its kin: ISO/IEC 14496-12, 4.2) or cluster (Matroska: RFC 8794, RFC
/// 9559). Nothing if the file does not break off, if not even the first one is whole, if something
/// in it cannot be read or understood, and for other containers. Reads the headers alone. Throws
/// IoError if it has not come to the end by the deadline or before the stop.
std::optional<std::int64_t> whole_end(std::istream& file, const Container& container,
                                      const std::stop_token& stop,
                                      std::chrono::steady_clock::time_point deadline);

/// True if the file is a whole header of Matroska and nothing else. No demuxer opens that.
bool is_matroska_header(const std::string& path, const Container& container);

}  // namespace framelane
