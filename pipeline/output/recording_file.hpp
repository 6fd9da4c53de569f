#pragma once

extern "C" {
#include <libavformat/avformat.h>
}

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>

#include "pipeline/base/file_descriptor.hpp"
#include "pipeline/output/container.hpp"
#include "pipeline/output/file_pattern.hpp"

namespace framelane {

/// True once nobody waits for what is read. Any thread.
using ReadingEnds = std::function<bool()>;

/// When the pictures of a recording were taken.
struct RecordingTimes {
  std::chrono::system_clock::time_point begin;  ///< of the first picture
  std::chrono::system_clock::time_point end;    ///< of the last picture's time to be shown
  bool exact = false;        ///< the recording tells; if not, its name may be wrong by a second
  std::uint64_t format = 0;  ///< the same for two recordings if their streams can be joined
};

/// A recording that is read with FFmpeg's demuxer. Nothing but this file is opened, whatever is in
/// it. Not thread-safe. Every call blocks as long as the file system does, and throws IoError if
/// the file cannot be read, or if the reading ends.
class RecordingFile {
 public:
  /// What is read for: with an MP4's index of fragments (mfra) its end is found without a look at
  /// all of them, but FFmpeg then loses packets of sound. kBegin looks at the begin of the file
  /// alone: its end is then when it was written last.
  enum class For { kTimes, kBegin, kPackets };
  RecordingFile(FileDescriptor file, const Container& container, For purpose, ReadingEnds ends);
  ~RecordingFile();
  RecordingFile(const RecordingFile&) = delete;
  RecordingFile& operator=(const RecordingFile&) = delete;

  const AVFormatContext& context() const { return *context_; }
  /// The stream that is cut at keyframes: video, if there is any. Null if there is no stream.
  AVStream* main_stream() const;
  /// Finds what the container does not tell of its streams by looking at packets, and gives all
  /// packets times to decode.
  void find_streams();
  /// False at the end. What is cut off there is left out.
  bool read(AVPacket& packet);
  /// The next packets are those from the last keyframe at or before this time of the main stream's;
  /// from about there, if the container has no index. False if the container cannot do it.
  bool seek(std::int64_t time);
  /// The next packets are the first ones. `first` is the time of the first picture.
  bool rewind(std::int64_t first);

  /// `path` and `changed` are the file's name, and when it was written last: they tell the time
  /// where the container does not. Takes packets: to be called before all else.
  RecordingTimes read_times(const std::string& path, const FilePattern& pattern,
                            std::chrono::system_clock::time_point changed);
  /// How long after the first picture the next one is shown that is shown later than `after`,
  /// within the length of a group of pictures. To be called before all else.
  std::optional<std::chrono::microseconds> next_after(std::chrono::microseconds after);

 private:
  static int read_bytes(void* self, std::uint8_t* buffer, int size);
  static std::int64_t seek_bytes(void* self, std::int64_t offset, int whence);
  static int refuse_to_open(AVFormatContext*, AVIOContext**, const char*, int, AVDictionary**);

  void close();
  /// Throws if the reading ends, or if the disk has failed with this error.
  void check(int on_disk) const;
  /// When the first picture was taken, if the container tells.
  std::optional<std::chrono::system_clock::time_point> told_begin() const;
  /// The same of a ProducerReferenceTimeBox before the first fragment of an MP4.
  std::optional<std::chrono::system_clock::time_point> reference_time() const;
  /// Of the main stream's packets up to the end: when the last picture's time is over, in the
  /// stream's time base. Nothing if there are none with a time.
  std::optional<std::int64_t> read_end(AVPacket& packet);
  std::uint64_t format_of(const AVPacket& keyframe) const;

  const FileDescriptor file_;
  const For purpose_;
  const ReadingEnds ends_;
  std::int64_t position_ = 0;
  AVIOContext* io_ = nullptr;
  AVFormatContext* context_ = nullptr;
};

}  // namespace framelane
