#pragma once

extern "C" {
#include <libavformat/avformat.h>
}

#include <cstddef>
#include <cstdint>

#include "pipeline/output/container.hpp"
#include "pipeline/packets/media.hpp"

namespace framelane {

/// How many of the packets that FFmpeg's muxer took lie in what it has written to its file: muxers
/// hold some back. Exact for MP4 and its kin, Matroska and MPEG-TS; of other containers every
/// packet counts as written at once. Not thread-safe.
class PacketsInFile {
 public:
  /// `muxer` has written its header.
  PacketsInFile(const Container& container, const AVFormatContext& muxer);

  /// The muxer has taken a packet of so many bytes. `wrote`: it has written something meanwhile.
  /// Returns how many packets lie in all that it has written; after a call that wrote nothing the
  /// number means nothing.
  std::uint64_t add(StreamKind stream, std::size_t bytes, bool wrote);

 private:
  enum class Holds {
    kNothing,
    kFragment,  ///< MP4: the packets since the last fragment, which the next one's first completes
    kCluster,   ///< Matroska: the same, and one packet of sound, until the next packet
    kSound,     ///< MPEG-TS: several packets of sound become one of its own
  };

  const Holds holds_;
  std::int64_t most_sound_ = 0;  // bytes of sound in one packet of MPEG-TS
  std::uint64_t taken_ = 0;
  std::uint64_t held_ = 0;  // packets of sound
};

}  // namespace framelane
