// Not built for ThreadSanitizer: one thread publishes and reads.
#include <signal.h>
#include <sys/time.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <set>

#include "tests/capture/capture_fixture.hpp"

namespace framelane::testing {
namespace {

using CaptureFramesTest = CaptureTest;

TEST_F(CaptureFramesTest, AReaderSeesWhatWasWritten) {
  const Capture capture = open();
  const auto reader = join(capture);
  EXPECT_EQ(publish(capture, 7), 1);
  const auto buffer = reader->next();
  ASSERT_TRUE(buffer);
  EXPECT_EQ(buffer->size, kFrameSize);
  const auto frame = reader->frame(*buffer);
  EXPECT_TRUE(std::all_of(frame.begin(), frame.end(), [](std::uint8_t byte) { return byte == 7; }));
}

TEST_F(CaptureFramesTest, TheCaptureTimeStandsBehindTheFrame) {
  const Capture capture = open();
  const auto reader = join(capture);
  publish(capture, 0, 123'456'789'012);
  const auto stamp = reader->stamp(*reader->next());
  EXPECT_EQ(stamp.magic, FRAMELANE_CAPTURE_STAMP_MAGIC);
  EXPECT_EQ(stamp.capture_time_ns, 123'456'789'012);
  EXPECT_EQ(stamp.reserved, 0U);
}

TEST_F(CaptureFramesTest, TheStampHasTheLayoutOfTheContract) {
  const Capture capture = open();
  const auto reader = join(capture);
  publish(capture, 0, 0x1122334455667788);
  const auto buffer = reader->next();
  ASSERT_TRUE(buffer);
  const auto bytes = reader->area().subspan(buffer->offset + 1008, 32);  // 1003 rounded up to 8
  EXPECT_EQ(std::memcmp(bytes.data(), "flstamp1", 8), 0);
  const std::int64_t values[] = {1, 0x1122334455667788, 0};  // sequence, time, reserved
  EXPECT_EQ(std::memcmp(bytes.data() + 8, values, sizeof values), 0);
}

TEST_F(CaptureFramesTest, FramesAreNumberedFromOneAlsoWithoutReaders) {
  const Capture capture = open();
  EXPECT_EQ(publish(capture), 0);
  EXPECT_EQ(publish(capture), 0);
  const auto reader = join(capture);
  publish(capture);
  EXPECT_EQ(reader->stamp(*reader->next()).sequence, 3U);
}

TEST_F(CaptureFramesTest, FramesComeInTheOrderInWhichTheyArePublished) {
  const Capture capture = open();
  const auto reader = join(capture);
  for (std::uint8_t i = 1; i <= 20; ++i) {
    publish(capture, i);
    const auto buffer = reader->next();
    ASSERT_TRUE(buffer);
    EXPECT_EQ(reader->frame(*buffer)[0], i);
    EXPECT_EQ(reader->stamp(*buffer).sequence, i);
    reader->acknowledge(*buffer);
  }
}

TEST_F(CaptureFramesTest, FramesBeginAtPagesAndCanBeReadPastTheirEnd) {
  for (const std::size_t size :
       {std::size_t{1}, std::size_t{3968}, std::size_t{3969}, std::size_t{4096}}) {
    auto wanted = options(3);
    wanted.frame_size = size;
    const Capture capture = open(wanted);
    const auto reader = join(capture);
    std::uint64_t last = 0;
    for (int i = 0; i < 3; ++i) {
      void* frame = nullptr;
      ASSERT_EQ(framelane_capture_borrow(capture.get(), 0, &frame), 0);
      EXPECT_EQ(reinterpret_cast<std::uintptr_t>(frame) % 4096, 0U);
      framelane_capture_publish(capture.get(), frame, 0);
      const auto buffer = reader->next();
      ASSERT_TRUE(buffer);
      EXPECT_EQ(buffer->offset % 4096, 0U);
      last = std::max(last, buffer->offset);
    }
    EXPECT_EQ(reader->area_size() % 4096, 0U);
    EXPECT_GE(reader->area_size(), last + size + FRAMELANE_CAPTURE_READABLE) << size;
  }
}

TEST_F(CaptureFramesTest, SlotsTakeTurns) {
  const Capture capture = open(4);
  std::set<void*> slots;
  for (int i = 0; i < 4; ++i) {
    void* frame = nullptr;
    ASSERT_EQ(framelane_capture_borrow(capture.get(), 0, &frame), 0);
    framelane_capture_give_back(capture.get(), frame);
    slots.insert(frame);
  }
  EXPECT_EQ(slots.size(), 4U);
}

TEST_F(CaptureFramesTest, ASlotCanBePublishedAgainUntouched) {
  const Capture capture = open(2);
  const auto reader = join(capture);
  publish(capture, 1);
  publish(capture, 2);
  std::uint8_t expected = 1;
  for (int i = 0; i < 6; ++i) {
    const auto buffer = reader->next();
    ASSERT_TRUE(buffer);
    EXPECT_EQ(reader->frame(*buffer).back(), expected);
    expected = static_cast<std::uint8_t>(3 - expected);
    reader->acknowledge(*buffer);
    void* frame = nullptr;
    ASSERT_EQ(framelane_capture_borrow(capture.get(), 0, &frame), 0);
    EXPECT_EQ(framelane_capture_publish(capture.get(), frame, 0), 1);
  }
}

TEST_F(CaptureFramesTest, AFrameThatIsGivenBackReachesNobody) {
  const Capture capture = open(2);
  const auto reader = join(capture);
  void* frame = nullptr;
  ASSERT_EQ(framelane_capture_borrow(capture.get(), 0, &frame), 0);
  EXPECT_EQ(framelane_capture_give_back(capture.get(), frame), 0);
  EXPECT_FALSE(reader->has_something());
  EXPECT_EQ(counts(capture).published, 0U);
  EXPECT_EQ(counts(capture).slots_borrowed, 0);
}

TEST_F(CaptureFramesTest, WithoutAReaderAFrameIsCountedAndItsSlotIsFreeAgain) {
  const Capture capture = open(2);
  for (int i = 0; i < 5; ++i) EXPECT_EQ(publish(capture), 0);
  EXPECT_EQ(counts(capture).published, 5U);
  EXPECT_EQ(counts(capture).no_reader, 5U);
  EXPECT_EQ(counts(capture).no_slot, 0U);
}

TEST_F(CaptureFramesTest, WithoutAFreeSlotBorrowSaysWhoHoldsThemAndCounts) {
  const Capture capture = open(3);
  const auto reader = join(capture);
  publish(capture);
  publish(capture);
  void* frame = nullptr;
  ASSERT_EQ(framelane_capture_borrow(capture.get(), 0, &frame), 0);
  EXPECT_EQ(try_borrow(capture), -EAGAIN);
  const std::string said = framelane_capture_explain();
  EXPECT_NE(said.find("none of the 3 slots is free: the program holds 1, its 1 readers hold 2"),
            std::string::npos)
      << said;
  EXPECT_EQ(counts(capture).no_slot, 1U);
}

TEST_F(CaptureFramesTest, AnAcknowledgedSlotIsFreeAtOnce) {
  const Capture capture = open(2);
  const auto reader = join(capture);
  publish(capture);
  publish(capture);
  EXPECT_EQ(try_borrow(capture), -EAGAIN);
  reader->acknowledge(*reader->next());
  EXPECT_EQ(try_borrow(capture), 0);
}

TEST_F(CaptureFramesTest, OnlyABorrowedFrameCanBePublishedOrGivenBack) {
  const Capture capture = open(2);
  void* frame = nullptr;
  ASSERT_EQ(framelane_capture_borrow(capture.get(), 0, &frame), 0);
  auto* bytes = static_cast<std::uint8_t*>(frame);
  for (void* wrong : {static_cast<void*>(nullptr), static_cast<void*>(bytes + 1),
                      static_cast<void*>(bytes + 4096), static_cast<void*>(bytes - 4096),
                      static_cast<void*>(&frame)}) {
    EXPECT_EQ(framelane_capture_publish(capture.get(), wrong, 0), -EINVAL);
    EXPECT_EQ(framelane_capture_give_back(capture.get(), wrong), -EINVAL);
  }
  EXPECT_EQ(framelane_capture_publish(capture.get(), frame, 0), 0);
  EXPECT_EQ(framelane_capture_publish(capture.get(), frame, 0), -EINVAL);
}

TEST_F(CaptureFramesTest, ABorrowWaitsAsLongAsItWasTold) {
  const Capture capture = open(2);
  const auto reader = join(capture);
  publish(capture);
  publish(capture);
  const auto started = framelane_capture_now();
  void* frame = nullptr;
  EXPECT_EQ(framelane_capture_borrow(capture.get(), 30, &frame), -EAGAIN);
  EXPECT_GE(framelane_capture_now() - started, 30'000'000);
}

TEST_F(CaptureFramesTest, ASignalEndsAWait) {
  const Capture capture = open(2);
  const auto reader = join(capture);
  publish(capture);
  publish(capture);
  struct sigaction action = {};
  struct sigaction before = {};
  action.sa_handler = [](int) {};
  ASSERT_EQ(sigaction(SIGALRM, &action, &before), 0);
  // Again and again, since the first may come before the wait begins.
  const itimerval timer = {{0, 20'000}, {0, 20'000}};
  ASSERT_EQ(setitimer(ITIMER_REAL, &timer, nullptr), 0);
  void* frame = nullptr;
  EXPECT_EQ(framelane_capture_borrow(capture.get(), -1, &frame), -EINTR);
  const itimerval none = {};
  setitimer(ITIMER_REAL, &none, nullptr);
  sigaction(SIGALRM, &before, nullptr);
}

TEST_F(CaptureFramesTest, DrainWaitsForTheLastAcknowledgement) {
  const Capture capture = open(4);
  const auto reader = join(capture);
  publish(capture);
  publish(capture);
  EXPECT_EQ(framelane_capture_drain(capture.get(), 0), -EAGAIN);
  reader->acknowledge(*reader->next());
  EXPECT_EQ(framelane_capture_drain(capture.get(), 0), -EAGAIN);
  reader->acknowledge(*reader->next());
  EXPECT_EQ(framelane_capture_drain(capture.get(), 60'000), 0);
}

TEST_F(CaptureFramesTest, TheTimeNowIsThatOfTheSteadyClock) {
  const auto before = std::chrono::steady_clock::now().time_since_epoch();
  const std::chrono::nanoseconds now(framelane_capture_now());
  EXPECT_GE(now, before);
  EXPECT_LE(now, std::chrono::steady_clock::now().time_since_epoch());
}

}  // namespace
}  // namespace framelane::testing
