// The suite `peers` on a GPU: our kernels beside a copy of as many bytes within the GPU's memory,
// NPP's kernel where it has one, and the obvious kernel. Only with the CUDA backend.
#include <fmt/core.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <stdexcept>
#include <utility>

#include "bench/harness/bench_kernels.hpp"
#include "bench/harness/cuda_graph.hpp"
#include "bench/harness/gpu_frames.hpp"
#include "bench/product/npp.hpp"
#include "bench/product/peers.hpp"
#include "kernels/cuda/cuda_converter.hpp"

namespace framelane::bench {
namespace {

constexpr const char* kOursOnGpu = "framelane, GPU";
constexpr const char* kSlowest = "framelane, GPU, slowest of 6 colours";
constexpr const char* kPixelAThread = "a pixel a thread, GPU";
constexpr const char* kNppName = "NPP";
constexpr const char* kInGraph = ", in a CUDA graph";
constexpr const char* kCopy = "copy within the GPU";
constexpr const char* kOfCopy = "of the copy";

constexpr ColorSpec sited(Siting siting) { return {.matrix = Matrix::kBt601, .siting = siting}; }

constexpr PeerPair kGpuPairs[] = {
    {PixelFormat::kBgra, PixelFormat::kI420},
    {PixelFormat::kBgra, PixelFormat::kNv12},
    {.source = PixelFormat::kBgra,
     .target = PixelFormat::kNv12,
     .target_color = {.matrix = Matrix::kBt2020, .range = Range::kFull},
     .says = ", bt2020 full"},
    {.source = PixelFormat::kBgra,
     .target = PixelFormat::kI420,
     .target_color = sited(Siting::kCenter),
     .says = ", center"},
    {.source = PixelFormat::kBgra,
     .target = PixelFormat::kNv12,
     .target_color = sited(Siting::kCenter),
     .says = ", center"},
    {.source = PixelFormat::kBgra,
     .target = PixelFormat::kI420,
     .target_color = sited(Siting::kTopLeft),
     .says = ", topleft"},
    {.source = PixelFormat::kBgra,
     .target = PixelFormat::kNv12,
     .target_color = sited(Siting::kTopLeft),
     .says = ", topleft"},
    {PixelFormat::kArgb, PixelFormat::kNv12},
    {PixelFormat::kBgr24, PixelFormat::kNv12},
    {PixelFormat::kBgra, PixelFormat::kI422},
    {PixelFormat::kBgra, PixelFormat::kI444},
    {PixelFormat::kBgra, PixelFormat::kYuv444},
    {PixelFormat::kI420, PixelFormat::kNv12},
    {.source = PixelFormat::kI420,
     .target = PixelFormat::kNv12,
     .yuv_source = {.matrix = Matrix::kBt601, .range = Range::kFull}},
    {.source = PixelFormat::kI420, .target = PixelFormat::kNv12, .target_color = {}},
    {PixelFormat::kYuyv, PixelFormat::kNv12},
    {PixelFormat::kUyvy, PixelFormat::kI420},
    {PixelFormat::kUyvy, PixelFormat::kNv12},
    {.source = PixelFormat::kNv12, .target = PixelFormat::kNv12, .part = {2, 3}},
    {.source = PixelFormat::kNv12, .target = PixelFormat::kNv12, .part = {4, 9}},
    {.source = PixelFormat::kBgra, .target = PixelFormat::kNv12, .part = {1, 4}},
    {.source = PixelFormat::kBgra, .target = PixelFormat::kI420, .part = {1, 4}}};

/// What NPP can do too.
bool npp_has(const PeerPair& pair, const Npp& npp) {
  const bool scales = pair.part.parts != pair.part.of;
  return pair.source == PixelFormat::kBgra && pair.target == PixelFormat::kI420 &&
         pair.target_color == PeerPair{}.target_color && (!scales || npp.resizes());
}

using Converters = std::vector<std::unique_ptr<const CudaConverter>>;

/// The conversion to every other matrix and range, and then to its own, so that the targets hold
/// its own result in the end. They differ in numbers alone, but numbers decide what a kernel can
/// skip.
Converters in_every_color(const Conversion& own) {
  Converters result;
  for (const Matrix matrix : {Matrix::kBt601, Matrix::kBt709, Matrix::kBt2020}) {
    for (const Range range : {Range::kLimited, Range::kFull}) {
      Conversion other = own;
      other.target_color.matrix = matrix;
      other.target_color.range = range;
      if (other.target_color != own.target_color) result.push_back(CudaConverter::make(other));
    }
  }
  result.push_back(CudaConverter::make(own));
  return result;
}

/// One conversion of frames in a GPU's memory. One thread; throws CudaError.
class PeersGpu {
 public:
  /// `npp` stays.
  PeersGpu(CudaContext& context, const PeerPair& pair, const Size& size, const Npp* npp)
      : pair_(pair),
        conversion_(pair.at(size)),
        npp_(npp),
        converter_(CudaConverter::make(conversion_)),
        source_(std::move(make_frames(pool_, conversion_.source, size, 1)[0])),
        target_(allocate_image(targets_, conversion_.target, conversion_.target_size().width,
                               conversion_.target_size().height)),
        exact_(reference_result(conversion_, as_const(source_.image))),
        constants_(make_constants(context, *converter_)),
        frames_(context, conversion_, as_const(source_.image), numbers()) {
    if (npp_ != nullptr && conversion_.scaling) {
      const auto [width, height] = conversion_.target_size();
      resized_.emplace(context, conversion_.source, width, height);
      context.memory_stream().synchronize();
    }
  }

