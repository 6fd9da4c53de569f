#include "pipeline/frames/frame_pool.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <future>
#include <thread>

#include "pipeline/base/failure.hpp"
#include "tests/pipeline/frames/held_registrar.hpp"

namespace framelane {
namespace {

TEST(FramePoolTest, ReturnedBufferIsUsedAgain) {
  FramePool pool;
  const std::uint8_t* first = pool.get(1 << 20).get()->data;
  EXPECT_EQ(pool.get(1 << 20).get()->data, first);
}

TEST(FramePoolTest, GrowsWhileBuffersAreHeld) {
  FramePool pool;
  const BufferRef a = pool.get(4096);
  const BufferRef b = pool.get(4096);
  EXPECT_NE(a.get()->data, b.get()->data);
}

TEST(FramePoolTest, KnowsItsOwnMemory) {
  FramePool pool;
  const BufferRef buffer = pool.get(4096);
  const std::uint8_t other = 0;
  EXPECT_TRUE(pool.owns(buffer.get()->data));
  EXPECT_TRUE(pool.owns(buffer.get()->data + 4095));
  EXPECT_FALSE(pool.owns(&other));
}

TEST(FramePoolTest, BufferOutlivesThePool) {
  BufferRef buffer;
  {
    FramePool pool;
    buffer = pool.get(4096);
  }
  buffer.get()->data[4095] = 1;
}

TEST(FramePoolTest, AnotherSizeFreesTheOldBuffers) {
  const std::size_t before = host_memory_bytes();
  FramePool pool;
  pool.get(1 << 20);
  pool.get(8 << 20);
  EXPECT_EQ(host_memory_bytes() - before, std::size_t{8 << 20});
}

TEST(FramePoolTest, SlightlySmallerSizeKeepsTheBuffers) {
  FramePool pool;
  const std::uint8_t* first = pool.get(1 << 20).get()->data;
  EXPECT_EQ(pool.get((1 << 20) - 100).get()->data, first);
}

TEST(FramePoolTest, LeakIsRefusedByName) {
  FramePool pool;
  std::vector<BufferRef> held;
  for (int i = 0; i < FramePool::kMaxBuffers; ++i) held.push_back(pool.get(4096));
  try {
    pool.get(4096);
    FAIL() << "one buffer too many";
  } catch (const FeedError& error) {
    EXPECT_EQ(error.code(), FeedFault::kMemory);
    EXPECT_NE(std::string(error.what()).find("does not give them back"), std::string::npos);
  }
  held.pop_back();
  EXPECT_TRUE(pool.get(4096));
}

TEST(FramePoolTest, ImpossibleSizeIsRefusedWithTheSize) {
  FramePool pool;
  try {
    pool.get(std::size_t{1} << 60);
    FAIL() << "an exbibyte";
  } catch (const FeedError& error) {
    EXPECT_NE(std::string(error.what()).find("1152921504606846976"), std::string::npos);
  }
}

TEST(FramePoolTest, ImagePlanesFollowEachOtherOnAlignedRows) {
  FramePool pool;
  const PooledImage pooled = allocate_image(pool, PixelFormat::kI420, 641, 479);
  const ImageView& image = pooled.image;
  EXPECT_EQ(image.planes[0].pitch, 704);
  EXPECT_EQ(image.planes[1].pitch, 384);
  EXPECT_EQ(image.planes[1].data - image.planes[0].data, 704 * 479);
  EXPECT_EQ(image.planes[2].data - image.planes[1].data, 384 * 240);
}

TEST(FramePoolTest, ABufferInTheMakingHoldsUpNoOther) {
  testing::HeldRegistrar gpu;
  FramePool pool;
  BufferRef buffer = pool.get(4096);
  const std::uint8_t* const data = buffer.get()->data;
  gpu.hold();
  auto made = std::async(std::launch::async, [&pool] { return pool.get(4096); });
  while (gpu.waiting() == 0) std::this_thread::yield();
  auto others = std::async(std::launch::async, [&] {
    EXPECT_TRUE(pool.owns(data));
    buffer = {};
    EXPECT_EQ(pool.get(4096).get()->data, data);
  });
  EXPECT_EQ(others.wait_for(std::chrono::seconds(20)), std::future_status::ready);
  gpu.release();
  EXPECT_TRUE(made.get());
}

// Otherwise a pool that is one buffer short would map, register and unmap memory for every frame.
TEST(FramePoolTest, ABufferThatIsNotNeededAnyMoreWhenItIsMadeJoinsThePool) {
  testing::HeldRegistrar gpu;
  FramePool pool;
  BufferRef buffer = pool.get(1 << 20);
  const std::size_t one = host_memory_bytes();
  gpu.hold();
  auto made = std::async(std::launch::async, [&pool] { return pool.get(1 << 20); });
  while (gpu.waiting() == 0) std::this_thread::yield();
  buffer = {};  // comes back while the next is made
  gpu.release();
  const BufferRef next = made.get();
  EXPECT_EQ(host_memory_bytes(), one + (1 << 20));
}

TEST(FramePoolTest, ThreadsShareIt) {
  FramePool pool;
  std::vector<std::jthread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&pool] {
      for (int n = 0; n < 500; ++n) pool.get(4096 + (n % 3) * 8192).get()->data[0] = 1;
    });
  }
}

}  // namespace
}  // namespace framelane
