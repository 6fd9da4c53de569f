// Our conversions beside those of others on the same frames, each with its accuracy: libyuv and
// swscale on one core, NPP and a copy within the memory on a GPU.
#include "bench/suites/peers.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <optional>
#include <stdexcept>

#include "bench/stage_feed.hpp"
#include "bench/suites/ceilings.hpp"
#include "bench/suites/suite.hpp"
#include "kernels/converter.hpp"
#include "kernels/rgb_to_yuv420.hpp"
#ifdef FRAMELANE_WITH_CUDA
#include "bench/npp.hpp"
#include "bench/suites/gpu_frames.hpp"
#include "kernels/cuda/cuda_converter.hpp"
#endif

namespace framelane::bench {
namespace {

constexpr const char* kOff = "off";
constexpr const char* kMostOff = "off by";
constexpr const char* kOurs = "framelane, one core";
constexpr const char* kOursStreaming = "framelane, past the caches";
constexpr const char* kOursGpu = "framelane, GPU";
constexpr const char* kNppName = "NPP";
constexpr const char* kCopy = "copy within the GPU";

// All to BT.601, which all of them know.
constexpr ColorSpec kRgb{.matrix = Matrix::kRgb, .range = Range::kFull};
constexpr ColorSpec k601{.matrix = Matrix::kBt601};
constexpr ColorSpec k601Full{.matrix = Matrix::kBt601, .range = Range::kFull};
struct Pair {
  PixelFormat source;
  ColorSpec source_color;
  PixelFormat target;
  ColorSpec target_color = k601;
};
constexpr Pair kPairs[] = {{PixelFormat::kBgra, kRgb, PixelFormat::kI420},
                           {PixelFormat::kBgra, kRgb, PixelFormat::kNv12},
                           {PixelFormat::kBgra, kRgb, PixelFormat::kI422},
                           {PixelFormat::kBgra, kRgb, PixelFormat::kI444},
                           {PixelFormat::kBgr24, kRgb, PixelFormat::kI420},
                           {PixelFormat::kI444, k601, PixelFormat::kI420},
                           {PixelFormat::kYuyv, k601, PixelFormat::kI420},
                           {PixelFormat::kI420, k601, PixelFormat::kNv12},
                           {PixelFormat::kI420, k601Full, PixelFormat::kI420},
                           {PixelFormat::kI420, k601, PixelFormat::kI420, {}}};

Conversion conversion_of(const Pair& pair, const Size& size) {
  return {size.width, size.height, pair.source, pair.source_color, pair.target, pair.target_color};
}

Row make_row(std::string name, const Conversion& conversion, std::string note) {
  const Size size{"", conversion.width, conversion.height};
  return {.name = std::move(name),
          .parameters = {{"formats", formats_of(conversion)},
                         {"size", fmt::format("{}x{}", size.width, size.height)}},
          .bytes = static_cast<double>(image_bytes(conversion.source, size) +
                                       image_bytes(conversion.target, size)),
          .note = std::move(note),
          .more = {{kOff, "%"}, {kMostOff, "codes"}}};
}

/// The figures of a row of make_row: 0 for what has to be exact, and is checked to be; of others
/// what `measure` finds, once.
std::function<std::vector<double>()> figures(bool exact, std::function<Accuracy()> measure) {
  const auto known = std::make_shared<std::optional<Accuracy>>();
  if (exact) *known = Accuracy{};
  return [known, measure = std::move(measure)] {
    if (!*known) *known = measure();
    return std::vector{100 * (*known)->share_off, static_cast<double>((*known)->most_off)};
  };
}

/// On the CPU: more than caches hold.
int frame_count(const Conversion& conversion) {
  constexpr double kCold = 96 << 20;
  return static_cast<int>(std::clamp(kCold / make_row("", conversion, "").bytes, 2.0, 16.0));
}

PlainImage exact_result(const Conversion& conversion) {
  FramePool pool;
  const std::vector<PooledImage> frame =
      make_frames(pool, conversion.source, {"", conversion.width, conversion.height}, 1);
  return reference_result(conversion, as_const(frame[0].image));
}

/// `copying`: what beside a core's work stands as its ceiling; or null.
void judge(Result& result, const Conversion& conversion, const char* ours,
           const std::vector<const char*>& others, const Row* copying = nullptr) {
  const std::vector<Parameter> same = make_row("", conversion, "").parameters;
  const Row* own = result.measured(ours, same);
  if (own == nullptr) return;
  std::string sentence;
  for (const char* other : others) {
    const Row* row = result.measured(other, same);
    if (row == nullptr) continue;
    sentence += fmt::format("{}{:.2f} times as fast as {}", sentence.empty() ? "is " : ", ",
                            row->median() / own->median(), other);
    const auto off = row->median_of(kOff);
    if (off == 0) sentence += " (exact too)";
    if (off > 0) {
      sentence += fmt::format(" ({:.1f} % of its samples are off, by {:.0f} at most)", *off,
                              *row->median_of(kMostOff));
    }
  }
  if (copying != nullptr) {
    sentence += (sentence.empty() ? "takes " : ", and takes ") + beside_copying(*own, *copying);
  }
  if (sentence.empty()) return;
  result.verdict.push_back(fmt::format("{} {}: {} {}", to_string(parameter(same, "size")),
                                       to_string(parameter(same, "formats")), ours, sentence));
}

#ifdef FRAMELANE_WITH_CUDA

/// BGRA to I420, which NPP has too, in a GPU's memory: frames go round more of it than the
/// second-level cache holds.
class PeersGpu {
 public:
  PeersGpu(CudaContext& context, const Conversion& conversion, const std::string& npp)
      : conversion_(conversion),
        converter_(CudaConverter::make(conversion)),
        npp_(Npp::find(npp)),
        source_(std::move(make_frames(pool_, conversion.source, size(), 1)[0])),
        target_(allocate_image(targets_, conversion.target, conversion.width, conversion.height)),
        exact_(reference_result(conversion, as_const(source_.image))),
        frames_(context, conversion, as_const(source_.image)) {}

