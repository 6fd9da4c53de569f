// Adding two vectors in segments over several streams, as courses show it. The published code is
// wrong if the length is no multiple of the segment, so all kinds of lengths are tried here first.
#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <iterator>
#include <memory>

#include "bench/harness/ceilings.hpp"
#include "bench/harness/suite.hpp"
#include "pipeline/frames/host_buffer.hpp"
#ifdef FRAMELANE_WITH_CUDA
#include "bench/experiments/segmented_add.hpp"
#endif

namespace framelane::bench {
namespace {

constexpr int kStreams[] = {2, 4};
constexpr const char* kUploads = "uploads alone";
constexpr const char* kWhole = "GPU, in one piece";
constexpr const char* kSegmented = "GPU, segments";
constexpr const char* kOneCore = "CPU, one core";

/// Two vectors, their exact sum, and room for a contender's result.
class Vectors {
 public:
  static constexpr std::size_t kCount = 4;

  explicit Vectors(std::size_t count)
      : length(count),
        a_(count * sizeof(float)),
        b_(count * sizeof(float)),
        expected_(count * sizeof(float)),
        sum_(count * sizeof(float)) {
    // Different at each place of one segment and the next, and such that additions round.
    for (std::size_t i = 0; i < length; ++i) {
      floats(a_)[i] = static_cast<float>(i % 8388593) + 0.25F;
      floats(b_)[i] = static_cast<float>(i % 65521) * 0.0137F;
      floats(expected_)[i] = a()[i] + b()[i];
    }
  }

  const std::size_t length;
  /// Bytes that one addition of the vectors reads and writes.
  double bytes() const { return 3.0 * static_cast<double>(length) * sizeof(float); }
  const float* a() const { return floats(a_); }
  const float* b() const { return floats(b_); }
  float* sum() { return floats(sum_); }

  /// Sets all bits to 1, which is a NaN and no sum here.
  void spoil() { std::memset(sum_.data(), 0xFF, sum_.size()); }
  /// Checks that the first `count` of `sum` are right and that nothing behind them was written.
  std::string compare(std::size_t count) const {
    std::string wrong = first_difference(expected_.data(), sum_.data(), count * sizeof(float));
    if (!wrong.empty() || count == length || std::isnan(floats(sum_)[count])) return wrong;
    return fmt::format("element {}, behind the last, was written", count);
  }

 private:
  static float* floats(const HostBuffer& buffer) { return reinterpret_cast<float*>(buffer.data()); }
  HostBuffer a_, b_, expected_, sum_;
};

Contender contender(Vectors& vectors, Row row, std::function<void()> add) {
  row.bytes = vectors.bytes();
  return {std::move(row), [&vectors] { vectors.spoil(); },
          [add = std::move(add)] { return milliseconds(add); },
          [&vectors] { return vectors.compare(vectors.length); }};
}

#ifdef FRAMELANE_WITH_CUDA

/// Tries every length up to a few segments for each stream. A wrong sum becomes a problem of the
/// result.
void try_every_length(const Session& session, Result& result) {
  constexpr std::size_t kSegment = 37;  // no multiple of a block or of a copy's words
  constexpr std::size_t kMost = kSegment * 3 * 4;
  Vectors vectors(kMost + 1);
  int tried = 0;
  for (const int streams : kStreams) {
    const SegmentedAdd adder(context_of(session), streams, kSegment);
    for (const IssueOrder order : kIssueOrders) {
      for (std::size_t length = 0; length <= kMost && !session.stopped(); ++length, ++tried) {
        vectors.spoil();
        adder.run(order, vectors.a(), vectors.b(), vectors.sum(), length);
        const std::string wrong = vectors.compare(length);
        if (wrong.empty()) continue;
        result.problems.push_back(
            fmt::format("wrong result of {} elements in segments of {} over {} streams, {}: {}",
                        length, kSegment, streams, name_of(order), wrong));
        return;
      }
    }
  }
  if (session.stopped()) return;
  result.verdict.push_back(
      fmt::format("right for every length from 0 to {} in segments of {}, over 2 and 4 streams, in "
                  "both orders: {} sums",
                  kMost, kSegment, tried));
}

/// The GPU's ways, for one length that leaves a remainder.
class VecaddGpu {
 public:
  VecaddGpu(CudaContext& context, Vectors& vectors)
      : vectors_(vectors),
        segment_(std::max<std::size_t>(vectors.length / kSegments, 1)),
        whole_(context, 1, vectors.length) {
    for (const int streams : kStreams) {
      adders_.push_back(std::make_unique<SegmentedAdd>(context, streams, segment_));
    }
  }

