// Not built for ThreadSanitizer: one thread serves and misbehaves.
#include <array>
#include <cerrno>
#include <cstring>
#include <random>
#include <vector>

#include "tests/capture/capture_fixture.hpp"

namespace framelane::testing {
namespace {

using Packet = std::array<std::uint8_t, 24>;

Packet packet_of(std::uint32_t type, std::int32_t area, std::uint64_t offset,
                 std::uint64_t last = 0) {
  Packet packet;
  std::memcpy(packet.data(), &type, 4);
  std::memcpy(packet.data() + 4, &area, 4);
  std::memcpy(packet.data() + 8, &offset, 8);
  std::memcpy(packet.data() + 16, &last, 8);
  return packet;
}

class CaptureHostileReaderTest : public CaptureTest {
 protected:
  /// A reader to which slot 0 was announced sends `packets`. It must be disconnected as wrong, with
  /// the slot free.
  void expect_disconnected_for(const std::vector<Packet>& packets) {
    const Capture capture = open(2);
    const auto reader = join(capture);
    ASSERT_EQ(publish(capture), 1);
    for (const auto& packet : packets) ASSERT_TRUE(reader->send_bytes(packet));
    EXPECT_EQ(framelane_capture_readers(capture.get(), 0, 0), 0);
    EXPECT_EQ(counts(capture).readers_wrong, 1U);
    EXPECT_EQ(counts(capture).slots_held, 0);
    EXPECT_EQ(reader->read_to_end(), 1);
  }
};

TEST_F(CaptureHostileReaderTest, AcknowledgingTwiceEndsTheConnection) {
  expect_disconnected_for({packet_of(4, 1, 0), packet_of(4, 1, 0)});
}

TEST_F(CaptureHostileReaderTest, AcknowledgingASlotThatWasNotAnnouncedEndsTheConnection) {
  expect_disconnected_for({packet_of(4, 1, 4096)});
}

TEST_F(CaptureHostileReaderTest, AcknowledgingInAnotherAreaEndsTheConnection) {
  expect_disconnected_for({packet_of(4, 2, 0)});
}

TEST_F(CaptureHostileReaderTest, AcknowledgingTheMiddleOfASlotEndsTheConnection) {
  expect_disconnected_for({packet_of(4, 1, 8)});
}

TEST_F(CaptureHostileReaderTest, AcknowledgingBehindTheAreaEndsTheConnection) {
  expect_disconnected_for({packet_of(4, 1, 2 * 4096)});
  expect_disconnected_for({packet_of(4, 1, 64 * 4096)});
  expect_disconnected_for({packet_of(4, 1, UINT64_MAX - 4095)});
}

TEST_F(CaptureHostileReaderTest, APacketOfAProducerEndsTheConnection) {
  for (const std::uint32_t type : {0U, 1U, 2U, 3U, 5U, 0x10004U}) {
    expect_disconnected_for({packet_of(type, 1, 0, 1003)});
  }
}

TEST_F(CaptureHostileReaderTest, AnAcknowledgementInPiecesIsUnderstood) {
  const Capture capture = open(2);
  const auto reader = join(capture);
  publish(capture);
  publish(capture);
  const auto packet = packet_of(4, 1, 0);
  for (std::size_t i = 0; i < packet.size(); ++i) {
    EXPECT_EQ(try_borrow(capture), -EAGAIN) << i;
    ASSERT_TRUE(reader->send_bytes({&packet[i], 1}));
  }
  EXPECT_EQ(try_borrow(capture), 0);
}

TEST_F(CaptureHostileReaderTest,
       AReaderThatAcknowledgesWithoutReadingIsDisconnectedWhenItsQueueIsFull) {
  const Capture capture = open(2);
  const auto reader = join(capture);
  for (int i = 0; i < 100'000 && counts(capture).readers_wrong == 0; ++i) {
    publish(capture);
    reader->send_bytes(packet_of(4, 1, static_cast<std::uint64_t>(i % 2) * 4096));
  }
  EXPECT_EQ(counts(capture).readers_wrong, 1U);
  EXPECT_EQ(publish(capture), 0);
}

TEST_F(CaptureHostileReaderTest, AnnouncingToAReaderThatHasDiedRaisesNoSignal) {
  const Capture capture = open(2);
  for (int i = 0; i < 20; ++i) {
    const auto reader = join(capture);
    reader->leave();
    EXPECT_EQ(publish(capture), 0);  // SIGPIPE would end the test
  }
  EXPECT_EQ(counts(capture).readers_wrong, 0U);
}

TEST_F(CaptureHostileReaderTest, ConnectionsThatLeaveAtOnceDoNotKeepAReaderOut) {
  const Capture capture = open(4);
  for (int i = 0; i < 5; ++i) {
    for (int k = 0; k < 10; ++k) RawReader(path).leave();
    const auto reader = join(capture);
    EXPECT_EQ(publish(capture), 1);
    reader->leave();
    while (framelane_capture_readers(capture.get(), 0, 0) > 0) {
    }
  }
}

TEST_F(CaptureHostileReaderTest, RandomBytesDisturbNobodyElse) {
  const Capture capture = open(8);
  const auto good = join(capture);
  std::mt19937 random(15);
  const auto pick = [&random](auto... values) {
    const std::uint64_t all[] = {static_cast<std::uint64_t>(values)...};
    return all[random() % sizeof...(values)];
  };
  for (std::uint8_t round = 1; round < 250; ++round) {
    RawReader bad(path);
    ASSERT_TRUE(bad.is_connected());
    framelane_capture_readers(capture.get(), 2, 60'000);
    if (round % 2) {
      EXPECT_TRUE(bad.read_area());
    }
    for (unsigned sent = 0; sent < 1 + random() % 4; ++sent) {
      std::vector<std::uint8_t> bytes(1 + random() % 400);
      for (auto& byte : bytes) byte = static_cast<std::uint8_t>(random());
      if (round % 3) {  // nearly right
        const auto packet = packet_of(static_cast<std::uint32_t>(pick(4, 4, 4, 3, 1)),
                                      static_cast<std::int32_t>(pick(1, 1, 1, 0, 2)),
                                      pick(0, 4096, 8192, 4095, 8 * 4096, UINT64_MAX), random());
        bytes.assign(packet.begin(), packet.end() - static_cast<std::ptrdiff_t>(pick(0, 0, 0, 1)));
      }
      bad.send_bytes(bytes);
      ASSERT_GE(publish(capture, round), 1);
      const auto buffer = good->next();
      ASSERT_TRUE(buffer);
      EXPECT_EQ(good->frame(*buffer)[0], round);
      good->acknowledge(*buffer);
    }
    bad.leave();
    while (framelane_capture_readers(capture.get(), 0, 0) > 1) {
    }
  }
  EXPECT_GT(counts(capture).readers_wrong, 50U);
  EXPECT_EQ(counts(capture).readers, 1);
  EXPECT_EQ(counts(capture).slots_held, 0);
}

}  // namespace
}  // namespace framelane::testing
