#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include "tests/capture/capture_fixture.hpp"

namespace framelane::testing {
namespace {

using CaptureThreadsTest = CaptureTest;

std::vector<void*> borrow_all(const Capture& capture, int slots) {
  std::vector<void*> frames(static_cast<std::size_t>(slots));
  for (auto& frame : frames) EXPECT_EQ(framelane_capture_borrow(capture.get(), 0, &frame), 0);
  return frames;
}

/// True if this thread of the process waits in the kernel.
bool sleeps(pid_t thread) {
  std::ifstream file("/proc/self/task/" + std::to_string(thread) + "/stat");
  std::string line;
  std::getline(file, line);
  return line.find(") S ") != std::string::npos;
}

TEST_F(CaptureThreadsTest, ABorrowWaitsForAFrameThatAnotherThreadGivesBack) {
  const Capture capture = open(2);
  const auto frames = borrow_all(capture, 2);
  void* got = nullptr;
  std::thread waits([&] { EXPECT_EQ(framelane_capture_borrow(capture.get(), -1, &got), 0); });
  EXPECT_EQ(framelane_capture_give_back(capture.get(), frames[1]), 0);
  waits.join();
  EXPECT_EQ(got, frames[1]);
}

TEST_F(CaptureThreadsTest, ABorrowWaitsForAnAcknowledgement) {
  const Capture capture = open(2);
  const auto reader = join(capture);
  publish(capture);
  publish(capture);
  void* got = nullptr;
  std::thread waits([&] { EXPECT_EQ(framelane_capture_borrow(capture.get(), -1, &got), 0); });
  reader->acknowledge(*reader->next());
  waits.join();
  EXPECT_NE(got, nullptr);
}

TEST_F(CaptureThreadsTest, EveryThreadThatWaitsGetsAFrameWhenThereAreEnough) {
  for (int round = 0; round < 50; ++round) {
    std::filesystem::remove(path);
    const Capture capture = open(4);
    const auto frames = borrow_all(capture, 4);
    std::vector<std::thread> threads;
    for (int i = 0; i < 4; ++i) {
      threads.emplace_back([&] {
        void* frame = nullptr;
        EXPECT_EQ(framelane_capture_borrow(capture.get(), -1, &frame), 0);
      });
    }
    // Without a reader the slot is free again at once.
    for (void* frame : frames) EXPECT_EQ(framelane_capture_publish(capture.get(), frame, 0), 0);
    for (auto& thread : threads) thread.join();
    EXPECT_EQ(counts(capture).slots_borrowed, 4);
  }
}

TEST_F(CaptureThreadsTest, WaitersForReadersAndForSlotsDoNotTakeEachOthersWakeUps) {
  const Capture capture = open(2);
  const auto frames = borrow_all(capture, 2);
  std::vector<std::thread> threads;
  for (int i = 1; i <= 3; ++i) {
    threads.emplace_back([&, i] { EXPECT_GE(framelane_capture_readers(capture.get(), i, -1), i); });
  }
  threads.emplace_back([&] {
    void* frame = nullptr;
    EXPECT_EQ(framelane_capture_borrow(capture.get(), -1, &frame), 0);
  });
  framelane_capture_give_back(capture.get(), frames[0]);
  threads.back().join();
  std::vector<std::unique_ptr<RawReader>> readers;
  for (int i = 0; i < 3; ++i) readers.push_back(std::make_unique<RawReader>(path));
  for (int i = 0; i < 3; ++i) threads[static_cast<std::size_t>(i)].join();
}

TEST_F(CaptureThreadsTest, ManyThreadsPublishWhileReadersComeAndGo) {
  const Capture capture = open(8);
  constexpr int kThreads = 3;
  constexpr int kFrames = 400;
  std::atomic<bool> done{false};
  std::vector<std::thread> publishers;
  for (int i = 0; i < kThreads; ++i) {
    publishers.emplace_back([&] {
      for (int k = 0; k < kFrames; ++k) {
        void* frame = nullptr;
        ASSERT_EQ(framelane_capture_borrow(capture.get(), 60'000, &frame), 0)
            << framelane_capture_explain();
        if (k % 7 == 0) {
          EXPECT_EQ(framelane_capture_give_back(capture.get(), frame), 0);
          ASSERT_EQ(framelane_capture_borrow(capture.get(), 60'000, &frame), 0);
        }
        EXPECT_GE(framelane_capture_publish(capture.get(), frame, framelane_capture_now()), 0);
      }
    });
  }
  std::vector<std::thread> readers;
  for (int i = 0; i < 2; ++i) {
    readers.emplace_back([&, i] {
      while (!done) {
        RawReader reader(path);
        if (!reader.is_connected() || !reader.read_area()) continue;
        std::uint64_t last = 0;
        for (int k = 0; k < 20 * (i + 1) && !done; ++k) {
          if (!reader.has_something()) continue;
          const auto buffer = reader.next();
          if (!buffer) break;
          const auto stamp = reader.stamp(*buffer);
          EXPECT_EQ(stamp.magic, FRAMELANE_CAPTURE_STAMP_MAGIC);
          EXPECT_GT(stamp.sequence, last);
          last = stamp.sequence;
          reader.acknowledge(*buffer);
        }
      }
    });
  }
  std::atomic<bool> readers_ended{false};
  std::thread serves([&] {  // until the last reader has ended: it may wait for its area
    while (!readers_ended) {
      EXPECT_LE(counts(capture).slots_held, 8);
      framelane_capture_drain(capture.get(), 1);
      framelane_capture_readers(capture.get(), 1, 1);
    }
  });
  for (auto& publisher : publishers) publisher.join();
  done = true;
  for (auto& reader : readers) reader.join();
  readers_ended = true;
  serves.join();
  EXPECT_EQ(counts(capture).published, static_cast<std::uint64_t>(kThreads * kFrames));
}

/// It sleeps without a deadline while the reader that holds all slots is alone. Then another thread
/// accepts a second reader.
TEST_F(CaptureThreadsTest, ABorrowThatSleepsSeesThatAReaderMayNowBeCutOff) {
  for (int round = 0; round < 30; ++round) {
    std::filesystem::remove(path);
    auto wanted = options(2);
    wanted.reader_timeout_ms = 30;
    const Capture capture = open(wanted);
    const auto hangs = join(capture);
    publish(capture);
    publish(capture);
    std::atomic<pid_t> id{0};
    std::thread waits([&] {
      id = ::gettid();
      void* frame = nullptr;
      EXPECT_EQ(framelane_capture_borrow(capture.get(), 20'000, &frame), 0) << round;
    });
    while (id == 0 || !sleeps(id)) {
    }
    std::atomic<bool> done{false};
    std::thread accepts([&] {
      while (!done) framelane_capture_readers(capture.get(), 0, 0);
    });
    const RawReader second(path);
    waits.join();
    done = true;
    accepts.join();
    EXPECT_EQ(counts(capture).readers_hung, 1u);
  }
}

TEST_F(CaptureThreadsTest, EachThreadHasItsOwnExplanation) {
  const Capture capture = open(2);
  EXPECT_EQ(framelane_capture_give_back(capture.get(), nullptr), -EINVAL);
  const std::string mine = framelane_capture_explain();
  std::string others = "not asked";
  std::thread thread([&] { others = framelane_capture_explain(); });
  thread.join();
  EXPECT_NE(mine, "");
  EXPECT_EQ(others, "");
}

}  // namespace
}  // namespace framelane::testing
