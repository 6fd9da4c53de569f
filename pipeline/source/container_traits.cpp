#include "pipeline/source/container_traits.hpp"

extern "C" {
#include <libavutil/avstring.h>
#include <libavutil/mem.h>
#include <libavutil/opt.h>
}

#include <cstdint>
#include <string_view>

namespace framelane {
namespace {

/// True for the answer of a camera that replaces one picture by the next for as long as somebody
/// looks. Some cameras claim a length for it.
bool is_server_push(AVIOContext& http) {
  std::uint8_t* type = nullptr;
  if (av_opt_get(&http, "mime_type", AV_OPT_SEARCH_CHILDREN, &type) < 0) return false;
  constexpr std::string_view kType = "multipart/x-mixed-replace";
  const bool push = type != nullptr && av_strncasecmp(reinterpret_cast<const char*>(type),
                                                      kType.data(), kType.size()) == 0;
  av_free(type);
  return push;
}

}  // namespace

bool is_playlist(const AVInputFormat& format) {
  const std::string_view name = format.name;
  return name == "hls" || name == "dash";
}

bool is_endless(const AVFormatContext& context, bool http) {
  const std::string_view name = context.iformat->name;
  if (name == "sdp") return true;
  if (context.duration > 0) return false;
  if (is_playlist(*context.iformat)) return true;
  return http && context.pb != nullptr &&
         (is_server_push(*context.pb) || avio_size(context.pb) < 0);
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
