#include "pipeline/output/playable.hpp"

#include <filesystem>
#include <new>
#include <system_error>

#include "pipeline/av/av_ptr.hpp"
#include "pipeline/av/dictionary.hpp"
#include "pipeline/av/interrupt.hpp"
#include "pipeline/base/failure.hpp"

namespace framelane {

bool is_playable(const std::string& path, const Container& container, const std::stop_token& stop,
                 std::chrono::milliseconds limit) {
  std::error_code error;
  if (std::filesystem::file_size(path, error) == 0 || error) return false;
  // Raw video has no header: nothing in it can be missing.
  if (container.muxer && container.muxer->video_codec == AV_CODEC_ID_RAWVIDEO &&
      (container.muxer->flags & AVFMT_NOTIMESTAMPS)) {
    return true;
  }
  AVFormatContext* context = avformat_alloc_context();
  if (!context) throw std::bad_alloc();
  Interrupt interrupt(stop);
  const CallScope call(interrupt, limit);
  context->interrupt_callback = interrupt.callback();
  // Some demuxers are not named as their muxers are: without a name FFmpeg probes the file.
  const AVInputFormat* demuxer =
      container.muxer ? av_find_input_format(container.muxer->name) : nullptr;
  const std::string url = "file:" + path;
  Dictionary options;
  options.set("protocol_whitelist", "file");  // the file may name URLs, which are not opened
  bool found = false;
  if (avformat_open_input(&context, url.c_str(), demuxer, options.ptr()) >= 0) {
    const PacketPtr packet = make_packet();
    found = av_read_frame(context, packet.get()) >= 0 && packet->size > 0;
  }
  avformat_close_input(&context);
  if (!found && interrupt.cause() != Interrupt::Cause::kNone) {
    throw IoError(IoFault::kTimeout, "could not tell in time whether there is anything to play");
  }
  return found;
}

}  // namespace framelane
