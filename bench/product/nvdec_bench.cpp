// Feeds whose frames NVDEC leaves on the GPU. The stage converts them there, and only the results
// are downloaded. In the same run, NVDEC alone is measured: its frames are dropped on the GPU.
// Sources, ring, stage and ledger are the daemon's; there is no encoder. Every figure is the median
// of the rounds.
//
//   framelane_nvdec_bench FILE [--feeds N] [--seconds S] [--rounds N] [--gpu N]
//
// Every feed reads FILE again and again: H.264 1080p, say.
#include <CLI/CLI.hpp>
#include <cstdio>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "bench/harness/result.hpp"
#include "bench/product/stage_feed.hpp"
#include "pipeline/source/source.hpp"
#include "pipeline/stage/gpu.hpp"

namespace framelane {
namespace {

using namespace bench;

struct Options {
  std::string file;
  int feeds = 16;
  double seconds = 2;
  int rounds = 3;
  int gpu = 0;
};

/// A feed whose frames NVDEC leaves on the GPU.
class DecodedFeed {
 public:
  DecodedFeed(Device& device, const std::string& file) : feed_(device, {}) {
    InputOptions input;
    input.url = file;
    input.decoder = InputOptions::DecoderKind::kNvdec;
    input.loop = true;
    source_ = open_source(input, {.pool = pool_,
                                  .stats = feed_.stats(),
                                  .timeline = timeline_,
                                  .interrupt = interrupt_,
                                  .stage = &feed_.stage(),
                                  .ring = kRing});
    const InputFrame first = next_frame();
    if (first.memory != FrameMemory::kDevice) throw std::runtime_error("a frame is not on the GPU");
    const ConstImageView& image = first.image;
    convert_ = {image.width, image.height,       image.format,
                first.color, PixelFormat::kNv12, first.color};
    convert_.target_color.range =
        first.color.range == Range::kFull ? Range::kLimited : Range::kFull;
    feed_.prepare({&convert_, 1}, FrameMemory::kDevice, {&pool_, 1});
  }

  /// Decodes frames until `until` and drops them.
  FeedRun decode(Clock::time_point until) {
    const double cpu_before = thread_cpu_seconds();
    FeedRun result;
    for (; Clock::now() < until; ++result.frames) next_frame();
    result.cpu = thread_cpu_seconds() - cpu_before;
    return result;
  }
  /// Decodes and converts frames until `until`; returns once all are back.
  FeedRun convert(Clock::time_point until) {
    return feed_.run(until, [this](int) { return next_frame(); });
  }
  const Conversion& conversion() const { return convert_; }

 private:
  InputFrame next_frame() {
    SourceItem item;
    do {
      if (source_->read(item) != ReadResult::kItem) throw std::runtime_error("the file has ended");
    } while (item.kind != SourceItem::Kind::kFrame);
    return std::move(item.frame);
  }

  FramePool pool_;
  StageFeed feed_;
  LineClock line_clock_;
  Timeline timeline_{feed_.stats(), line_clock_};
  std::stop_source stop_;
  Interrupt interrupt_{stop_.get_token()};
  std::unique_ptr<Source> source_;
  Conversion convert_;
};

/// What all feeds do at once.
std::vector<FeedWork> all(const std::vector<std::unique_ptr<DecodedFeed>>& feeds,
                          FeedRun (DecodedFeed::*work)(Clock::time_point)) {
  std::vector<FeedWork> result;
  for (const auto& feed : feeds) {
    result.push_back([&feed, work](Clock::time_point until) { return ((*feed).*work)(until); });
  }
  return result;
}

int run(const Options& options) {
  const GpuResult gpu = open_gpu(options.gpu, make_cpu_device());
  if (gpu.device == nullptr) {
    std::fprintf(stderr, "framelane_nvdec_bench: %s\n", gpu.why.c_str());
    return 1;
  }
  std::vector<std::unique_ptr<DecodedFeed>> feeds;
  for (int i = 0; i < options.feeds; ++i) {
    feeds.push_back(std::make_unique<DecodedFeed>(*gpu.device, options.file));
  }
  const Conversion& convert = feeds.front()->conversion();
  std::printf("%s, CUDA %s, driver for %s, %d rounds of %.1f s, %d lanes, ring %d\n",
              gpu.device->model().c_str(), cuda_build_version().c_str(),
              cuda_driver_version().c_str(), options.rounds, options.seconds, kLanes, kRing);
  const std::vector<FeedWork> decode = all(feeds, &DecodedFeed::decode);
  const std::vector<FeedWork> decode_and_convert = all(feeds, &DecodedFeed::convert);
  run_feeds(decode_and_convert, 0.5);  // pools grow
  std::vector<double> decoded, converted, ratios, decode_cpu, convert_cpu;
  for (int round = 0; round < options.rounds; ++round) {
    const StageFigures alone = run_feeds(decode, options.seconds);
    const StageFigures whole = run_feeds(decode_and_convert, options.seconds);
    decoded.push_back(alone.frames_per_second);
    converted.push_back(whole.frames_per_second);
    ratios.push_back(whole.frames_per_second / alone.frames_per_second);
    decode_cpu.push_back(alone.cpu_per_1000_frames);
    convert_cpu.push_back(whole.cpu_per_1000_frames);
  }
  std::printf("%dx%d %s to NV12 of the other range, %d feed%s\n", convert.width, convert.height,
              info(convert.source).name.data(), options.feeds, options.feeds == 1 ? "" : "s");
  std::printf("  NVDEC alone             %9.0f frames/s  %.4f CPU s per 1000\n",
              percentile(decoded, 0.5), percentile(decode_cpu, 0.5));
  std::printf(
      "  converted, brought down %9.0f frames/s  %.4f CPU s per 1000  %.3f of NVDEC alone\n",
      percentile(converted, 0.5), percentile(convert_cpu, 0.5), percentile(ratios, 0.5));
  return gpu.device->lost() ? 1 : 0;
}

}  // namespace
}  // namespace framelane

int main(int argc, char** argv) {
  framelane::Options options;
  CLI::App app("Feeds whose frames NVDEC leaves on the GPU", "framelane_nvdec_bench");
  app.add_option("FILE", options.file, "Video to decode over and over")->required();
  app.add_option("--feeds", options.feeds)->capture_default_str()->check(CLI::Range(1, 512));
  app.add_option("--seconds", options.seconds, "Of a turn")->capture_default_str();
  app.add_option("--rounds", options.rounds)->capture_default_str()->check(CLI::Range(1, 1000));
  app.add_option("--gpu", options.gpu)->capture_default_str();
  try {
    app.parse(argc, argv);
    return framelane::run(options);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : 2;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "framelane_nvdec_bench: %s\n", error.what());
    return 1;
  }
}
