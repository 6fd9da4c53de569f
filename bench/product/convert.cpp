// One frame of BGRA to packed YUV 4:4:4, by the formula of textbooks and exactly: on one CPU core,
// and on a GPU in several ways that overlap copies and kernels.
#include <fmt/core.h>

#include <algorithm>
#include <iterator>

#include "bench/harness/ceilings.hpp"
#include "bench/harness/simd_loops.hpp"
#include "bench/harness/suite.hpp"
#include "bench/product/convert_frames.hpp"
#include "bench/product/stage_feed.hpp"
#include "kernels/converter.hpp"
#include "kernels/reference.hpp"
#ifdef FRAMELANE_WITH_CUDA
#include "bench/product/convert_gpu.hpp"
#endif

namespace framelane::bench {
namespace {

constexpr const char* kPublishedBy =
    "Quadro M2200, 7680x4320; \"CUDA随笔之Stream的使用\", zhihu column, article 51402722";

/// On one core, into one frame.
class ConvertCpu {
 public:
  explicit ConvertCpu(ConvertFrames& frames)
      : frames_(frames),
        reference_(make_reference_converter(frames.conversion)),
        simd_(Converter::make(frames.conversion)),
        target_(frames.make_target()) {}

  std::vector<Contender> contenders() {
    const int height = frames_.conversion.height;
    return {contender(kScalar, Formula::kClassic, "",
                      [this] { convert_classic(frames_.source(0), target_.image); }),
            contender(kScalar, Formula::kExact, "the reference, in 64-bit integers",
                      [=, this] { reference_->run(frames_.source(0), target_.image, 0, height); }),
            contender(kCpuSimd, Formula::kClassic, "",
                      [this] { convert_classic_simd(frames_.source(0), target_.image); }),
            contender(kCpuSimd, Formula::kExact, "",
                      [=, this] { simd_->run(frames_.source(0), target_.image, 0, height); })};
  }

 private:
  Contender contender(const char* name, Formula formula, const char* note,
                      std::function<void()> work) {
    return {{.name = name,
             .parameters = {{"formula", name_of(formula)}},
             .bytes = frames_.source_bytes() + frames_.target_bytes(),
             .note = note},
            [this] { spoil(target_.image); },
            [work = std::move(work)] { return milliseconds(work); },
            [this, formula] { return frames_.compare(formula, 0, target_.image); }};
  }

