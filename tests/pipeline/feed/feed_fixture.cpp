#include "tests/pipeline/feed/feed_fixture.hpp"

extern "C" {
#include <libavutil/log.h>
}

#include <spdlog/spdlog.h>

#include <numeric>
#include <thread>
#include <utility>
#include <vector>

#include "pipeline/output/output_options.hpp"

namespace framelane::testing {

FeedTest::FeedTest() {
  spdlog::set_level(spdlog::level::off);
  av_log_set_level(AV_LOG_FATAL);
  options_.name = "gate";
  options_.once = true;
  options_.input.url = kClip;
}

FeedTest::~FeedTest() = default;

EncodeOptions& FeedTest::add_encode(const std::string& name, CodecCandidate codec) {
  EncodeOptions encode;
  encode.name = name;
  encode.codecs.push_back(std::move(codec));
  options_.encodes.push_back(std::move(encode));
  return options_.encodes.back();
}

EncodeOptions& FeedTest::add_encode(const std::string& name, const std::string& codec,
                                    AvOptions codec_options) {
  return add_encode(name, CodecCandidate{codec, std::move(codec_options)});
}

void FeedTest::add_copy(const std::string& name) {
  EncodeOptions encode;
  encode.name = name;
  encode.copy_video = true;
  options_.encodes.push_back(std::move(encode));
}

void FeedTest::add_output(const std::string& name, const std::string& from,
                          const std::string& url) {
  OutputOptions output;
  output.name = name;
  output.from = from;
  output.url = url;
  options_.outputs.push_back(std::move(output));
}

void FeedTest::use_camera_with_sound() {
  const std::string path = file("camera.mkv");
  ffmpeg("-i '" + kClip + "' -f lavfi -i sine=duration=1.68 -c:v copy -c:a aac '" + path + "'");
  options_.input.url = path;
  options_.input.loop = true;
  options_.input.pace = InputOptions::Pace::kRealtime;
  options_.once = false;
}

namespace {

FeedStats::Shape shape_of(const FeedOptions& options) {
  FeedStats::Shape shape;
  shape.lanes = options.lanes;
  for (const EncodeOptions& encode : options.encodes) {
    shape.encodes.push_back({encode.name, encode.copy_video, encode.transcodes_audio()});
  }
  for (const OutputOptions& output : options.outputs) shape.outputs.push_back(output.name);
  return shape;
}

}  // namespace

bool FeedTest::change(const FeedOptions& options) {
  EXPECT_TRUE(can_change_in_run(options_, options));
  stats_->reshape(shape_of(options));
  return feed_->change(std::make_shared<const FeedOptions>(options));
}

void FeedTest::start() {
  stats_ = std::make_shared<FeedStats>(options_.name, shape_of(options_));
  feed_ = Feed::start(
      options_, stats_, device_, [] {}, deadlines_, nullptr, tap_);
}

Feed::Outcome FeedTest::wait() {
  EXPECT_TRUE(feed_->join_until(std::chrono::steady_clock::now() + 60s));
  return feed_->outcome().value_or(
      Feed::Outcome{Feed::Outcome::Kind::kFailed, FeedFault::kInternal, "it did not end"});
}

Feed::Outcome FeedTest::run() {
  start();
  return wait();
}

bool FeedTest::wait_out(std::uint64_t frames) {
  const auto deadline = std::chrono::steady_clock::now() + 60s;
  while (stats_->ledger().encodes[0].out < frames) {
    if (std::chrono::steady_clock::now() > deadline || feed_->outcome()) return false;
    std::this_thread::yield();
  }
  return true;
}

bool FeedTest::wait_sound_out(std::uint64_t packets) {
  const auto deadline = std::chrono::steady_clock::now() + 60s;
  while (stats_->encode(0).audio.counts().out < packets) {
    if (std::chrono::steady_clock::now() > deadline || feed_->outcome()) return false;
    std::this_thread::sleep_for(1ms);
  }
  return true;
}

void FeedTest::expect_every_frame_accounted_for() {
  const FeedStats::Ledger ledger = stats_->ledger();
  for (std::size_t i = 0; i < ledger.encodes.size(); ++i) {
    const AudioCounts sound = stats_->encode(i).audio.counts();
    EXPECT_EQ(sound.in, std::accumulate(sound.dropped.begin(), sound.dropped.end(), sound.out));
    EXPECT_EQ(sound.in_flight, 0);
    if (ledger.encodes[i].stats->copy) continue;
    const EncodeCounts& counts = ledger.encodes[i];
    std::uint64_t ended = counts.out;
    for (std::uint64_t dropped : counts.dropped) ended += dropped;
    EXPECT_EQ(counts.in, ledger.frames_in);
    EXPECT_EQ(counts.in, ended);
    EXPECT_EQ(counts.in_flight, 0);
  }
  for (const auto& jobs : *stats_->ring_jobs()) EXPECT_EQ(jobs, 0u);
}

std::uint64_t FeedTest::dropped(DropReason reason, std::size_t encode) const {
  return stats_->ledger().encodes[encode].dropped[index_of(reason)];
}

std::uint64_t FeedTest::conversions() const {
  return stats_->steps[index_of(StageStep::kKernel)].snapshot().count;
}

}  // namespace framelane::testing