  bool has_npp() const { return npp_.has_value(); }

  std::vector<Contender> contenders() {
    std::vector<Contender> result{
        copy_within(), contender(kOursGpu, "", true, [this](std::size_t i) {
          cuda::check(
              converter_->enqueue(as_const(frames_.source(i).image), frames_.target(i).image, 0,
                                  conversion_.height, frames_.stream().get()),
              "cudaLaunchKernel");
        })};
    if (npp_) {
      result.push_back(
          contender(kNppName, "nppiBGRToYCbCr420_8u_AC4P3R", false, [this](std::size_t i) {
            const int status = npp_->enqueue(as_const(frames_.source(i).image),
                                             frames_.target(i).image, frames_.stream().get());
            if (status < 0) throw std::runtime_error(fmt::format("NPP's status is {}", status));
          }));
    }
    return result;
  }

 private:
  Size size() const { return {"", conversion_.width, conversion_.height}; }

  Contender contender(const char* name, const char* note, bool exact,
                      std::function<void(std::size_t)> enqueue) {
    Contender result{make_row(name, conversion_, note),
                     [this] { frames_.spoil_targets(); },
                     [this, enqueue = std::move(enqueue)] { return frames_.time(enqueue); },
                     {}};
    if (exact) {
      result.check = [this] { return frames_.compare(as_const(exact_.image), target_.image); };
    }
    result.more = figures(exact, [this] {
      frames_.download(0, target_.image);
      return best_accuracy_of(conversion_, as_const(source_.image), as_const(target_.image));
    });
    return result;
  }
  /// As many bytes read and written as a conversion does, between two halves of the targets'
  /// and sources' memory: nothing on a GPU is faster.
  Contender copy_within() {
    Row row = make_row(kCopy, conversion_, "of as many bytes");
    row.more.clear();
    const auto bytes = static_cast<std::size_t>(row.bytes / 2);
    return {std::move(row),
            {},
            [=, this] {
              return frames_.time([=, this](std::size_t i) {
                // A picture of BGRA is the larger of the two, and holds half of both; all are
                // alike, so that nothing changes.
                copy(frames_.source((i + 1) % frames_.count()).memory.data(),
                     frames_.source(i).memory.data(), bytes, cudaMemcpyDeviceToDevice,
                     frames_.stream().get());
              });
            },
            {}};
  }

