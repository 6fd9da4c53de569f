#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <set>
#include <stop_token>
#include <string>
#include <vector>

#include "pipeline/base/failure.hpp"
#include "pipeline/measure/feed_stats.hpp"
#include "pipeline/output/output.hpp"
#include "pipeline/output/retention.hpp"
#include "tests/pipeline/base/wait.hpp"
#include "tests/pipeline/source/encoded_clip.hpp"
#include "tests/pipeline/source/media_files.hpp"

namespace framelane::testing {

using namespace std::chrono_literals;

OutputOptions output_to(const std::string& url);

/// 50 frames of about 100 kB, all of them keyframes. Only the first five are encoded, which takes
/// time; the others are the same again.
Clip large_frames();

/// An output with its statistics and, once started, its thread.
class TestOutput {
 public:
  enum class WhenFull { kBlock, kDrop };
  explicit TestOutput(OutputOptions options, WhenFull when_full = WhenFull::kBlock);
  ~TestOutput();

  void start(bool once = false);
  void push(const Clip& clip, std::size_t first = 0, std::size_t count = SIZE_MAX);
  /// No more packets will come. Ends with join().
  void finish();
  /// Waits for run(), and throws what it throws. The playlist that it leaves must be one by RFC
  /// 8216.
  void join();
  bool joined_within(std::chrono::milliseconds time);
  /// Starts the thread, pushes all of the clip, and finishes.
  void write(const Clip& clip, bool once = false);
  std::uint64_t dropped(PacketDrop reason) const;
  std::uint64_t dropped() const;
  std::uint64_t reconnects(IoFault reason) const;

  std::vector<CompletedFile> files;  ///< that it has told of; after join()
  FeedStats feed;
  LineClock line_clock{200ms};
  OutputStats& stats;
  Retention retention;
  Output output;
  std::stop_source stop;
  std::stop_source drain;

 private:
  struct Run;  // keeps <future> out of this header
  const std::unique_ptr<Run> run_;
};

/// The files in a folder and its subfolders, as paths relative to the folder.
std::set<std::string> names_in(const std::string& folder);

std::string text_of(const std::string& path);

std::size_t occurrences(const std::string& text, const std::string& what);

/// One value of ffprobe, without the newline: probe_text(path, "v:0", "stream=codec_name").
std::string probe_text(const std::string& path, const std::string& stream,
                       const std::string& entry);

/// How many frames the ffmpeg command decodes from a file. The test fails if ffmpeg reports an
/// error. With `torn_at_end` errors are allowed: the file's writer was killed, perhaps in the
/// middle of a write.
std::size_t decoded_frames(const std::string& path, bool torn_at_end = false);

}  // namespace framelane::testing