  /// They refer to this object.
  std::vector<Contender> contenders() {
    const Enqueue ours = [this](std::size_t i) { return convert(*converter_, i); };
    std::vector<Contender> result{copy_within(), contender(kOursOnGpu, "", true, one_by_one(ours))};
    if (frames_.has_batches()) {
      const std::size_t at_once =
          std::min<std::size_t>(converter_->frames_a_launch(), GpuFrames::kBatch);
      if (at_once > 1) {
        result.push_back(contender(fmt::format("{}, {} frames a launch", kOursOnGpu, at_once), "",
                                   true, [this] { return batches(); }));
      }
      add_graph(result, kOursOnGpu, "", true, ours);
    }
    const PixelFormatInfo& target = info(conversion_.target);
    const bool is_bgra = conversion_.source == PixelFormat::kBgra;
    if (is_bgra && !target.chroma_half_width) {
      result.push_back(contender(kPixelAThread, "", true, one_by_one([this](std::size_t i) {
                                   return enqueue_pixel_a_thread(
                                       conversion_, as_const(frames_.source(i).image),
                                       frames_.target(i).image, frames_.stream().get());
                                 })));
    }
    if (is_bgra && !conversion_.scaling && target.chroma_half_height &&
        pair_.target_color.matrix == Matrix::kBt601) {
      colors_ = in_every_color(conversion_);
      result.push_back(contender(kSlowest, "", true, [this] { return slowest(); }));
    }
    if (npp_ != nullptr) {
      const Enqueue npps = [this](std::size_t i) { return convert_by_npp(i); };
      const char* const note = resized_ ? "nppiResize_8u_C4R, cubic, and then as without a size"
                                        : "nppiBGRToYCbCr420_8u_AC4P3R";
      result.push_back(contender(kNppName, note, false, one_by_one(npps)));
      if (frames_.has_batches()) add_graph(result, kNppName, note, false, npps);
    }
    return result;
  }

 private:
  /// Queues the conversion of frame i.
  using Enqueue = std::function<cudaError_t(std::size_t i)>;

  static void check(cudaError_t error) { cuda::check(error, "cudaLaunchKernel"); }

  static std::optional<Constants> make_constants(CudaContext& context,
                                                 const CudaConverter& converter) {
    std::optional<Constants> result;
    if (converter.constant_bytes() > 0) result.emplace(context, converter);
    return result;
  }
  const std::uint8_t* numbers() const { return constants_ ? constants_->memory.data() : nullptr; }

  cudaError_t convert(const CudaConverter& converter, std::size_t i) const {
    const CudaFrame frame{as_const(frames_.source(i).image), frames_.target(i).image, nullptr,
                          numbers()};
    return converter.enqueue({&frame, 1}, 0, frame.target.height, frames_.stream().get());
  }
  cudaError_t convert_by_npp(std::size_t i) const {
    ConstImageView source = as_const(frames_.source(i).image);
    int status = 0;
    if (resized_) {
      status = npp_->enqueue_resize(source, resized_->image, frames_.stream().get());
      source = as_const(resized_->image);
    }
    if (status >= 0) {
      status = npp_->enqueue(source, frames_.target(i).image, frames_.stream().get());
    }
    if (status < 0) throw std::runtime_error(fmt::format("NPP's status is {}", status));
    return cudaSuccess;
  }

  // Milliseconds a frame.