  const Conversion conversion_;
  const std::unique_ptr<const CudaConverter> converter_;
  const std::optional<Npp> npp_;
  FramePool pool_, targets_;
  const PooledImage source_, target_;
  const PlainImage exact_;
  const GpuFrames frames_;  // whose stream is the first to go
};

#endif

/// One conversion on one core.
void measure_on_cpu(const Session& session, double turn, const Conversion& conversion,
                    Result& result) {
  PeerFrames frames(conversion);
  const Row frame = make_row("", conversion, "");
  std::vector<Contender> contenders{copying_alone(frame.parameters, frame.bytes, frames.count())};
  const auto add_own = [&](const char* name, Stores stores) {
    const std::shared_ptr<const Converter> converter = Converter::make(conversion, stores);
    contenders.push_back(frames.contender(
        name, converter->name(),
        [converter](const ConstImageView& source, const ImageView& target) {
          converter->run(source, target, 0, source.height);
        },
        true));
  };
  add_own(kOurs, Stores::kCached);
  const bool streams = is_rgb_to_yuv420(conversion);
  if (streams) add_own(kOursStreaming, Stores::kStreaming);
  if (Convert convert = make_libyuv(conversion)) {
    contenders.push_back(frames.contender("libyuv", "", std::move(convert), false));
  }
  if (Convert convert = make_swscale(conversion)) {
    contenders.push_back(frames.contender("swscale", "", std::move(convert), false));
  }
  take_turns(session, turn, contenders, result);
  const Row* copying = result.measured(kCopyingAlone, frame.parameters);
  judge(result, conversion, kOurs, {"libyuv", "swscale"}, copying);
  if (streams) judge(result, conversion, kOursStreaming, {"libyuv", "swscale"}, copying);
}

}  // namespace

PeerFrames::PeerFrames(const Conversion& wanted)
    : conversion(wanted), exact_(exact_result(wanted)) {
  const Size size{"", conversion.width, conversion.height};
  const int count = frame_count(conversion);
  for (int i = 0; i < count; ++i) {
    // Each begins with the same random numbers.
    from_.push_back(std::move(make_frames(sources_, conversion.source, size, 1)[0]));
    to_.push_back(allocate_image(targets_, conversion.target, size.width, size.height));
  }
}

std::size_t PeerFrames::bytes_of(const Conversion& conversion) {
  // And the exact result, beside the frame that it is made of.
  return (static_cast<std::size_t>(frame_count(conversion)) + 1) *
         static_cast<std::size_t>(make_row("", conversion, "").bytes);
}

Contender PeerFrames::contender(std::string name, std::string note, Convert convert, bool exact) {
  Contender result{make_row(std::move(name), conversion, std::move(note)),
                   [this] {
                     for (const PooledImage& target : to_) spoil(target.image);
                   },
                   [this, convert = std::move(convert)] {
                     return milliseconds([&] {
                              for (std::size_t i = 0; i < from_.size(); ++i) {
                                convert(as_const(from_[i].image), to_[i].image);
                              }
                            }) /
                            static_cast<double>(from_.size());
                   },
                   {}};
  if (exact) result.check = [this] { return check(); };
  result.more = figures(exact, [this] {
    return best_accuracy_of(conversion, as_const(from_[0].image), as_const(to_[0].image));
  });
  return result;
}

std::string PeerFrames::check() const {
  for (std::size_t i = 0; i < to_.size(); ++i) {
    const std::string wrong = first_difference(as_const(exact_.image), as_const(to_[i].image));
    if (!wrong.empty()) return fmt::format("frame {}, {}", i, wrong);
  }
  return {};
}

void run_peers(const Session& session, Result& result) {
  result.setup.push_back({"matrix", "bt601, limited where not said otherwise"});
  if (!has_swscale()) result.left_out.emplace_back("swscale: libswscale is not installed here");
  if (!has_libyuv()) result.left_out.emplace_back("libyuv: the program was built without it");
  std::vector<Size> sizes{k1080p, k4K, k8K};
  if (session.width > 0) sizes = {{"", session.width, session.height}};
  for (const Pair& pair : kPairs) {
    // And as much for the copy beside them.
    require_memory(session, 2 * PeerFrames::bytes_of(conversion_of(pair, sizes.front())), "--size");
  }
  constexpr std::size_t kEach = 5;  // at most, on either
  const bool on_gpu = session.gpu != nullptr;
  const double turn =
      turn_seconds(session, kEach * (std::size(kPairs) + (on_gpu ? sizes.size() : 0)));
#ifdef FRAMELANE_WITH_CUDA
  for (const Size& size : sizes) {
    if (!on_gpu || (session.stopped() && !result.rows.empty())) break;
    const Conversion conversion = conversion_of(kPairs[0], size);
    try {
      PeersGpu gpu(context_of(session), conversion, session.npp);
      if (!gpu.has_npp() && size.width == sizes.front().width) {
        result.left_out.emplace_back("NPP: libnppicc is not installed here");
      }
      take_turns(session, turn, gpu.contenders(), result);
      judge(result, conversion, kOursGpu, {kNppName, kCopy});
    } catch (const std::exception& error) {
      result.problems.push_back(problem_of_gpu(session, "--size", error));
      break;
    }
  }
#endif
  if (!on_gpu) result.left_out.push_back("NPP and the GPU: " + session.no_gpu);
  for (const Pair& pair : kPairs) {
    if (session.stopped() && !result.rows.empty()) break;
    measure_on_cpu(session, turn, conversion_of(pair, sizes.front()), result);
  }
}

}  // namespace framelane::bench
