#pragma once

#include <chrono>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "pipeline/output/recording_list.hpp"

namespace framelane {

/// A span of an output's recordings as one MP4 in fragments. Nothing is transcoded: it begins with
/// the last keyframe at or before `from`, or with the first picture behind it, and ends before the
/// first packet that is to be decoded at `to` or later. Its timestamps count from that first
/// picture; what is missing in between is missing there too. Where two recordings overlap, the
/// later one is taken. Not thread-safe. Every call blocks as long as the file system does, and
/// throws IoError if a file cannot be read, or if the reading ends.
class RecordingSpan {
 public:
  /// What takes the MP4, piece by piece. Throws if it cannot.
  using Sink = std::function<void(std::string_view)>;

  /// `recordings`: the span's, by their end. Throws RecordingsRefused.
  RecordingSpan(const OutputOptions& output, std::vector<Recording> recordings,
                const TimeSpan& span, ReadingEnds ends);
  ~RecordingSpan();
  RecordingSpan(const RecordingSpan&) = delete;
  RecordingSpan& operator=(const RecordingSpan&) = delete;

  /// When the first picture was taken.
  std::chrono::system_clock::time_point begin() const { return begin_; }
  /// The name of the sound's codec that MP4 cannot hold, and that is left out; empty if none is.
  const std::string& left_out() const { return left_out_; }
  /// Writes all of it. Memory holds a fragment, of about a second.
  void write(const Sink& sink);

 private:
  struct Open;

  std::unique_ptr<Open> open(const Recording& recording) const;
  /// Reads up to the last keyframe at or before the begin of the span, or to the first one.
  void read_to_keyframe(Open& recording) const;
  void add_streams(const Open& first);
  void write_header();
  void write_from(Open& recording, std::int64_t first_us, std::int64_t end_us);
  void write_sound(const Open& recording, AVPacket& packet, std::int64_t first_us,
                   std::int64_t end_us);
  /// `stream` is the muxer's.
  void write_packet(const Open& recording, AVPacket& packet, std::size_t stream,
                    std::int64_t first_us);
#if LIBAVFORMAT_VERSION_MAJOR < 61
  using WrittenByte = std::uint8_t;
#else
  using WrittenByte = const std::uint8_t;
#endif
  static int write_bytes(void* self, WrittenByte* data, int size);
  /// After an error of the muxer with something of this recording.
  [[noreturn]] void fail(int error, const Recording& recording) const;

  const OutputOptions output_;
  std::vector<Recording> recordings_;
  const TimeSpan span_;
  const ReadingEnds ends_;
  std::unique_ptr<Open> first_;  // until write()
  std::chrono::system_clock::time_point begin_;
  std::string left_out_;
  const Sink* sink_ = nullptr;
  std::exception_ptr sink_failure_;
  AVIOContext* io_ = nullptr;
  AVFormatContext* muxer_ = nullptr;
  std::int64_t end_us_ = 0;             // of what is written, from begin_
  std::vector<std::int64_t> last_dts_;  // by the muxer's streams
};

}  // namespace framelane
