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
#include "pipeline/output/container.hpp"
#include "pipeline/output/cut_points.hpp"
#include "pipeline/output/output_options.hpp"
#include "pipeline/output/packets_in_file.hpp"
#include "pipeline/packets/media.hpp"

namespace framelane {

class AvLogCapture;

/// What may end a muxer's calls early. One that is not asked for ends nothing.
struct MuxerStops {
  /// No new packets come. A peer that has been sent nothing yet gets only kDrainGrace more to let
  /// itself be opened.
  std::stop_token drain;
  /// Every call to a peer gets only kStopGrace.
  std::stop_token stop;
  /// Nothing more is written or opened.
  std::stop_token abandoned;
};

/// An open container, from its header to its trailer. Used by one thread. A call to a network peer
/// or to a FIFO's reader ends within options.timeout, or sooner as MuxerStops says. Calls on local
/// files are never interrupted, so that trailers are always written, except by `abandoned`.
class Muxer {
 public:
  using WallTime = std::chrono::system_clock::time_point;

  /// Connects or opens, and writes the header. `container` must outlive it. `begins`: when the
  /// first picture was taken, if the container is to say it. Throws IoError, DiskFull, or
  /// FeedError(kConfiguration) for what the muxer refuses and for options that nothing uses. What
  /// check_video() knows it does not ask again.
  Muxer(const OutputOptions& options, const Container& container, const std::string& url,
        const MediaFormat& format, std::optional<WallTime> begins, MuxerStops stops);
  /// Without finish() it closes without a trailer, and waits for no peer.
  ~Muxer();
  Muxer(const Muxer&) = delete;
  Muxer& operator=(const Muxer&) = delete;

  bool has_audio() const { return audio_index_ >= 0; }
  /// True if the container carries for every fragment when its first picture was taken, if the
  /// packets do (tell_taken_at).
  bool carries_times() const { return carries_times_; }

  /// Writes a packet. Its timestamps are in `time_base`; `offset_us` is subtracted from them, and
  /// `shift_us` added in the container's own time base; the packet is changed. False if the
  /// container refuses this one packet (its timestamps do not rise). Throws IoError, DiskFull.
  bool write(AVPacket& packet, StreamKind stream, AVRational time_base, std::int64_t offset_us,
             std::int64_t shift_us);
  /// Hands what is buffered to the system. Throws IoError, DiskFull.
  void flush();
  /// Writes the trailer and closes. Throws IoError, DiskFull.
  void finish();

  // For the segments of a playlist, which are written by one muxer into one file after the other.
  // All throw IoError, DiskFull.

  /// Writes what the muxer holds back. The first time a muxer of MP4 writes its header alone.
  void end_fragment();
  /// Closes the file. Packets may follow only after open_file().
  void close_file();
  void open_file(const std::string& url);

  /// Bytes written since the last call. For muxers that open files by themselves: bytes of packets.
  std::uint64_t take_bytes();

  /// Where the file can be cut if it is not finished.
  const CutPoints& cut_points() const { return cut_points_; }

 private:
  static constexpr std::chrono::milliseconds kStopGrace{300};
  static constexpr std::chrono::milliseconds kDrainGrace{1500};

  void add_stream(const StreamFormat& format);
  void put_headers_in_band();
  void tell_time(WallTime begins);
  void write_header(const OutputOptions& options, const std::string& target);
  void open_fifo(const std::string& path);
  void note_position();
  /// So many packets lie in what was written.
  void note_cut_point(std::uint64_t packets);
  /// How long a call to a peer may take now.
  std::chrono::milliseconds time_limit() const;
  /// Begins the time limit of the next call.
  void arm();
  /// Throws IoError or DiskFull if `error` is one: "cannot DOING URL: …".
  void check(int error, const char* doing, const AvLogCapture* log = nullptr);
  void close();
  static int open_part(AVFormatContext* context, AVIOContext** io, const char* url, int flags,
                       AVDictionary** options);
  static int close_part(AVFormatContext* context, AVIOContext* io);

  const Container& container_;
  std::string url_;  // redacted
  const std::string name_;
  const std::chrono::milliseconds timeout_;
  const bool bounded_;  // calls have a deadline: a peer or a FIFO's reader takes part in them
  const MuxerStops stops_;
  Interrupt interrupt_;
  std::optional<std::stop_callback<std::function<void()>>> on_stop_;
  std::optional<std::stop_callback<std::function<void()>>> on_drain_;  // until it is open
  int fifo_ = -1;
  AVFormatContext* context_ = nullptr;
  AVBSFContext* headers_in_band_ = nullptr;  // null: the video passes as it is
  int audio_index_ = -1;
  bool carries_times_ = false;
  decltype(AVFormatContext::io_open) open_default_ = nullptr;
  bool opening_ = true;         // before the header is written
  bool open_ = false;           // between header and trailer
  bool refuses_files_ = false;  // the muxer may open no more files
  int part_error_ = 0;          // of a file that the muxer opened by itself
  std::int64_t position_ = 0;   // the highest that was counted in bytes_
  std::uint64_t bytes_ = 0;
  CutPoints cut_points_;
  std::optional<PacketsInFile> packets_;  // since the header
};

}  // namespace framelane
