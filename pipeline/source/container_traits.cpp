#include "pipeline/source/container_traits.hpp"

#include <string_view>

namespace framelane {

bool is_playlist(const AVInputFormat& format) {
  const std::string_view name = format.name;
  return name == "hls" || name == "dash";
}

bool is_endless(const AVFormatContext& context, bool http) {
  const std::string_view name = context.iformat->name;
  if (name == "sdp") return true;
  if (context.duration > 0) return false;
  if (is_playlist(*context.iformat)) return true;
  return http && (name == "mpjpeg" || (context.pb != nullptr && avio_size(context.pb) < 0));
}

bool is_untimed(const AVInputFormat& format) {
  const std::string_view name = format.name;
  return (format.flags & AVFMT_NOTIMESTAMPS) != 0 || name == "image2pipe" ||
         name.ends_with("_pipe");
}

bool times_are_continuous(const AVInputFormat& format) {
  return (format.flags & AVFMT_TS_DISCONT) == 0;
}

}  // namespace framelane
