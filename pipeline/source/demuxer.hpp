#pragma once

extern "C" {
#include <libavformat/avformat.h>
}

#include <chrono>
#include <exception>
#include <memory>
#include <optional>
#include <string>

#include "pipeline/av/dictionary.hpp"
#include "pipeline/av/interrupt.hpp"
#include "pipeline/measure/feed_stats.hpp"
#include "pipeline/packets/media.hpp"
#include "pipeline/source/fd_reader.hpp"
#include "pipeline/source/input_options.hpp"

namespace framelane {

struct KeptPipe;

/// Anything libavformat reads: files, cameras, playlists, test sources; standard input and FIFOs
/// reach it through FdReader. Takes the best video stream and, when asked, the best audio stream,
/// and has the others discarded. One thread; every call ends within the input's timeout or, on a
/// stop, at once. A live source is lost as well when sound comes on without video for that long.
class Demuxer {
 public:
  /// Opens and looks at the streams. Throws IoError (also when stopped: the caller knows from its
  /// token), and FeedError(kConfiguration) for what no retry mends.
  /// `kept` as in SourceContext.
  Demuxer(const InputOptions& input, bool want_audio, FeedStats& stats, Interrupt& interrupt,
          KeptPipe* kept = nullptr);
  Demuxer(const Demuxer&) = delete;
  Demuxer& operator=(const Demuxer&) = delete;

  const AVStream& video() const { return *format_->streams[video_]; }
  /// Null when there is none or it was not asked for.
  const AVStream* audio() const { return audio_ >= 0 ? format_->streams[audio_] : nullptr; }
  AVRational frame_rate() const;
  /// Whether the input is live, as is_live says it or, over HTTP, what came.
  bool live() const { return live_; }
  /// The earliest timestamp of the chosen streams, where the container tells.
  std::optional<std::chrono::microseconds> start() const;
  /// Options that neither demuxer nor protocol consumed.
  Dictionary& options() { return options_; }
  /// The URL without secrets.
  const std::string& name() const { return name_; }

  enum class Flow { kPacket, kEnd, kStopped };
  /// The next packet of a chosen stream. Throws IoError.
  Flow read(AVPacket& packet);
  StreamKind kind_of(const AVPacket& packet) const {
    return packet.stream_index == video_ ? StreamKind::kVideo : StreamKind::kAudio;
  }

  /// Back to the start; false when that takes opening anew.
  bool rewind();
  /// After kEnd: the FIFO it was read from, for the next source; null when it was none. Nothing but
  /// the destructor may be called after it.
  std::unique_ptr<FdReader> take_fifo();

 private:
  struct FormatDeleter {
    void operator()(AVFormatContext* context) const;
    Interrupt& interrupt;
  };
  struct IoDeleter {
    void operator()(AVIOContext* io) const;
  };

  void open(const InputOptions& input, KeptPipe* kept);
  void open_reader(const std::string& path, KeptPipe* kept);
  void choose_streams(const std::string& format, bool live, bool want_audio);
  [[noreturn]] void fail_open(int error, const std::string& reason) const;
  void rethrow_own_causes() const;
  static int read_callback(void* self, std::uint8_t* data, int size);

  FeedStats& stats_;
  const std::chrono::milliseconds timeout_;
  bool live_;
  bool capture_ = false;
  const std::string name_;
  const std::string host_;
  Dictionary options_;
  // Members go from the last to the first: the container before its I/O, and that before what it
  // calls.
  Interrupt& interrupt_;
  std::exception_ptr reader_failure_;
  std::unique_ptr<FdReader> reader_;
  std::unique_ptr<AVIOContext, IoDeleter> io_;
  std::unique_ptr<AVFormatContext, FormatDeleter> format_{nullptr, {interrupt_}};
  int video_ = -1;
  int audio_ = -1;
  std::chrono::nanoseconds without_video_{0};  // waited since the last video packet
};

}  // namespace framelane
