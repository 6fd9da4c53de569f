#pragma once

#include <gtest/gtest.h>
#include <spdlog/spdlog.h>

#include <chrono>
#include <exception>
#include <filesystem>
#include <functional>
#include <future>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "pipeline/base/failure.hpp"
#include "pipeline/measure/feed_stats.hpp"
#include "pipeline/output/output.hpp"
#include "tests/pipeline/source/encoded_clip.hpp"
#include "tests/pipeline/source/media_files.hpp"

namespace framelane::testing {

using namespace std::chrono_literals;

inline OutputOptions output_to(const std::string& url) {
  OutputOptions options;
  options.name = "out";
  options.url = url;
  options.reconnect = {.first = 20ms, .max = 50ms};
  return options;
}

/// 50 frames of about 100 kB, all of them keyframes. Only the first five are encoded, which takes
/// time; the others are the same again.
inline Clip large_frames() {
  constexpr int kEncoded = 5;
  Clip clip = encode_clip(
      {.video = "mpeg2video", .width = 1280, .height = 720, .frames = kEncoded, .gop = 1});
  clip.packets.reserve(50);
  for (int first = kEncoded; first < 50; first += kEncoded) {
    for (int i = 0; i < kEncoded; ++i) {
      const ClipPacket& from = clip.packets[static_cast<std::size_t>(i)];
      PacketPtr packet(av_packet_clone(from.packet.get()));
      packet->pts += first;
      packet->dts += first;
      clip.packets.push_back({std::move(packet), from.stream});
    }
  }
  return clip;
}

/// Waits until another thread has made the condition true. Returns false after ten seconds.
inline bool comes_true(const std::function<bool()>& condition) {
  const auto deadline = std::chrono::steady_clock::now() + 10s;
  while (!condition()) {
    if (std::chrono::steady_clock::now() > deadline) return false;
    std::this_thread::sleep_for(1ms);
  }
  return true;
}

/// An output with its statistics and, once started, its thread.
class TestOutput {
 public:
  enum class WhenFull { kBlock, kDrop };
  explicit TestOutput(OutputOptions options, WhenFull when_full = WhenFull::kBlock)
      : feed("gate", {{"main", true}}, {"out"}, 1),
        stats(feed.outputs().front()),
        output(std::move(options), stats, feed, when_full == WhenFull::kBlock) {}
  ~TestOutput() {
    stop.request_stop();
    if (done_.valid()) done_.wait();
  }

  void start(bool once = false) {
    done_ = std::async(std::launch::async, [this, once] { output.run(stop.get_token(), once); });
  }
  void push(const Clip& clip, std::size_t first = 0, std::size_t count = SIZE_MAX) {
    for (std::size_t i = first; i < clip.packets.size() && i - first < count; ++i) {
      output.inlet().push(*clip.packets[i].packet, clip.packets[i].stream, clip.format,
                          stop.get_token());
    }
  }
  /// No more packets will come: waits for run(), and throws what it throws.
  void finish() {
    output.inlet().finish();
    done_.get();
  }
  void join() { done_.get(); }
  bool joined_within(std::chrono::milliseconds time) {
    return done_.wait_for(time) == std::future_status::ready;
  }
  /// Starts the thread, pushes all of the clip, and finishes.
  void write(const Clip& clip, bool once = false) {
    start(once);
    push(clip);
    finish();
  }
  std::uint64_t dropped(PacketDrop reason) const {
    return stats.packets_dropped[index_of(reason)].load();
  }
  std::uint64_t dropped() const {
    std::uint64_t all = 0;
    for (const auto& count : stats.packets_dropped) all += count.load();
    return all;
  }
  std::uint64_t reconnects(IoFault reason) const { return stats.reconnects[index_of(reason)]; }

  FeedStats feed;
  OutputStats& stats;
  Output output;
  std::stop_source stop;

 private:
  std::future<void> done_;
};

/// The files in a folder and its subfolders, as paths relative to the folder.
inline std::set<std::string> names_in(const std::string& folder) {
  std::set<std::string> names;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder)) {
    if (entry.is_regular_file()) {
      names.insert(std::filesystem::relative(entry.path(), folder).string());
    }
  }
  return names;
}

inline std::string text_of(const std::string& path) {
  const Bytes bytes = read_file(path);
  return {bytes.begin(), bytes.end()};
}

inline std::size_t occurrences(const std::string& text, const std::string& what) {
  std::size_t count = 0;
  for (std::size_t at = text.find(what); at != text.npos; at = text.find(what, at + 1)) ++count;
  return count;
}

/// One value of ffprobe, without the newline: probe_text(path, "v:0", "stream=codec_name").
inline std::string probe_text(const std::string& path, const std::string& stream,
                              const std::string& entry) {
  const Bytes bytes = output_of("ffprobe -v error -select_streams " + stream + " -show_entries " +
                                entry + " -of csv=p=0 '" + path + "'");
  std::string text(bytes.begin(), bytes.end());
  return text.substr(0, text.find_first_of(",\n"));
}

/// How many frames the ffmpeg command decodes from a file. The test fails if ffmpeg reports an
/// error. With `torn_at_end` errors are allowed: the file's writer was killed, perhaps in the
/// middle of a write.
inline std::size_t decoded_frames(const std::string& path, bool torn_at_end = false) {
  TempFolder folder;
  const std::string complaints = folder / "complaints";
  const Bytes text = output_of(
      std::string("ffmpeg -nostdin ") + (torn_at_end ? "-v fatal" : "-v error -xerror") + " -i '" +
      path + "' -map 0:v -fps_mode passthrough -f framehash - 2>'" + complaints + "'");
  std::ifstream said(complaints);
  for (std::string line; std::getline(said, line);) {
    // Says nothing about the file: libgcrypt, which FFmpeg loads with libssh, writes it where a
    // process may not lock memory.
    if (line != "Warning: using insecure memory!") ADD_FAILURE() << path << ": " << line;
  }
  const std::string lines(text.begin(), text.end());
  std::size_t frames = 0;
  for (std::size_t at = 0; at < lines.size(); at = lines.find('\n', at) + 1) {
    if (lines[at] != '#') ++frames;
  }
  return frames;
}

}  // namespace framelane::testing
