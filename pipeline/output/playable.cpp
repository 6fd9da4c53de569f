#include "pipeline/output/playable.hpp"

#include <array>
#include <cerrno>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <memory>
#include <new>
#include <string_view>
#include <system_error>

#include "pipeline/av/av_error.hpp"
#include "pipeline/av/av_ptr.hpp"
#include "pipeline/av/dictionary.hpp"
#include "pipeline/av/interrupt.hpp"
#include "pipeline/base/failure.hpp"
#include "pipeline/base/redact.hpp"
#include "pipeline/output/whole_end.hpp"

namespace framelane {
namespace {

/// A header describes the streams, and is never longer: what is longer has lost something.
constexpr std::uintmax_t kLongestHeader = 16384;

/// True if the file is an MP4's first box ("ftyp", ISO/IEC 14496-12, 4.3) and nothing else. With
/// delay_moov that is all until the first fragment is written, and no demuxer opens it.
bool is_file_type_box(const std::string& path, std::uintmax_t size) {
  std::array<char, 8> head{};
  std::ifstream file(path, std::ios::binary);
  if (!file.read(head.data(), head.size())) return false;
  std::uint32_t box = 0;
  for (std::size_t i = 0; i < 4; ++i) box = box << 8 | static_cast<unsigned char>(head[i]);
  return box == size && std::string_view(head.data() + 4, 4) == "ftyp";
}

/// True for what is not the file's fault: it can be examined later.
bool is_passing(int error) {
  switch (error) {
    case AVERROR(EACCES):
    case AVERROR(EAGAIN):
    case AVERROR(EMFILE):
    case AVERROR(ENFILE):
    case AVERROR(ENOMEM):
      return true;
    default:
      return false;
  }
}

/// The same for an error of the disk itself. Demuxers report EIO for damage as well.
bool is_passing_on_disk(int error) {
  return error == AVERROR(EIO) || error == AVERROR(ESTALE) || is_passing(error);
}

struct IoCloser {
  void operator()(AVIOContext* io) const { avio_close(io); }
};

}  // namespace

Contents contents_of(const std::string& path, const Container& container,
                     const std::stop_token& stop, std::chrono::milliseconds limit) {
  std::error_code error;
  const std::uintmax_t size = std::filesystem::file_size(path, error);
  if (error) {
    throw IoError(io_fault_from_errno(error.value()),
                  "cannot read " + redact(path) + ": " + error.message());
  }
  if (size == 0 || is_file_type_box(path, size)) return Contents::kNothing;
  if (size <= kLongestHeader && is_matroska_header(path, container)) return Contents::kNothing;
  // Raw video has no header: nothing in it can be missing.
  if (container.muxer && container.muxer->video_codec == AV_CODEC_ID_RAWVIDEO &&
      (container.muxer->flags & AVFMT_NOTIMESTAMPS)) {
    return Contents::kPlayable;
  }
  Interrupt interrupt(stop);
  const CallScope call(interrupt, limit);
  const AVIOInterruptCB callback = interrupt.callback();
  const std::string url = "file:" + path;
  // Opened here, since a demuxer that fails does not say whether it was the disk.
  AVIOContext* file = nullptr;
  int on_disk = avio_open2(&file, url.c_str(), AVIO_FLAG_READ, &callback, nullptr);
  const std::unique_ptr<AVIOContext, IoCloser> io(file);
  int opened = on_disk;
  bool found = false;
  bool header = false;
  if (io) {
    AVFormatContext* context = avformat_alloc_context();
    if (!context) throw std::bad_alloc();
    context->pb = io.get();
    context->interrupt_callback = callback;
    // Some demuxers are not named as their muxers are: without a name FFmpeg probes the file.
    const AVInputFormat* demuxer =
        container.muxer ? av_find_input_format(container.muxer->name) : nullptr;
    Dictionary options;
    options.set("protocol_whitelist", "file");  // the file may name URLs, which are not opened
    opened = avformat_open_input(&context, url.c_str(), demuxer, options.ptr());
    if (opened >= 0) {
      const PacketPtr packet = make_packet();
      const int read = av_read_frame(context, packet.get());
      found = read >= 0 && packet->size > 0;
      header = read == AVERROR_EOF && context->nb_streams > 0 && size <= kLongestHeader;
    }
    on_disk = io->error;
    avformat_close_input(&context);
  }
  if (found) return Contents::kPlayable;
  if (interrupt.cause() != Interrupt::Cause::kNone) {
    throw IoError(IoFault::kTimeout, "could not tell in time whether there is anything to play");
  }
  if (is_passing_on_disk(on_disk) || is_passing(opened)) {
    const int cause = on_disk < 0 ? on_disk : opened;
    throw IoError(IoFault::kIo, "cannot read " + redact(path) + ": " + av_error_text(cause));
  }
  return header ? Contents::kNothing : Contents::kDamaged;
}

}  // namespace framelane