  ConvertFrames& frames_;
  const std::unique_ptr<const Converter> reference_, simd_;
  const PooledImage target_;
};

void judge_gpu(Result& result) {
  const std::vector<Parameter> exact{{"formula", name_of(Formula::kExact)}};
  const Row* upload = result.measured(kUploadAlone);
  const Row* in_turn = result.measured(kDefaultStream, exact);
  const Row* sliced = result.fastest(kSliced, exact);
  const Row* whole = result.fastest(kWholeFrames, exact);
  if (upload == nullptr || in_turn == nullptr || sliced == nullptr || whole == nullptr) return;
  const double enough = fewest_of_the_best(series_of(result, "", kSliced, exact, "streams")).x;
  result.verdict.push_back(
      fmt::format("slicing one frame over streams makes it {:.2f} times as fast as the default "
                  "stream; {:.0f} streams are within 2 % of the best",
                  in_turn->median() / sliced->median(), enough));
  result.verdict.push_back(fmt::format(
      "whole frames in flight are {:.2f} times as fast as the default stream, and take {:.2f} "
      "times what the upload alone takes, the least that any way can",
      in_turn->median() / whole->median(), whole->median() / upload->median()));
  const Row* classic = result.fastest(kWholeFrames, {{"formula", "classic"}});
  const Row* exact_kernel = result.measured(kKernelAlone, exact);
  const Row* classic_kernel = result.measured(kKernelAlone, {{"formula", "classic"}});
  if (classic == nullptr || exact_kernel == nullptr || classic_kernel == nullptr) return;
  result.verdict.push_back(fmt::format(
      "to be exact takes {:.2f} times the classic formula's kernel, and {:.2f} times its frame",
      exact_kernel->median() / classic_kernel->median(), whole->median() / classic->median()));
}

void judge(Result& result, const ConvertFrames& frames) {
  result.verdict.push_back(
      fmt::format("the classic formula gives another value than the exact result in {:.1f} % of "
                  "samples of random pixels",
                  100 * frames.classic_error_share()));
  const auto row = [&result](const char* name, Formula formula) {
    return result.measured(name, {{"formula", name_of(formula)}});
  };
  const Row* reference = row(kScalar, Formula::kExact);
  const Row* plain = row(kScalar, Formula::kClassic);
  const Row* exact = row(kCpuSimd, Formula::kExact);
  const Row* classic = row(kCpuSimd, Formula::kClassic);
  if (reference != nullptr && plain != nullptr && exact != nullptr && classic != nullptr) {
    result.verdict.push_back(fmt::format(
        "on one core SIMD is {:.1f} times as fast as the exact reference, and {:.1f} times as fast "
        "as the plain loop with the classic formula; with SIMD to be exact takes {:.2f} times the "
        "classic formula's frame",
        reference->median() / exact->median(), plain->median() / classic->median(),
        exact->median() / classic->median()));
  }
  const Row* copying = result.measured(kCopyingAlone);
  if (exact != nullptr && copying != nullptr) {
    result.verdict.push_back("on one core SIMD that is exact takes " +
                             beside_copying(*exact, *copying));
  }
  judge_gpu(result);
}

void draw(Result& result) {
  Chart chart{
      "One frame, host to host, sliced over streams", "streams", "ms per frame", true, {}, {}};
  for (const Formula formula : kFormulas) {
    Series series = series_of(result, fmt::format("sliced, {}", name_of(formula)), kSliced,
                              {{"formula", name_of(formula)}}, "streams");
    if (!series.points.empty()) chart.series.push_back(std::move(series));
  }
  const std::vector<Parameter> exact{{"formula", name_of(Formula::kExact)}};
  for (const auto& [title, row] :
       {std::pair("default stream", result.measured(kDefaultStream, exact)),
        std::pair("whole frames, the best", result.fastest(kWholeFrames, exact)),
        std::pair("upload alone", result.measured(kUploadAlone))}) {
    if (row != nullptr) chart.levels.push_back({title, row->median()});
  }
  if (!chart.series.empty()) result.charts.push_back(std::move(chart));
}

}  // namespace

void run_convert(const Session& session, Result& result) {
  const int width = session.width > 0 ? session.width : 7680;
  const int height = session.height > 0 ? session.height : 4320;
  result.setup.push_back({"size", fmt::format("{}x{}", width, height)});
  result.published_by = kPublishedBy;
  const Parameter classic{"formula", name_of(Formula::kClassic)};
  const auto sliced = [&](int streams) {
    return std::vector<Parameter>{classic, {"streams", std::int64_t{streams}}};
  };
  result.published = {{"CPU", 300, "ms", kScalar, {classic}},
                      {"GPU, default stream", 34.6, "ms", kDefaultStream, {classic}},
                      {"GPU, 8 streams", 20.2, "ms", kSliced, sliced(8)},
                      {"GPU, 18 streams", 19.3, "ms", kSliced, sliced(18)}};
  int frame_count = 1;
#ifdef FRAMELANE_WITH_CUDA
  if (session.gpu != nullptr) frame_count = ConvertGpu::kFrames;
#endif
  // What is allocated: one picture for all frames; a target for each frame and one for the CPU; a
  // result for each formula; and for copying_alone as much as a frame and its target.
  const auto images = static_cast<std::size_t>(frame_count) + 1 + 2 + 1;
  const Size size{"", width, height};
  require_memory(
      session,
      2 * image_bytes(PixelFormat::kBgra, size) + images * image_bytes(PixelFormat::kYuv444, size),
      "--size");
  ConvertFrames frames(width, height, frame_count);
  std::vector<Contender> contenders{
      copying_alone({}, frames.source_bytes() + frames.target_bytes())};
#ifdef FRAMELANE_WITH_CUDA
  std::unique_ptr<ConvertGpu> gpu;
  if (session.gpu != nullptr) {
    try {
      gpu = std::make_unique<ConvertGpu>(context_of(session), frames);
      std::ranges::move(gpu->contenders(), std::back_inserter(contenders));
    } catch (const std::exception& error) {
      result.problems.push_back(problem_of_gpu(session, "--size", error));
    }
  }
#endif
  if (session.gpu == nullptr) result.left_out.push_back("the GPU: " + session.no_gpu);
  ConvertCpu cpu(frames);
  for (Contender& contender : cpu.contenders()) contenders.push_back(std::move(contender));
  take_turns(session, contenders, result);
  judge(result, frames);
  draw(result);
}

}  // namespace framelane::bench
