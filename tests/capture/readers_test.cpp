// Not built for ThreadSanitizer: one thread serves and reads.
#include <cerrno>
#include <vector>

#include "tests/capture/capture_fixture.hpp"

namespace framelane::testing {
namespace {

using CaptureReadersTest = CaptureTest;

TEST_F(CaptureReadersTest, EveryReaderGetsEveryFrame) {
  const Capture capture = open(4);
  const auto one = join(capture);
  const auto two = join(capture);
  EXPECT_EQ(publish(capture, 9), 2);
  EXPECT_EQ(one->frame(*one->next())[0], 9);
  EXPECT_EQ(two->frame(*two->next())[0], 9);
  EXPECT_EQ(counts(capture).announced, 2U);
}

TEST_F(CaptureReadersTest, ASlotIsFreeWhenAllItsReadersHaveAcknowledged) {
  auto wanted = options(2);
  wanted.lockstep = 1;
  const Capture capture = open(wanted);
  const auto one = join(capture);
  const auto two = join(capture);
  publish(capture);
  publish(capture);
  one->acknowledge(*one->next());
  EXPECT_EQ(try_borrow(capture), -EAGAIN);
  two->acknowledge(*two->next());
  EXPECT_EQ(try_borrow(capture), 0);
}

TEST_F(CaptureReadersTest, AReaderThatLeavesGivesItsSlotsBack) {
  const Capture capture = open(2);
  auto reader = join(capture);
  publish(capture);
  publish(capture);
  EXPECT_EQ(try_borrow(capture), -EAGAIN);
  reader->leave();
  EXPECT_EQ(try_borrow(capture), 0);
  EXPECT_EQ(counts(capture).readers, 0);
  EXPECT_EQ(counts(capture).readers_wrong, 0U);
}

TEST_F(CaptureReadersTest, AReaderThatLeavesDoesNotFreeWhatOthersHold) {
  auto wanted = options(2);
  wanted.lockstep = 1;
  const Capture capture = open(wanted);
  auto one = join(capture);
  const auto two = join(capture);
  publish(capture, 1);
  publish(capture, 2);
  one->leave();
  EXPECT_EQ(try_borrow(capture), -EAGAIN);
  EXPECT_EQ(two->frame(*two->next())[0], 1);
}

TEST_F(CaptureReadersTest, AReaderThatIsAloneMayHoldAllSlots) {
  const Capture capture = open(4);
  const auto reader = join(capture);
  for (int i = 0; i < 4; ++i) EXPECT_EQ(publish(capture), 1);
  EXPECT_EQ(counts(capture).slots_held, 4);
}

TEST_F(CaptureReadersTest, ASlowReaderMissesFramesAloneAndTheOtherGetsAll) {
  const Capture capture = open(7);
  const auto slow = join(capture);
  const auto quick = join(capture);
  for (std::uint8_t i = 1; i <= 20; ++i) {
    publish(capture, i);
    const auto buffer = quick->next();
    ASSERT_TRUE(buffer);
    EXPECT_EQ(quick->frame(*buffer)[0], i);
    quick->acknowledge(*buffer);
  }
  EXPECT_EQ(counts(capture).no_slot, 0U);
  EXPECT_EQ(counts(capture).left_out, 17U);  // its share of 7 slots is 3
}

TEST_F(CaptureReadersTest,
       AReaderThatWasLeftOutGoesOnWhenItGivesAFrameBackAndSeesTheGapInTheNumbers) {
  const Capture capture = open(4);
  const auto slow = join(capture);  // its share is 1
  const auto quick = join(capture);
  for (int i = 0; i < 3; ++i) {
    publish(capture);
    quick->acknowledge(*quick->next());
  }
  const auto first = slow->next();
  EXPECT_EQ(slow->stamp(*first).sequence, 1U);
  slow->acknowledge(*first);
  EXPECT_EQ(publish(capture), 2);
  EXPECT_EQ(slow->stamp(*slow->next()).sequence, 4U);
}

TEST_F(CaptureReadersTest, InLockstepNoReaderMissesAFrame) {
  auto wanted = options(3);
  wanted.lockstep = 1;
  const Capture capture = open(wanted);
  const auto slow = join(capture);
  const auto quick = join(capture);
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(publish(capture), 2);
    quick->acknowledge(*quick->next());
  }
  EXPECT_EQ(try_borrow(capture), -EAGAIN);
  EXPECT_EQ(counts(capture).left_out, 0U);
}

TEST_F(CaptureReadersTest, AReaderThatHangsIsDisconnectedWhenItKeepsAllSlotsFromOthers) {
  auto wanted = options(2);
  wanted.reader_timeout_ms = 1;
  const Capture capture = open(wanted);
  const auto hung = join(capture);
  publish(capture);
  publish(capture);
  const auto other = join(capture);
  void* frame = nullptr;
  ASSERT_EQ(framelane_capture_borrow(capture.get(), 60'000, &frame), 0);
  EXPECT_EQ(framelane_capture_publish(capture.get(), frame, 0), 1);
  EXPECT_TRUE(other->next());
  EXPECT_EQ(hung->read_to_end(), 2);
  EXPECT_EQ(counts(capture).readers_hung, 1U);
}

TEST_F(CaptureReadersTest, AReaderThatHangsAloneIsNotDisconnected) {
  auto wanted = options(2);
  wanted.reader_timeout_ms = 1;
  const Capture capture = open(wanted);
  const auto reader = join(capture);
  publish(capture);
  publish(capture);
  void* frame = nullptr;
  EXPECT_EQ(framelane_capture_borrow(capture.get(), 20, &frame), -EAGAIN);
  EXPECT_EQ(counts(capture).readers, 1);
}

TEST_F(CaptureReadersTest, OfTwoThatHangOneStays) {
  auto wanted = options(2);
  wanted.reader_timeout_ms = 1;
  wanted.lockstep = 1;
  const Capture capture = open(wanted);
  const auto one = join(capture);
  const auto two = join(capture);
  publish(capture);
  publish(capture);
  void* frame = nullptr;
  EXPECT_EQ(framelane_capture_borrow(capture.get(), 20, &frame), -EAGAIN);
  EXPECT_EQ(counts(capture).readers_hung, 1U);
  EXPECT_EQ(counts(capture).readers, 1);
}

TEST_F(CaptureReadersTest, AReaderThatHangsWithoutBeingInTheWayStays) {
  auto wanted = options(5);
  wanted.reader_timeout_ms = 1;
  const Capture capture = open(wanted);
  const auto hung = join(capture);
  const auto quick = join(capture);
  const auto until = framelane_capture_now() + 20'000'000;
  do {
    publish(capture);
    quick->acknowledge(*quick->next());
  } while (framelane_capture_now() < until);
  EXPECT_EQ(counts(capture).readers, 2);
}

TEST_F(CaptureReadersTest, WithoutATimeoutAReaderIsNeverDisconnected) {
  auto wanted = options(2);
  wanted.reader_timeout_ms = -1;
  const Capture capture = open(wanted);
  const auto hung = join(capture);
  publish(capture);
  publish(capture);
  const auto other = join(capture);
  void* frame = nullptr;
  EXPECT_EQ(framelane_capture_borrow(capture.get(), 20, &frame), -EAGAIN);
  EXPECT_EQ(counts(capture).readers, 2);
}

TEST_F(CaptureReadersTest, AReaderThatComesLaterGetsTheFramesFromThenOn) {
  const Capture capture = open(4);
  const auto early = join(capture);
  publish(capture, 1);
  const auto late = join(capture);
  publish(capture, 2);
  EXPECT_EQ(late->frame(*late->next())[0], 2);
}

TEST_F(CaptureReadersTest, ReadersCanComeAndGoForEver) {
  const Capture capture = open(3);
  for (int i = 0; i < 200; ++i) {
    auto reader = join(capture);
    EXPECT_EQ(publish(capture), 1);
    if (i % 2) reader->next();
    reader->leave();
    while (framelane_capture_readers(capture.get(), 0, 0) > 0) {
    }
  }
  EXPECT_EQ(counts(capture).readers_accepted, 200U);
  EXPECT_EQ(counts(capture).slots_held, 0);
}

TEST_F(CaptureReadersTest, MoreThanSixteenReadersAreRefused) {
  const Capture capture = open(4);
  std::vector<std::unique_ptr<RawReader>> readers;
  for (int i = 0; i < FRAMELANE_CAPTURE_MAX_READERS; ++i) readers.push_back(join(capture));
  RawReader one_more(path);
  while (counts(capture).readers_refused == 0) framelane_capture_readers(capture.get(), 0, 0);
  EXPECT_FALSE(one_more.read_area());
  EXPECT_EQ(publish(capture), FRAMELANE_CAPTURE_MAX_READERS);
}

TEST_F(CaptureReadersTest, WaitingForReadersThatDoNotComeEndsInTime) {
  const Capture capture = open(4);
  const auto reader = join(capture);
  EXPECT_EQ(framelane_capture_readers(capture.get(), 2, 20), -EAGAIN);
  const std::string said = framelane_capture_explain();
  EXPECT_NE(said.find("1 readers are connected, 2 were waited for"), std::string::npos) << said;
}

TEST_F(CaptureReadersTest, ClosingEndsTheConnectionsAndTheReadersKeepTheirMemory) {
  Capture capture = open(4);
  const auto reader = join(capture);
  publish(capture, 5);
  capture.reset();
  const auto buffer = reader->next();
  ASSERT_TRUE(buffer);
  EXPECT_EQ(reader->frame(*buffer)[0], 5);
  EXPECT_FALSE(reader->next());
}

}  // namespace
}  // namespace framelane::testing
