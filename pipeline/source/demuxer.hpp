#pragma once

extern "C" {
#include <libavformat/avformat.h>
}

#include <chrono>
#include <exception>
#include <memory>
#include <optional>
#include <string>

#include "pipeline/av/av_error.hpp"
#include "pipeline/av/dictionary.hpp"
#include "pipeline/av/interrupt.hpp"
#include "pipeline/measure/feed_stats.hpp"
#include "pipeline/packets/media.hpp"
#include "pipeline/source/fd_reader.hpp"
#include "pipeline/source/input_guard.hpp"
#include "pipeline/source/input_options.hpp"
#include "pipeline/source/input_target.hpp"
#include "pipeline/source/timeline.hpp"

namespace framelane {

struct PersistentPipe;

/// Reads packets through libavformat: from files, cameras, playlists, test sources, and, through an
/// FdReader, from standard input and FIFOs. Takes the best video stream and, when asked to, the
/// best audio stream; the others are discarded.
///
/// A live source whose container carries no times (MJPEG over HTTP, raw H.264 over TCP) gets the
/// steady clock's time at each packet's arrival. So does what comes through a pipe, unless the
/// demuxer's option framerate says how far apart its pictures are.
///
/// One thread. Every call ends within the input's timeout, or at once on a stop. A live source is
/// also lost when it sends sound but no video for as long as the timeout.
class Demuxer {
 public:
  /// Opens the input and finds its streams. Throws IoError, also on a stop (which the caller knows
  /// from its token), and FeedError(kConfiguration) for what no retry mends. `pipe` as in
  /// SourceContext.
  Demuxer(const InputOptions& input, bool want_audio, FeedStats& stats, Interrupt& interrupt,
          PersistentPipe* pipe = nullptr);
  Demuxer(const Demuxer&) = delete;
  Demuxer& operator=(const Demuxer&) = delete;

  const AVStream& video() const { return *format_->streams[video_]; }
  /// Null when there is none or it was not asked for.
  const AVStream* audio() const { return audio_ >= 0 ? format_->streams[audio_] : nullptr; }
  AVRational frame_rate() const;
  /// Of the packets' timestamps.
  AVRational time_base(StreamKind kind) const {
    if (reads_clock_) return AV_TIME_BASE_Q;
    return (kind == StreamKind::kVideo ? video() : *audio()).time_base;
  }
  /// How a chosen stream counts time.
  Timeline::StreamClock clock_of(StreamKind kind) const;
  bool playlist() const;
  /// Whether the input is live: is_live says so, or what came shows it.
  bool live() const { return live_; }
  /// The earliest timestamp of the chosen streams; nothing when the container does not say.
  std::optional<std::chrono::microseconds> start() const;
  const InputAccess& access() const { return guard_.access(); }
  /// Throws, as read() does, if pictures of this size are more than the limit.
  void require_size(int width, int height) const;
  /// The options that neither demuxer nor protocol consumed.
  Dictionary& options() { return options_; }
  /// The URL without secrets, for messages.
  const std::string& name() const { return name_; }

  enum class Flow { kPacket, kEnd, kStopped };
  /// The next packet of a chosen stream. Throws IoError.
  Flow read(AVPacket& packet);
  /// True once nothing has come within the timeout. What read() still gives came before that: a
  /// parser holds a packet until it sees the beginning of the next one, or the end.
  bool silent() const { return silent_; }
  StreamKind kind_of(const AVPacket& packet) const {
    return packet.stream_index == video_ ? StreamKind::kVideo : StreamKind::kAudio;
  }

  /// Back to the start; false when the input has to be opened anew for that.
  bool rewind();
  /// After kEnd: gives away the FIFO that was read, for the next source; null when it was none.
  /// Only the destructor may be called afterwards.
  std::unique_ptr<FdReader> take_fifo();

 private:
  struct FormatDeleter {
    void operator()(AVFormatContext* context) const;
    Interrupt& interrupt;
  };
  struct IoDeleter {
    void operator()(AVIOContext* io) const;
  };

  void open(const InputOptions& input, PersistentPipe* pipe);
  void set_time_limits(const InputTarget& target);
  /// Probing for streams that never come must not use up the whole timeout.
  std::chrono::microseconds patience() const;
  /// Finds the streams of what was opened, and whether it is live. Returns FFmpeg's error.
  int examine(const InputTarget& target);
  void open_reader(const std::string& path, PersistentPipe* pipe);
  void choose_streams(const std::string& format, bool live, bool want_audio);
  IoFault fault_of(int error) const {
    return host_.empty() ? file_fault_from_averror(error) : io_fault_from_averror(error);
  }
  [[noreturn]] void fail_open(int error, const std::string& reason) const;
  void rethrow_own_causes() const;
  [[noreturn]] void fail_read(int error) const;
  /// Of what nothing came within the timeout.
  [[noreturn]] void fail_silent(const char* what = "nothing usable", const char* more = "") const;
  /// What came is against a limit, or asks for what is not allowed.
  [[noreturn]] void fail_refused(const std::string& reason) const;
  void stamp_arrival(AVPacket& packet) const;
  static int read_callback(void* self, std::uint8_t* data, int size);

  FeedStats& stats_;
  const std::chrono::milliseconds timeout_;
  bool live_;
  bool v4l2_ = false;
  bool untimed_ = false;      // the container has no times
  bool arrives_ = false;      // from a pipe, at no rate that is known
  bool reads_clock_ = false;  // so packets get the steady clock's, in microseconds, as they come
  bool comes_live_ = false;   // as in Timeline::StreamClock
  Timeline::Gaps gaps_ = Timeline::Gaps::kNone;
  const std::string name_;
  const std::string host_;
  Dictionary options_;
  InputGuard guard_;
  // Destroyed from the last to the first: the container before its I/O, and the I/O before the
  // reader that it calls.
  Interrupt& interrupt_;
  std::exception_ptr reader_failure_;
  std::unique_ptr<FdReader> reader_;
  std::unique_ptr<AVIOContext, IoDeleter> io_;
  std::unique_ptr<AVFormatContext, FormatDeleter> format_{nullptr, {interrupt_}};
  int video_ = -1;
  int audio_ = -1;
  unsigned checked_streams_ = 0;  // how many there were when they were held against the limits
  std::chrono::nanoseconds without_video_{0};  // time waited since the last video packet
  bool silent_ = false;
};

}  // namespace framelane
