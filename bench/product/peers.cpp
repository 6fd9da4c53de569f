// Our conversions beside those of others on the same frames, each with its accuracy. Here: libyuv,
// swscale and zimg on one core, and our own code for lower instruction sets.
#include "bench/product/peers.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <memory>
#include <optional>

#include "bench/harness/ceilings.hpp"
#include "bench/harness/suite.hpp"
#include "bench/product/simd_levels.hpp"
#include "kernels/reference.hpp"
#include "kernels/rgb_to_yuv.hpp"

namespace framelane::bench {
namespace {

constexpr const char* kOff = "off";
constexpr const char* kMostOff = "off by";
constexpr const char* kOurs = "framelane, one core";
constexpr const char* kOursStreaming = "framelane, past the caches";
constexpr const char* kOneFrame = ", one frame again and again";

constexpr PeerPair kCpuPairs[] = {
    {PixelFormat::kBgra, PixelFormat::kI420},
    {PixelFormat::kBgra, PixelFormat::kNv12},
    {PixelFormat::kBgra, PixelFormat::kI422},
    {PixelFormat::kBgra, PixelFormat::kI444},
    {PixelFormat::kBgra, PixelFormat::kYuv444},
    {PixelFormat::kBgr24, PixelFormat::kI420},
    {PixelFormat::kI444, PixelFormat::kI420},
    {PixelFormat::kI422, PixelFormat::kI420},
    {PixelFormat::kYuyv, PixelFormat::kI420},
    {PixelFormat::kYuyv, PixelFormat::kI422},
    {PixelFormat::kYuyv, PixelFormat::kNv12},
    {PixelFormat::kUyvy, PixelFormat::kI420},
    {PixelFormat::kUyvy, PixelFormat::kNv12},
    {PixelFormat::kI420, PixelFormat::kNv12},
    {PixelFormat::kNv12, PixelFormat::kI420},
    {.source = PixelFormat::kI420,
     .target = PixelFormat::kI420,
     .yuv_source = {.matrix = Matrix::kBt601, .range = Range::kFull}},
    {.source = PixelFormat::kI420, .target = PixelFormat::kI420, .target_color = {}},
    {.source = PixelFormat::kI420, .target = PixelFormat::kI420, .part = {2, 3}},
    {.source = PixelFormat::kBgra, .target = PixelFormat::kNv12, .part = {1, 3}}};

/// How many frames the CPU goes round: more than caches hold.
int frame_count(const Conversion& conversion) {
  constexpr double kCold = 96 << 20;
  return static_cast<int>(
      std::clamp(kCold / static_cast<double>(moved_bytes(conversion)), 2.0, 16.0));
}

PlainImage exact_result(const Conversion& conversion) {
  FramePool pool;
  const std::vector<PooledImage> frame =
      make_frames(pool, conversion.source, {"", conversion.width, conversion.height}, 1);
  return reference_result(conversion, as_const(frame[0].image));
}

Convert running(std::shared_ptr<const Converter> converter) {
  return [converter = std::move(converter)](const ConstImageView& source, const ImageView& target) {
    converter->run(source, target, 0, target.height);
  };
}

/// All ways to do one conversion on one core.
std::vector<Contender> cpu_contenders(PeerFrames& frames) {
  const Conversion& conversion = frames.conversion;
  const Row frame = make_peer_row("", conversion, "");
  std::vector<Contender> result{copying_alone(frame.parameters, frame.bytes, frames.count())};
  const auto add = [&](std::string name, std::unique_ptr<const Converter> converter,
                       std::size_t count) {
    std::string note = converter->name();
    result.push_back(frames.contender(std::move(name), std::move(note),
                                      running(std::move(converter)), true, count));
  };
  // Only these have two ways to store.
  const bool streams = is_rgb_to_yuv(conversion);
  add(kOurs, Converter::make(conversion), frames.count());
  if (streams) {
    add(kOursStreaming, Converter::make(conversion, Stores::kStreaming), frames.count());
    add(std::string(kOurs).append(kOneFrame), Converter::make(conversion), 1);
  }
  for (const SimdLevel& level : lower_simd_levels()) {
    const std::string name = std::string("framelane, ") + level.name;
    add(name, make_converter(conversion, Stores::kCached, level), frames.count());
    if (!streams) continue;
    add(name + ", past the caches", make_converter(conversion, Stores::kStreaming, level),
        frames.count());
  }
  add("reference", make_reference_converter(conversion), 1);  // it is slow
  if (Convert convert = make_libyuv(conversion)) {
    if (streams) {
      result.push_back(
          frames.contender(std::string("libyuv").append(kOneFrame), "", convert, false, 1));
    }
    result.push_back(frames.contender("libyuv", "", std::move(convert), false));
  }
  if (Convert convert = make_swscale(conversion)) {
    result.push_back(frames.contender("swscale", "", std::move(convert), false));
  }
  if (Convert convert = make_zimg(conversion)) {
    result.push_back(frames.contender("zimg", "", std::move(convert), false));
  }
  return result;
}

void measure_on_cpu(const Session& session, double turn, const Conversion& conversion,
                    Result& result) {
  PeerFrames frames(conversion);
  take_turns(session, turn, cpu_contenders(frames), result);
  const std::vector<Parameter> same = make_peer_row("", conversion, "").parameters;
  const Row* copying = result.measured(kCopyingAlone, same);
  for (const char* const ours : {kOurs, kOursStreaming}) {
    judge_peers(result, same, ours, {"libyuv", "swscale", "zimg"}, copying);
  }
}

}  // namespace

Conversion PeerPair::at(const Size& size) const {
  constexpr ColorSpec kRgb{.matrix = Matrix::kRgb, .range = Range::kFull};
  Conversion result{size.width, size.height, source, info(source).rgb ? kRgb : yuv_source,
                    target,     target_color};
  if (part.of > 1) {
    const int width = size.width * part.parts / part.of / 2 * 2;
    const int height = size.height * part.parts / part.of / 2 * 2;
    result.scaling = Scaling{.crop = {0, 0, size.width, size.height},
                             .target = {width, height},
                             .place = {0, 0, width, height}};
  }
  return result;
}

Row make_peer_row(std::string name, const Conversion& conversion, std::string note,
                  const char* says) {
  std::string size = fmt::format("{}x{}", conversion.width, conversion.height);
  if (const auto& scaling = conversion.scaling) {
    size += fmt::format(" to {}x{}", scaling->target.width, scaling->target.height);
  }
  return {.name = std::move(name),
          .parameters = {{"formats", formats_of(conversion) + says}, {"size", std::move(size)}},
          .bytes = static_cast<double>(moved_bytes(conversion)),
          .note = std::move(note),
          .more = {{kOff, "%"}, {kMostOff, "codes"}}};
}

std::function<std::vector<double>()> accuracy_figures(bool exact,
                                                      std::function<Accuracy()> measure) {
  const auto known = std::make_shared<std::optional<Accuracy>>();
  if (exact) *known = Accuracy{};
  return [known, measure = std::move(measure)] {
    if (!*known) *known = measure();
    return std::vector{100 * (*known)->share_off, static_cast<double>((*known)->most_off)};
  };
}

void judge_peers(Result& result, const std::vector<Parameter>& same, const char* ours,
                 const std::vector<const char*>& others, const Row* copying) {
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

PeerFrames::PeerFrames(const Conversion& wanted)
    : conversion(wanted), exact_(exact_result(wanted)) {
  const Size size{"", conversion.width, conversion.height};
  const int count = frame_count(conversion);
  for (int i = 0; i < count; ++i) {
    // Every call of make_frames begins with the same random numbers, so all frames are alike.
    from_.push_back(std::move(make_frames(sources_, conversion.source, size, 1)[0]));
    const auto [width, height] = conversion.target_size();
    to_.push_back(allocate_image(targets_, conversion.target, width, height));
  }
}

std::size_t PeerFrames::bytes_of(const Conversion& conversion) {
  // One more: the exact result, and the frame that it is made of.
  return (static_cast<std::size_t>(frame_count(conversion)) + 1) * moved_bytes(conversion);
}

Contender PeerFrames::contender(std::string name, std::string note, Convert convert, bool exact,
                                std::size_t frames) {
  Contender result{make_peer_row(std::move(name), conversion, std::move(note)),
                   [this] {
                     for (const PooledImage& target : to_) spoil(target.image);
                   },
                   [this, convert = std::move(convert), frames] {
                     return milliseconds([&] {
                              for (std::size_t i = 0; i < frames; ++i) {
                                convert(as_const(from_[i].image), to_[i].image);
                              }
                            }) /
                            static_cast<double>(frames);
                   },
                   {}};
  if (exact) result.check = [this, frames] { return check(frames); };
  result.more = accuracy_figures(exact, [this] {
    return best_accuracy_of(conversion, as_const(from_[0].image), as_const(to_[0].image));
  });
  return result;
}

std::string PeerFrames::check(std::size_t frames) const {
  for (std::size_t i = 0; i < frames; ++i) {
    const std::string wrong = first_difference(as_const(exact_.image), as_const(to_[i].image));
    if (!wrong.empty()) return fmt::format("frame {}, {}", i, wrong);
  }
  return {};
}

void run_peers(const Session& session, Result& result) {
  result.setup.push_back({"matrix", "bt601, limited where not said otherwise"});
  if (!has_swscale()) result.left_out.emplace_back("swscale: libswscale is not installed here");
  if (!has_libyuv()) result.left_out.emplace_back("libyuv: the program was built without it");
  if (!has_zimg()) result.left_out.emplace_back("zimg: the program was built without it");
  std::vector<Size> sizes{k1080p, k4K, k8K};
  if (session.width > 0) sizes = {{"", session.width, session.height}};
  for (const PeerPair& pair : kCpuPairs) {
    // Twice: copying_alone has as much.
    require_memory(session, 2 * PeerFrames::bytes_of(pair.at(sizes.front())), "--size");
  }
  std::size_t contenders = 6 * std::size(kCpuPairs);  // about
#ifdef FRAMELANE_WITH_CUDA
  if (session.gpu != nullptr) contenders += kGpuPeers * sizes.size();
#endif
  const double turn = turn_seconds(session, contenders);
#ifdef FRAMELANE_WITH_CUDA
  if (session.gpu != nullptr) measure_peers_on_gpu(session, turn, sizes, result);
#endif
  if (session.gpu == nullptr) result.left_out.push_back("NPP and the GPU: " + session.no_gpu);
  for (const PeerPair& pair : kCpuPairs) {
    if (session.stopped() && !result.rows.empty()) break;
    measure_on_cpu(session, turn, pair.at(sizes.front()), result);
  }
}

}  // namespace framelane::bench