  std::vector<Contender> contenders() {
    std::vector<Contender> result;
    result.push_back(
        {{.name = kUploads, .bytes = 2.0 * static_cast<double>(vectors_.length) * sizeof(float)},
         {},
         [this] {
           return milliseconds(
               [this] { whole_.upload(vectors_.a(), vectors_.b(), vectors_.length); });
         },
         {}});
    result.push_back(
        contender(vectors_, {.name = kWhole}, [this] { run(whole_, IssueOrder::kDepthFirst); }));
    for (std::size_t i = 0; i < adders_.size(); ++i) {
      for (const IssueOrder order : kIssueOrders) {
        result.push_back(contender(
            vectors_,
            {.name = kSegmented,
             .parameters = {{"streams", std::int64_t{kStreams[i]}}, {"order", name_of(order)}}},
            [=, this] { run(*adders_[i], order); }));
      }
    }
    return result;
  }
  std::size_t segment() const { return segment_; }

 private:
  static constexpr std::size_t kSegments = 16;

  void run(const SegmentedAdd& adder, IssueOrder order) {
    adder.run(order, vectors_.a(), vectors_.b(), vectors_.sum(), vectors_.length);
  }

  Vectors& vectors_;
  const std::size_t segment_;
  const SegmentedAdd whole_;
  std::vector<std::unique_ptr<SegmentedAdd>> adders_;
};

#endif

void judge(Result& result) {
  const Row* one_core = result.measured(kOneCore);
  const Row* copying = result.measured(kCopyingAlone);
  if (one_core != nullptr && copying != nullptr) {
    result.verdict.push_back("one core takes " + beside_copying(*one_core, *copying));
  }
  const Row* whole = result.measured(kWhole);
  const Row* best = result.fastest(kSegmented);
  const Row* uploads = result.measured(kUploads);
  if (whole == nullptr || best == nullptr || uploads == nullptr) return;
  result.verdict.push_back(
      fmt::format("segments over {} streams, {}, are {:.2f} times as fast as one piece, and take "
                  "{:.2f} times what the uploads alone take",
                  to_string(parameter(best->parameters, "streams")),
                  to_string(parameter(best->parameters, "order")), whole->median() / best->median(),
                  best->median() / uploads->median()));
  for (const int streams : kStreams) {
    const Row* depth =
        result.measured(kSegmented, {{"streams", std::int64_t{streams}}, {"order", "depth first"}});
    const Row* breadth = result.measured(
        kSegmented, {{"streams", std::int64_t{streams}}, {"order", "breadth first"}});
    if (depth == nullptr || breadth == nullptr) continue;
    result.verdict.push_back(
        fmt::format("over {} streams breadth first takes {:.2f} times what "
                    "depth first takes",
                    streams, breadth->median() / depth->median()));
  }
}

}  // namespace

void run_vecadd(const Session& session, Result& result) {
  // Three more, so that the remainder is odd.
  const std::size_t length = session.bytes / sizeof(float) + 3;
  result.setup.push_back({"elements", static_cast<std::int64_t>(length)});
  result.published_by = "\"6.2 CUDA streams\", course notes";
  constexpr std::size_t kCopied = 3;  // as many bytes as an addition reads and writes
  require_memory(session, (Vectors::kCount + kCopied) * length * sizeof(float), "--bytes");
  Vectors vectors(length);
  std::vector<Contender> contenders{copying_alone({}, vectors.bytes())};
#ifdef FRAMELANE_WITH_CUDA
  std::unique_ptr<VecaddGpu> gpu;
  if (session.gpu != nullptr) {
    try {
      try_every_length(session, result);
      if (!result.problems.empty()) return;
      gpu = std::make_unique<VecaddGpu>(context_of(session), vectors);
      result.setup.push_back({"elements of a segment", static_cast<std::int64_t>(gpu->segment())});
      std::ranges::move(gpu->contenders(), std::back_inserter(contenders));
    } catch (const std::exception& error) {
      result.problems.push_back(problem_of_gpu(session, "--bytes", error));
    }
  }
#endif
  if (session.gpu == nullptr) result.left_out.push_back("segments over streams: " + session.no_gpu);
  contenders.push_back(contender(vectors, {.name = kOneCore}, [&vectors] {
    for (std::size_t i = 0; i < vectors.length; ++i)
      vectors.sum()[i] = vectors.a()[i] + vectors.b()[i];
  }));
  take_turns(session, contenders, result);
  judge(result);
}

}  // namespace framelane::bench
