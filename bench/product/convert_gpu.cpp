#include "bench/product/convert_gpu.hpp"

#include <cassert>
#include <memory>

#include "bench/harness/bench_kernels.hpp"
#include "bench/harness/ceilings.hpp"

namespace framelane::bench {
namespace {

/// How many pieces of work a ceiling is measured with. They are queued together, so that the GPU
/// waits for no call.
constexpr int kBatch = 4;

/// Both images have the same pitch and one plane.
void copy_rows_of(const ConstImageView& from, const ImageView& to, int begin, int end,
                  cudaMemcpyKind kind, cudaStream_t stream) {
  assert(from.planes[0].pitch == to.planes[0].pitch);
  const auto pitch = static_cast<std::size_t>(from.planes[0].pitch);
  copy(to.row(0, begin), from.row(0, begin),
       static_cast<std::size_t>(end - begin - 1) * pitch +
           plane_row_bytes(from.format, 0, from.width),
       kind, stream);
}

}  // namespace

ConvertGpu::Place::Place(CudaContext& context, ConvertFrames& frames)
    : device_source(context, frames.conversion.source, frames.conversion.width,
                    frames.conversion.height),
      device_target(context, frames.conversion.target, frames.conversion.width,
                    frames.conversion.height),
      target(frames.make_target()) {}

ConvertGpu::ConvertGpu(CudaContext& context, ConvertFrames& frames)
    : frames_(frames),
      height_(frames.conversion.height),
      exact_(CudaConverter::make(frames.conversion)) {
  for (int i = 0; i < kFrames; ++i) places_.push_back(std::make_unique<Place>(context, frames));
  context.memory_stream().synchronize();
}

void ConvertGpu::upload(int place, int begin, int end, cudaStream_t stream) const {
  copy_rows_of(frames_.source(at(place).frame), at(place).device_source.image, begin, end,
               cudaMemcpyHostToDevice, stream);
}
void ConvertGpu::convert(Formula formula, int place, int begin, int end,
                         cudaStream_t stream) const {
  const ConstImageView source = as_const(at(place).device_source.image);
  const ImageView& target = at(place).device_target.image;
  cuda::check(formula == Formula::kExact ? exact_->enqueue(source, target, begin, end, stream)
                                         : enqueue_classic(source, target, begin, end, stream),
              "cudaLaunchKernel");
}
void ConvertGpu::download(int place, int begin, int end, cudaStream_t stream) const {
  copy_rows_of(as_const(at(place).device_target.image), at(place).target.image, begin, end,
               cudaMemcpyDeviceToHost, stream);
}
void ConvertGpu::carry(Formula formula, int place, cudaStream_t stream) const {
  upload(place, 0, height_, stream);
  convert(formula, place, 0, height_, stream);
  download(place, 0, height_, stream);
}

void ConvertGpu::look(Formula formula, int place, int row) {
  if (!wrong_.empty()) return;
  wrong_ = frames_.compare_row(formula, at(place).frame, row, at(place).target.image);
}

void ConvertGpu::spoil_places(int count) {
  wrong_.clear();
  for (int i = 0; i < count; ++i) {
    Place& place = at(i);
    place.frame = i;
    spoil(place.target.image);
    for (const DeviceImage* image : {&place.device_source, &place.device_target}) {
      const auto& [data, pitch] = image->image.planes[0];
      cuda::check(
          cudaMemsetAsync(data, 0, static_cast<std::size_t>(pitch * height_), streams_[0].get()),
          "cudaMemsetAsync");
    }
  }
  streams_.synchronize(1);
}
std::string ConvertGpu::compare(Formula formula, int count) const {
  if (!wrong_.empty()) return wrong_;
  for (int i = 0; i < count; ++i) {
    std::string wrong = frames_.compare(formula, at(i).frame, at(i).target.image);
    if (!wrong.empty()) return wrong;
  }
  return {};
}

std::vector<Contender> ConvertGpu::contenders() {
  std::vector<Contender> result = ceilings();
  for (const Formula formula : kFormulas) result.push_back(kernel_alone(formula));
  for (const Formula formula : kFormulas) {
    result.push_back(default_stream(formula));
    for (const int streams : kStreams) result.push_back(sliced(formula, streams));
    for (const int in_flight : kInFlight) result.push_back(whole_frames(formula, in_flight));
  }
  return result;
}

std::vector<Contender> ConvertGpu::ceilings() {
  const double up = frames_.source_bytes();
  const double down = frames_.target_bytes();
  const auto batch = [this](bool uploads, bool downloads) {
    return milliseconds([&] {
             for (int i = 0; i < kBatch; ++i) {
               if (uploads) upload(i, 0, height_, streams_[0].get());
               if (downloads) download(i, 0, height_, streams_[1].get());
             }
             streams_.synchronize(2);
           }) /
           kBatch;
  };
  return {
      {{.name = kUploadAlone, .bytes = up}, {}, [=] { return batch(true, false); }, {}},
      {{.name = kDownloadAlone, .bytes = down}, {}, [=] { return batch(false, true); }, {}},
      {{.name = kBothWaysAtOnce, .bytes = up + down}, {}, [=] { return batch(true, true); }, {}}};
}

Contender ConvertGpu::kernel_alone(Formula formula) {
  return {{.name = kKernelAlone,
           .parameters = {{"formula", name_of(formula)}},
           .bytes = both_ways(),
           .note = "on the GPU's own clock; rate of its memory"},
          [this] {
            spoil_places(kBatch);
            for (int i = 0; i < kBatch; ++i) upload(i, 0, height_, streams_[0].get());
            streams_.synchronize(1);
          },
          [this, formula] {
            begin_.record(streams_[0]);
            for (int i = 0; i < kBatch; ++i) convert(formula, i, 0, height_, streams_[0].get());
            end_.record(streams_[0]);
            end_.synchronize();
            return std::chrono::duration<double, std::milli>(end_.since(begin_)).count() / kBatch;
          },
          [this, formula] {
            for (int i = 0; i < kBatch; ++i) download(i, 0, height_, streams_[0].get());
            streams_.synchronize(1);
            return compare(formula, kBatch);
          }};
}

Contender ConvertGpu::default_stream(Formula formula) {
  return {{.name = kDefaultStream,
           .parameters = {{"formula", name_of(formula)}, {"streams", std::int64_t{1}}},
           .bytes = both_ways()},
          [this] { spoil_places(1); },
          [this, formula] {
            take_next(0);
            const double time = milliseconds([&] {
              carry(formula, 0, cudaStreamLegacy);
              cuda::check(cudaStreamSynchronize(cudaStreamLegacy), "cudaStreamSynchronize");
            });
            look(formula, 0, 0);
            return time;
          },
          [this, formula] { return compare(formula, 1); }};
}

Contender ConvertGpu::sliced(Formula formula, int streams) {
  return {{.name = kSliced,
           .parameters = {{"formula", name_of(formula)}, {"streams", std::int64_t{streams}}},
           .bytes = both_ways()},
          [this] { spoil_places(1); },
          [=, this] {
            // In multiples of two rows, which kernels read together.
            const auto row = [this, streams](int of) {
              return of == streams ? height_ : height_ * of / streams / 2 * 2;
            };
            take_next(0);
            const double time = milliseconds([&] {
              for (int i = 0; i < streams; ++i) {
                const int begin = row(i);
                const int end = row(i + 1);
                if (begin == end) continue;  // fewer rows than streams
                const cudaStream_t stream = streams_[i].get();
                upload(0, begin, end, stream);
                convert(formula, 0, begin, end, stream);
                download(0, begin, end, stream);
              }
              streams_.synchronize(streams);
            });
            for (int i = 0; i < streams; ++i) look(formula, 0, row(i));
            return time;
          },
          [this, formula] { return compare(formula, 1); }};
}

Contender ConvertGpu::whole_frames(Formula formula, int in_flight) {
  const auto steps = std::make_shared<int>(0);  // of this turn
  // The oldest frame comes back, and the next one is sent to its place.
  const auto step = [=, this] {
    const int place = *steps % in_flight;
    streams_[place].synchronize();
    if (*steps >= in_flight) look(formula, place, 0);
    take_next(place);
    carry(formula, place, streams_[place].get());
    ++*steps;
  };
  return {{.name = kWholeFrames,
           .parameters = {{"formula", name_of(formula)}, {"in flight", std::int64_t{in_flight}}},
           .bytes = both_ways(),
           .note = "per frame"},
          [=, this] {
            spoil_places(in_flight);
            *steps = 0;
            // Two rounds of all places before anything is measured: the frames of the first round
            // start while little else is running.
            for (int i = 0; i < 2 * in_flight; ++i) step();
          },
          // One round of all places is a sample. Frames may come back in pairs, and a sample of a
          // single frame could then be too short by half.
          [=] {
            return milliseconds([=] {
                     for (int i = 0; i < in_flight; ++i) step();
                   }) /
                   in_flight;
          },
          [=, this] {
            streams_.synchronize(in_flight);
            return compare(formula, in_flight);
          }};
}

}  // namespace framelane::bench
