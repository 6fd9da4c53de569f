#include "tests/pipeline/output/output_fixture.hpp"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <future>
#include <utility>

namespace framelane::testing {

OutputOptions output_to(const std::string& url) {
  OutputOptions options;
  options.name = "out";
  options.url = url;
  options.reconnect = {.first = 20ms, .max = 50ms};
  return options;
}

Clip large_frames() {
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

struct TestOutput::Run {
  std::future<void> done;
};

TestOutput::TestOutput(OutputOptions options, WhenFull when_full)
    : feed("gate", FeedStats::Shape{{{"main", true}}, {"out"}, 1}, nullptr,
           [this](const CompletedFile& file) { files.push_back(file); }),
      stats(*feed.outputs().front()),
      output(std::move(options), stats, feed, line_clock, when_full == WhenFull::kBlock,
             &retention),
      run_(std::make_unique<Run>()) {}

TestOutput::~TestOutput() {
  stop.request_stop();
  if (run_->done.valid()) run_->done.wait();
}

void TestOutput::start(bool once) {
  run_->done = std::async(std::launch::async,
                          [this, once] { output.run(stop.get_token(), once, drain.get_token()); });
}

void TestOutput::push(const Clip& clip, std::size_t first, std::size_t count) {
  for (std::size_t i = first; i < clip.packets.size() && i - first < count; ++i) {
    output.inlet().push(*clip.packets[i].packet, clip.packets[i].stream, clip.format,
                        stop.get_token());
  }
}

void TestOutput::finish() {
  output.inlet().finish();
  join();
}

void TestOutput::join() {
  run_->done.get();
  const std::string& path = output.options().url;
  if (path.ends_with(".m3u8") && std::filesystem::exists(path)) {
    output_of("python3 '" FRAMELANE_TEST_DATA "/../integration/harness/media_playlist.py' '" +
              path + "'");
  }
}

bool TestOutput::joined_within(std::chrono::milliseconds time) {
  return run_->done.wait_for(time) == std::future_status::ready;
}

void TestOutput::write(const Clip& clip, bool once) {
  start(once);
  push(clip);
  finish();
}

std::uint64_t TestOutput::dropped(PacketDrop reason) const {
  return stats.packets_dropped[index_of(reason)].load();
}

std::uint64_t TestOutput::dropped() const {
  std::uint64_t all = 0;
  for (const auto& count : stats.packets_dropped) all += count.load();
  return all;
}

std::uint64_t TestOutput::reconnects(IoFault reason) const {
  return stats.reconnects[index_of(reason)];
}

std::set<std::string> names_in(const std::string& folder) {
  std::set<std::string> names;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder)) {
    if (entry.is_regular_file()) {
      // Asks nothing of the file, which may be gone by now.
      names.insert(entry.path().lexically_relative(folder).string());
    }
  }
  return names;
}

std::string text_of(const std::string& path) {
  const Bytes bytes = read_file(path);
  return {bytes.begin(), bytes.end()};
}

std::size_t occurrences(const std::string& text, const std::string& what) {
  std::size_t count = 0;
  for (std::size_t at = text.find(what); at != text.npos; at = text.find(what, at + 1)) ++count;
  return count;
}

std::string probe_text(const std::string& path, const std::string& stream,
                       const std::string& entry) {
  const Bytes bytes = output_of("ffprobe -v error -select_streams " + stream + " -show_entries " +
                                entry + " -of csv=p=0 '" + path + "'");
  std::string text(bytes.begin(), bytes.end());
  return text.substr(0, text.find_first_of(",\n"));
}

std::size_t decoded_frames(const std::string& path, bool torn_at_end) {
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
