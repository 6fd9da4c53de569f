// Feeds whose frames NVDEC leaves on the GPU, where the stage converts them: only the results come
// down. Beside it, in the same run, what NVDEC delivers by itself, frames dropped where they are.
// Sources, ring, stage and ledger are the daemon's; there is no encoder. Every figure is the median
// of the rounds.
//
//   framelane_nvdec_bench FILE [--feeds N] [--seconds S] [--rounds N] [--gpu N]
//
// FILE is read over and over by every feed: H.264 1080p, say.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "bench/stage_feed.hpp"
#include "pipeline/gpu.hpp"
#include "pipeline/source.hpp"

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

/// One feed: a thread that decodes and submits, and one that waits, as an encode does.
class DecodedFeed {
 public:
  DecodedFeed(Device& device, const std::string& file) : stage_(device.make_stage(*stats_, {})) {
    InputOptions input;
    input.url = file;
    input.decoder = InputOptions::DecoderKind::kNvdec;
    input.loop = true;
    source_ = open_source(input, {.pool = pool_,
                                  .stats = *stats_,
                                  .timeline = timeline_,
                                  .interrupt = interrupt_,
                                  .stage = stage_.get(),
                                  .ring = kRing});
    const InputFrame first = next_frame();
    if (first.memory != FrameMemory::kDevice) throw std::runtime_error("a frame is not on the GPU");
    const ConstImageView& image = first.image;
    convert_ = {image.width, image.height,       image.format,
                first.color, PixelFormat::kNv12, first.color};
    convert_.target_color.range =
        first.color.range == Range::kFull ? Range::kLimited : Range::kFull;
    plan_ = stage_->prepare({&convert_, 1}, FrameMemory::kDevice);
  }

  /// Decodes frames until `until` and drops them.
  FeedRun decode(Clock::time_point until) {
    const double cpu_before = thread_cpu_seconds();
    int count = 0;
    for (; Clock::now() < until; ++count) next_frame();
    return {count, thread_cpu_seconds() - cpu_before};
  }
  /// Decodes and converts frames until `until`; returns once all are back.
  FeedRun convert(Clock::time_point until) {
    const double cpu_before = thread_cpu_seconds();
    int count = 0;
    double encode_cpu = 0;
    std::thread encode([this, &encode_cpu] {
      for (bool last = false; !last;) {
        auto job = ring_.next(0);
        last = (*job)->input.duration == kLast;
        const Deadline deadline = Clock::now() + std::chrono::seconds(10);
        if (stage_->wait(**job, {}, deadline) != Stage::Wait::kReady) {
          std::fprintf(stderr, "framelane_nvdec_bench: a job is late\n");
          std::abort();
        }
        (*job)->outputs[0].ticket.out();
      }
      encode_cpu = thread_cpu_seconds();
    });
    for (bool last = false; !last; ++count) {
      InputFrame frame = next_frame();
      last = Clock::now() >= until;
      frame.duration = last ? kLast : 0;
      submit(std::move(frame));
    }
    encode.join();
    return {count, thread_cpu_seconds() - cpu_before + encode_cpu};
  }
  const Conversion& conversion() const { return convert_; }

 private:
  static constexpr std::int64_t kLast = 1;

  InputFrame next_frame() {
    SourceItem item;
    do {
      if (source_->read(item) != ReadResult::kItem) throw std::runtime_error("the file has ended");
    } while (item.kind != SourceItem::Kind::kFrame);
    return std::move(item.frame);
  }
  void submit(InputFrame&& frame) {
    auto place = ring_.acquire({});
    std::array<FrameTicket, 1> tickets;
    open_tickets(stats_, tickets);
    FrameJob& job = **place;
    job.plan = plan_;
    job.input = std::move(frame);
    job.outputs[0].target = allocate_image(pool_, convert_.target, convert_.width, convert_.height);
    job.outputs[0].ticket = std::move(tickets[0]);
    place->publish();
    stage_->submit(job);
  }

