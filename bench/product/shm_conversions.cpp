// Converts frames in a producer's shared memory as fast as the processors can: what feeds that read
// it could reach at best on the CPU. One thread for each processor, as the CPU's stage has.
//
//     framelane_shm_conversions SOCKET WIDTH HEIGHT SECONDS
//
// The frames are BGRA, and NV12 is made of them. Prints the frames a second.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <memory>
#include <stdexcept>
#include <thread>
#include <vector>

#include "bench/product/shm_frames.hpp"
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
  if (width < 1 || height < 1) throw std::invalid_argument("WIDTH and HEIGHT are numbers from 1");
  const std::size_t pitch = static_cast<std::size_t>(width) * 4;
  const std::vector<const std::uint8_t*> frames =
      frames_in(*frame->area, pitch * static_cast<std::size_t>(height));

  const std::unique_ptr<const Converter> converter =
      Converter::make({.width = width,
                       .height = height,
                       .source = PixelFormat::kBgra,
                       .source_color = {.matrix = Matrix::kRgb, .range = Range::kFull},
                       .target = PixelFormat::kNv12,
                       .target_color = {}});
  const int thread_count = processors();
  const int targets_each = std::max(1, 8 / thread_count);  // 8, as a feed's ring has jobs
  FramePool pool;
  std::atomic<std::size_t> next = 0;
  std::atomic<bool> stop = false;
  std::vector<std::thread> threads;
  const auto convert = [&] {
    std::vector<PooledImage> targets;
    for (int i = 0; i < targets_each; ++i) {
      targets.push_back(allocate_image(pool, PixelFormat::kNv12, width, height));
    }
    for (std::size_t made = 0; !stop; ++made) {
      ConstImageView source;
      source.format = PixelFormat::kBgra;
      source.width = width;
      source.height = height;
      source.planes[0] = {frames[next++ % frames.size()], static_cast<std::ptrdiff_t>(pitch)};
      converter->run(source, targets[made % targets.size()].image, 0, height);
    }
  };
  for (int i = 0; i < thread_count; ++i) threads.emplace_back(convert);
  std::this_thread::sleep_for(std::chrono::milliseconds(500));
  const std::size_t before = next;
  const Clock::time_point start = Clock::now();
  std::this_thread::sleep_for(std::chrono::duration<double>(seconds));
  const double passed = std::chrono::duration<double>(Clock::now() - start).count();
  const std::size_t converted = next - before;
  stop = true;
  for (std::thread& thread : threads) thread.join();
  connection->give_back(*frame);
  return static_cast<double>(converted) / passed;
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
