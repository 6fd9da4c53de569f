#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <stop_token>
#include <string>

extern "C" {
#include <libavcodec/bsf.h>
#include <libavformat/avformat.h>
}

#include "pipeline/av/interrupt.hpp"
#include "pipeline/base/failure.hpp"
#include "pipeline/output/container.hpp"
#include "pipeline/output/output_options.hpp"
#include "pipeline/packets/media.hpp"

namespace framelane {

class AvLogCapture;

/// An IoError because there is no space left: waiting helps, another try at
/// once does not.
class DiskFull : public IoError {
 public:
  explicit DiskFull(const std::string& message) : IoError(IoFault::kIo, message) {}
};

/// Throws what an FFmpeg error code stands for: DiskFull or an IoError.
[[noreturn]] void throw_io_error(int averror, const std::string& message);

/// How a muxer is opened.
struct MuxerTarget {
  std::string url;                              ///< what FFmpeg opens: a path, a NAME.part, a peer
  bool append = false;                          ///< kPlaylist: continue the playlist that is there
  std::optional<std::int64_t> first_segment{};  ///< kPlaylist: number of the first segment
  std::string segments{};                       ///< kPlaylist: their names with %d, or FFmpeg's own
  std::string init_segment{};                   ///< kPlaylist: of fMP4 segments, or FFmpeg's own
};

/// A container between its header and its trailer. Owned and used by one
/// thread. Calls to a network peer or a FIFO's reader end within
/// options.timeout, or within a fraction of a second once `stop` asks; local
/// files are never interrupted, so that their trailers are always written, unless `given_up` asks:
/// then nothing is written or opened any more.
class Muxer {
 public:
  /// Connects or opens and writes the header. Throws IoError, or
  /// FeedError(kConfiguration) for codecs the container cannot hold and options
  /// that nothing consumes.
  Muxer(const OutputOptions& options, const Container& container, const MuxerTarget& target,
        const MediaFormat& format, std::stop_token stop, std::stop_token given_up);
  /// Closes without a trailer unless finish() was called.
  ~Muxer();
  Muxer(const Muxer&) = delete;
  Muxer& operator=(const Muxer&) = delete;

  bool has_audio() const { return audio_index_ >= 0; }

  /// Writes a packet whose timestamps are in `time_base`, `offset_us` earlier;
  /// they are changed. False when the container refuses this one packet
  /// (timestamps that do not rise). Throws IoError.
  bool write(AVPacket& packet, StreamKind stream, AVRational time_base, std::int64_t offset_us);
  /// Hands what is buffered to the system. Throws IoError.
  void flush();
  /// Writes the trailer and closes. `end_of_list`: a playlist says that nothing
  /// will follow. Throws IoError.
  void finish(bool end_of_list);

  /// Bytes written since the last call (for muxers that open files by
  /// themselves: of packets).
  std::uint64_t take_bytes();

 private:
  static constexpr std::chrono::milliseconds kStopGrace{300};

  void add_stream(const StreamFormat& format);
  void put_headers_in_band();
  void write_header(const OutputOptions& options, const MuxerTarget& target);
  void open_fifo(const std::string& path);
  void note_position();
  void arm();
  void check(int error, const char* doing, const AvLogCapture* log = nullptr);
  void close();
  static int open_part(AVFormatContext* context, AVIOContext** io, const char* url, int flags,
                       AVDictionary** options);
  static int close_part(AVFormatContext* context, AVIOContext* io);

  const Container& container_;
  const std::string url_;  // redacted
  const std::string name_;
  const std::chrono::milliseconds timeout_;
  const bool bounded_;  // calls have a deadline
  std::stop_token stop_;
  Interrupt interrupt_;
  std::optional<std::stop_callback<std::function<void()>>> on_stop_;
  int fifo_ = -1;
  AVFormatContext* context_ = nullptr;
  AVBSFContext* headers_in_band_ = nullptr;  // null: the video passes as it is
  int audio_index_ = -1;
  decltype(AVFormatContext::io_open) open_default_ = nullptr;
  bool open_ = false;       // between header and trailer
  bool abandoned_ = false;  // no more files may be opened
  int part_error_ = 0;      // of a file that the muxer opened by itself
  std::int64_t position_ = 0;
  std::uint64_t bytes_ = 0;
};

}  // namespace framelane
