#include "tests/pipeline/source/source_fixture.hpp"

extern "C" {
#include <libavutil/log.h>
}

#include <chrono>
#include <utility>

namespace framelane::testing {

SourceFixture::SourceFixture() {
  input.timeout = std::chrono::seconds(10);
  av_log_set_level(AV_LOG_FATAL);  // tests read damaged streams, and FFmpeg would log it
}

SourceFixture::~SourceFixture() = default;

SourceContext SourceFixture::context() {
  return {.pool = pool,
          .stats = stats,
          .timeline = timeline,
          .interrupt = interrupt,
          .decode = decode,
          .want_audio = want_audio,
          .stage = stage,
          .ring = ring};
}

std::unique_ptr<Source> SourceFixture::open(const std::string& url) {
  input.url = url;
  return open_source(input, context());
}

std::string SourceFixture::generate(const std::string& name, const std::string& arguments) {
  ffmpeg("-f lavfi -i testsrc2=rate=10:duration=1:size=642x480 " + arguments + " '" +
         (folder / name) + "'");
  return folder / name;
}

Reading SourceFixture::read(Source& source, std::size_t max_frames, bool with_pixels) {
  Reading reading;
  SourceItem item;
  while (reading.frames < max_frames) {
    reading.end = source.read(item);
    if (reading.end != ReadResult::kItem) break;
    if (item.kind == SourceItem::Kind::kPacket) {
      if (item.stream == StreamKind::kAudio) {
        ++reading.audio_packets;
      } else {
        reading.packet_dts.push_back(item.packet->dts);
        reading.packet_pts.push_back(item.packet->pts);
      }
      continue;
    }
    ++reading.frames;
    reading.frame_pts.push_back(item.frame.pts);
    if (pool.owns(item.frame.image.planes[0].data)) ++reading.pooled_frames;
    if (with_pixels) append_pixels(item.frame.image, reading.pixels);
    reading.last_frame = std::move(item.frame);
  }
  return reading;
}

Reading SourceFixture::read(const std::string& url) { return read(*open(url)); }

std::uint64_t SourceFixture::repairs() const {
  std::uint64_t sum = 0;
  for (const auto& count : stats.timestamp_repairs) sum += count;
  return sum;
}

bool strictly_increasing(const std::vector<std::int64_t>& values) {
  for (std::size_t i = 1; i < values.size(); ++i) {
    if (values[i] <= values[i - 1]) return false;
  }
  return true;
}

}  // namespace framelane::testing
