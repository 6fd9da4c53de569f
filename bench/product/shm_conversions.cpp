// Converts frames in a producer's shared memory as fast as the processors can: what feeds that read
// it could reach at best on the CPU. One thread for each processor, as the CPU's stage has.
//
//     framelane_shm_conversions SOCKET WIDTH HEIGHT SECONDS
//
// The frames are BGRA, and NV12 is made of them. Prints the frames a second.
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <memory>
#include <thread>
#include <vector>

#include "kernels/converter.hpp"
#include "pipeline/base/processors.hpp"
#include "pipeline/frames/frame_pool.hpp"
#include "pipeline/source/shm_connection.hpp"

namespace framelane {
namespace {

using Clock = std::chrono::steady_clock;

double measure(const char* socket, int width, int height, double seconds) {
  const auto connection = ShmConnection::open(socket, SIZE_MAX, std::chrono::seconds(10), {});
  const auto frame = connection->next();
  const SharedArea& area = *frame->area;
  const std::size_t pitch = static_cast<std::size_t>(width) * 4;
  const std::size_t slot = (pitch * static_cast<std::size_t>(height) + 4095 + 128) / 4096 * 4096;
  const std::size_t slots = area.bytes() / slot;

  const std::unique_ptr<const Converter> converter =
      Converter::make({.width = width,
                       .height = height,
                       .source = PixelFormat::kBgra,
                       .source_color = {.matrix = Matrix::kRgb, .range = Range::kFull},
                       .target = PixelFormat::kNv12,
                       .target_color = {}});
  constexpr std::size_t kTargets = 8;  // as a feed's ring has jobs
  FramePool pool;
  std::vector<PooledImage> targets;
  for (std::size_t i = 0; i < kTargets; ++i) {
    targets.push_back(allocate_image(pool, PixelFormat::kNv12, width, height));
  }
  std::atomic<std::size_t> next = 0;
  std::atomic<bool> stop = false;
  std::vector<std::thread> threads;
  const auto convert = [&] {
    while (!stop) {
      const std::size_t i = next++;
      ConstImageView source;
      source.format = PixelFormat::kBgra;
      source.width = width;
      source.height = height;
      source.planes[0] = {area.data() + i % slots * slot, static_cast<std::ptrdiff_t>(pitch)};
      converter->run(source, targets[i % kTargets].image, 0, height);
    }
  };
  for (int i = 0; i < processors(); ++i) threads.emplace_back(convert);
  std::this_thread::sleep_for(std::chrono::milliseconds(500));
  const std::size_t before = next;
  const Clock::time_point start = Clock::now();
  std::this_thread::sleep_for(std::chrono::duration<double>(seconds));
  const double passed = std::chrono::duration<double>(Clock::now() - start).count();
  const std::size_t frames = next - before;
  stop = true;
  for (std::thread& thread : threads) thread.join();
  connection->give_back(*frame);
  return static_cast<double>(frames) / passed;
}

}  // namespace
}  // namespace framelane

int main(int count, char** arguments) {
  if (count != 5) {
    std::fprintf(stderr, "usage: %s SOCKET WIDTH HEIGHT SECONDS\n", arguments[0]);
    return 2;
  }
  try {
    std::printf("%.1f frames/s\n",
                framelane::measure(arguments[1], std::atoi(arguments[2]), std::atoi(arguments[3]),
                                   std::atof(arguments[4])));
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s: %s\n", arguments[0], error.what());
    return 1;
  }
  return 0;
}