  const std::shared_ptr<FeedStats> stats_ =
      std::make_shared<FeedStats>("bench", std::vector<FeedStats::EncodeSpec>{{"live", false}},
                                  std::vector<std::string>{}, kLanes);
  FramePool pool_;
  Timeline timeline_{*stats_};
  std::stop_source stop_;
  Interrupt interrupt_{stop_.get_token()};
  FrameRing ring_{kRing, 1, *stats_};
  const std::unique_ptr<Stage> stage_;
  std::unique_ptr<Source> source_;
  Conversion convert_;
  PlanRef plan_;
};

using Feeds = std::vector<std::unique_ptr<DecodedFeed>>;

int run(const Options& options) {
  const GpuResult gpu = open_gpu(options.gpu, make_cpu_device());
  if (gpu.device == nullptr) {
    std::fprintf(stderr, "framelane_nvdec_bench: %s\n", gpu.why.c_str());
    return 1;
  }
  Feeds feeds;
  for (int i = 0; i < options.feeds; ++i) {
    feeds.push_back(std::make_unique<DecodedFeed>(*gpu.device, options.file));
  }
  const Conversion& convert = feeds.front()->conversion();
  std::printf("%s, CUDA %s, driver for %s, %d rounds of %.1f s, %d lanes, ring %d\n",
              gpu.device->model().c_str(), cuda_build_version().c_str(),
              cuda_driver_version().c_str(), options.rounds, options.seconds, kLanes, kRing);
  run_feeds(feeds, 0.5, &DecodedFeed::convert);  // pools grow
  std::vector<double> decoded, converted, ratios, decode_cpu, convert_cpu;
  for (int round = 0; round < options.rounds; ++round) {
    const StageFigures alone = run_feeds(feeds, options.seconds, &DecodedFeed::decode);
    const StageFigures whole = run_feeds(feeds, options.seconds, &DecodedFeed::convert);
    decoded.push_back(alone.frames_per_second);
    converted.push_back(whole.frames_per_second);
    ratios.push_back(whole.frames_per_second / alone.frames_per_second);
    decode_cpu.push_back(alone.cpu_per_1000_frames);
    convert_cpu.push_back(whole.cpu_per_1000_frames);
  }
  std::printf("%dx%d %s to NV12 of the other range, %d feed%s\n", convert.width, convert.height,
              info(convert.source).name.data(), options.feeds, options.feeds == 1 ? "" : "s");
  std::printf("  NVDEC alone             %9.0f frames/s  %.4f CPU s per 1000\n", median(decoded),
              median(decode_cpu));
  std::printf(
      "  converted, brought down %9.0f frames/s  %.4f CPU s per 1000  %.3f of NVDEC alone\n",
      median(converted), median(convert_cpu), median(ratios));
  return gpu.device->lost() ? 1 : 0;
}

}  // namespace
}  // namespace framelane

int main(int argc, char** argv) {
  framelane::Options options;
  for (int i = 1; i < argc; ++i) {
    const auto value = [&](const char* name) {
      const bool found = i + 1 < argc && std::strcmp(argv[i], name) == 0;
      return found ? argv[++i] : nullptr;
    };
    if (const char* feeds = value("--feeds")) {
      options.feeds = std::max(std::atoi(feeds), 1);
    } else if (const char* seconds = value("--seconds")) {
      options.seconds = std::atof(seconds);
    } else if (const char* rounds = value("--rounds")) {
      options.rounds = std::max(std::atoi(rounds), 1);
    } else if (const char* gpu = value("--gpu")) {
      options.gpu = std::atoi(gpu);
    } else if (argv[i][0] != '-' && options.file.empty()) {
      options.file = argv[i];
    } else {
      std::fprintf(stderr, "framelane_nvdec_bench: unknown option %s\n", argv[i]);
      return 2;
    }
  }
  if (options.file.empty()) {
    std::fprintf(stderr, "framelane_nvdec_bench: name a file of video to decode\n");
    return 2;
  }
  try {
    return framelane::run(options);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "framelane_nvdec_bench: %s\n", error.what());
    return 1;
  }
}
