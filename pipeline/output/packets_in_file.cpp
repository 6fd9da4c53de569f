#include "pipeline/output/packets_in_file.hpp"

extern "C" {
#include <libavutil/opt.h>
}

#include <string_view>
#include <utility>

#include "pipeline/output/whole_end.hpp"

namespace framelane {

PacketsInFile::PacketsInFile(const Container& container, const AVFormatContext& muxer)
    : holds_(is_mp4(container)                                   ? Holds::kFragment
             : is_matroska(container)                            ? Holds::kCluster
             : std::string_view(muxer.oformat->name) == "mpegts" ? Holds::kSound
                                                                 : Holds::kNothing) {
  if (holds_ == Holds::kSound) av_opt_get_int(muxer.priv_data, "pes_payload_size", 0, &most_sound_);
}

std::uint64_t PacketsInFile::add(StreamKind stream, std::size_t bytes, bool wrote) {
  const std::uint64_t before = taken_++;
  const bool sound = stream == StreamKind::kAudio;
  switch (holds_) {
    case Holds::kNothing:
      break;
    case Holds::kFragment:
      return before;
    case Holds::kCluster:
      return before - std::exchange(held_, sound ? 1 : 0);
    case Holds::kSound:
      // What it writes when it takes sound is the sound before, or sound that is too long to wait.
      if (sound && wrote) held_ = std::cmp_greater(bytes, most_sound_) ? 0 : 1;
      if (sound && !wrote) ++held_;
      return taken_ - held_;
  }
  return taken_;
}

}  // namespace framelane