  std::function<double()> one_by_one(Enqueue enqueue) const {
    return [this, enqueue = std::move(enqueue)] {
      return frames_.time([&](std::size_t i) { check(enqueue(i)); });
    };
  }
  double batches() const {
    return frames_.time_all([this] {
      for (int i = 0; i < frames_.timed(); i += GpuFrames::kBatch) {
        check(converter_->enqueue(frames_.batch(static_cast<std::size_t>(i) % frames_.count()), 0,
                                  conversion_.target_size().height, frames_.stream().get()));
      }
    });
  }
  double slowest() const {
    double time = 0;
    for (const auto& converter : colors_) {
      time = std::max(time, frames_.time([&](std::size_t i) { check(convert(*converter, i)); }));
    }
    return time;
  }

  Contender contender(std::string name, const char* note, bool exact,
                      std::function<double()> work) {
    Contender result{make_peer_row(std::move(name), conversion_, note, pair_.says),
                     [this] { frames_.spoil_targets(); },
                     std::move(work),
                     {}};
    if (exact) {
      result.check = [this] { return frames_.compare(as_const(exact_.image), target_.image); };
    }
    result.more = accuracy_figures(exact, [this] {
      frames_.download(0, target_.image);
      return best_accuracy_of(conversion_, as_const(source_.image), as_const(target_.image));
    });
    return result;
  }
  void add_graph(std::vector<Contender>& contenders, const char* name, const char* note, bool exact,
                 const Enqueue& enqueue) {
    if (make_graph == nullptr) return;
    auto launch = make_graph(frames_.timed(), frames_.stream().get(), [&](int i) {
      return enqueue(static_cast<std::size_t>(i) % frames_.count());
    });
    contenders.push_back(
        contender(std::string(name) + kInGraph, note, exact,
                  [this, launch = std::move(launch)] { return frames_.time_all(launch); }));
  }
  /// As many bytes read and written as a conversion does, from the memory of one frame to that of
  /// another: nothing on a GPU is faster.
  Contender copy_within() {
    Row row = make_peer_row(kCopy, conversion_, "of as many bytes", pair_.says);
    row.more.clear();
    const auto half = static_cast<std::size_t>(row.bytes / 2);
    // The larger of the two images has room for half of both. All sources are alike, so a copy
    // changes nothing; targets are spoilt before the next contender's turn.
    const bool of_sources = frames_.source(0).memory.bytes() >= frames_.target(0).memory.bytes();
    const auto memory = [this, of_sources](std::size_t i) {
      return (of_sources ? frames_.source(i) : frames_.target(i)).memory.data();
    };
    return {std::move(row),
            {},
            [=, this] {
              return frames_.time([&](std::size_t i) {
                copy(memory((i + 1) % frames_.count()), memory(i), half, cudaMemcpyDeviceToDevice,
                     frames_.stream().get());
              });
            },
            {}};
  }

  const PeerPair& pair_;
  const Conversion conversion_;
  const Npp* const npp_;
  const std::unique_ptr<const CudaConverter> converter_;
  Converters colors_;
  FramePool pool_, targets_;
  const PooledImage source_, target_;
  const PlainImage exact_;
  const std::optional<Constants> constants_;
  std::optional<DeviceImage> resized_;  // by NPP
  const GpuFrames frames_;              // last: its destructor waits for the GPU
};

/// Adds to the rows with the parameters `same` their rate beside the copy's.
void add_shares(Result& result, const std::vector<Parameter>& same) {
  const Row* copying = result.measured(kCopy, same);
  if (copying == nullptr) return;
  const double limit = copying->median();
  for (Row& row : result.rows) {
    if (!row.counts() || row.is(kCopy) || !row.is(row.name, same)) continue;
    Figure share{kOfCopy, ""};
    for (const double sample : row.samples) share.samples.push_back(limit / sample);
    row.more.push_back(std::move(share));
  }
}

}  // namespace

const std::size_t kGpuPeers = 4 * std::size(kGpuPairs);

void measure_peers_on_gpu(const Session& session, double turn, const std::vector<Size>& sizes,
                          Result& result) {
  const std::optional<Npp> npp = Npp::find(session.npp);
  if (!npp) result.left_out.emplace_back("NPP: libnppicc is not installed here");
  for (const Size& size : sizes) {
    for (const PeerPair& pair : kGpuPairs) {
      if (session.stopped() && !result.rows.empty()) return;
      const bool has_npp = npp && npp_has(pair, *npp);
      try {
        PeersGpu gpu(context_of(session), pair, size, has_npp ? &*npp : nullptr);
        take_turns(session, turn, gpu.contenders(), result);
      } catch (const std::exception& error) {
        result.problems.push_back(problem_of_gpu(session, "--size", error));
        return;
      }
      const std::vector<Parameter> same =
          make_peer_row("", pair.at(size), "", pair.says).parameters;
      judge_peers(result, same, kOursOnGpu, {kNppName, kCopy});
      add_shares(result, same);
    }
  }
}

}  // namespace framelane::bench
