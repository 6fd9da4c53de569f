// Not built for ThreadSanitizer: what it tests has one thread.
#include "pipeline/source/packet_account.hpp"

#include <gtest/gtest.h>

namespace framelane {
namespace {

using Expect = PacketAccount::Expect;

class PacketAccountTest : public ::testing::Test {
 protected:
  void send(int packets, Expect expect = Expect::kFrame) {
    for (int i = 0; i < packets; ++i) account.packet_sent(expect);
  }
  void receive(std::int64_t number, bool corrupt = false) {
    account.frame_received(number, corrupt);
  }
  /// A packet with its frame: a decoder without delay.
  void decode(int packets) {
    for (int i = 0; i < packets; ++i) receive(account.packet_sent(Expect::kFrame));
  }
  void end() { account.account_up_to(account.last_packet()); }
  std::uint64_t faults(DecodeFault fault) const { return stats.decode_faults[index_of(fault)]; }
  std::uint64_t corrupt() const { return faults(DecodeFault::kCorrupt); }

  FeedStats stats{"feed", {}, {}, 1};
  int told = 0;
  PacketAccount account{stats, [this] { ++told; }};
};

TEST_F(PacketAccountTest, PacketsAreNumberedFromOne) {
  EXPECT_EQ(account.last_packet(), 0);
  EXPECT_EQ(account.packet_sent(Expect::kFrame), 1);
  EXPECT_EQ(account.packet_sent(Expect::kLeftOut), 2);
  EXPECT_EQ(account.last_packet(), 2);
}

TEST_F(PacketAccountTest, PacketsWithFramesDoNotCount) {
  decode(1000);
  end();
  EXPECT_EQ(corrupt(), 0u);
  EXPECT_EQ(told, 0);
}

TEST_F(PacketAccountTest, FramesMayComeInAnotherOrder) {
  send(4);
  for (const std::int64_t number : {1, 4, 2, 3}) receive(number);
  end();
  EXPECT_EQ(corrupt(), 0u);
}

TEST_F(PacketAccountTest, EveryPacketBeforeTheFirstFrameCounts) {
  send(5);
  decode(3);
  end();
  EXPECT_EQ(corrupt(), 5u);
}

TEST_F(PacketAccountTest, ASecondFieldDoesNotCount) {
  for (int i = 0; i < 10; ++i) {
    decode(1);
    send(1);
  }
  end();
  EXPECT_EQ(corrupt(), 0u);
}

TEST_F(PacketAccountTest, OfSeveralPacketsWithoutAFrameOneMayBeASecondField) {
  decode(1);
  send(4);
  decode(1);
  end();
  EXPECT_EQ(corrupt(), 3u);
}

TEST_F(PacketAccountTest, APacketIsUndecidedWhileItsFrameMayBeReordered) {
  send(2);
  decode(32);  // of packets 3 to 34
  EXPECT_EQ(corrupt(), 2u);
  receive(1);  // too late: taken for a frame that comes twice
  EXPECT_EQ(corrupt(), 2u);
}

TEST_F(PacketAccountTest, ThirtyOnePacketsLaterItsFrameMayStillCome) {
  send(1);
  decode(31);
  EXPECT_EQ(corrupt(), 0u);
  receive(1);
  end();
  EXPECT_EQ(corrupt(), 0u);
}

TEST_F(PacketAccountTest, PacketsWithoutAnyFrameAreDecidedWhenThereAreTooMany) {
  send(256);
  EXPECT_EQ(corrupt(), 0u);
  send(10);
  EXPECT_EQ(corrupt(), 10u);
}

TEST_F(PacketAccountTest, AFrameWithoutANumberIsTheLastPackets) {
  send(1);
  receive(0);
  send(1);
  receive(99);
  end();
  EXPECT_EQ(corrupt(), 0u);
}

TEST_F(PacketAccountTest, PacketsThatShowAFrameAgainDoNotCount) {
  decode(1);
  for (int i = 0; i < 3; ++i) {
    send(1);
    receive(1);
  }
  end();
  EXPECT_EQ(corrupt(), 0u);
}

TEST_F(PacketAccountTest, AnErrorCountsOnceWithItsPacket) {
  send(1);
  account.decoder_failed(DecodeFault::kUnsupported);
  decode(1);
  end();
  EXPECT_EQ(faults(DecodeFault::kUnsupported), 1u);
  EXPECT_EQ(corrupt(), 0u);
}

TEST_F(PacketAccountTest, AnErrorDoesNotExplainPacketsSentAfterIt) {
  decode(2);
  account.decoder_failed(DecodeFault::kCorrupt);
  EXPECT_EQ(corrupt(), 1u);
  send(3);
  end();
  EXPECT_EQ(corrupt(), 3u);  // all but the lone one behind a frame
}

TEST_F(PacketAccountTest, ATruncatedPacketCountsOnceWithItsDamagedFrame) {
  const std::int64_t number = account.packet_sent(Expect::kTruncated);
  EXPECT_EQ(faults(DecodeFault::kTruncated), 1u);
  receive(number, true);
  end();
  EXPECT_EQ(faults(DecodeFault::kTruncated), 1u);
  EXPECT_EQ(corrupt(), 0u);
}

TEST_F(PacketAccountTest, ADamagedFrameOfAWholePacketIsCorrupt) {
  receive(account.packet_sent(Expect::kFrame), true);
  end();
  EXPECT_EQ(corrupt(), 1u);
}

TEST_F(PacketAccountTest, WhatIsLeftOutDoesNotCount) {
  send(20, Expect::kLeftOut);
  end();
  EXPECT_EQ(corrupt(), 0u);
}

TEST_F(PacketAccountTest, WhatIsSkippedIsCountedApartFromDamage) {
  for (int group = 0; group < 4; ++group) {
    receive(account.packet_sent(Expect::kSkipped));
    send(9, Expect::kSkipped);
  }
  end();
  EXPECT_EQ(stats.packets_skipped, 36u);
  EXPECT_EQ(corrupt(), 0u);
}

TEST_F(PacketAccountTest, DamageAmongSkippedPacketsStillCounts) {
  receive(account.packet_sent(Expect::kSkipped), true);
  send(9, Expect::kSkipped);
  account.decoder_failed(DecodeFault::kCorrupt);
  end();
  EXPECT_EQ(corrupt(), 2u);
}

TEST_F(PacketAccountTest, WhatAnotherDecoderGetsIsNoSecondField) {
  decode(1);
  end();
  account.decoder_replaced();
  send(1);
  end();
  EXPECT_EQ(corrupt(), 1u);
}

TEST_F(PacketAccountTest, AfterAResetEarlierPacketsDoNotCount) {
  decode(1);
  send(20);
  account.packet_sent(Expect::kTruncated);
  account.reset();
  receive(account.packet_sent(Expect::kFrame), true);
  end();
  EXPECT_EQ(corrupt(), 1u);  // the damaged frame alone
}

TEST_F(PacketAccountTest, OnlyTheFirstFaultIsTold) {
  send(3);
  end();
  account.decoder_failed(DecodeFault::kCorrupt);
  EXPECT_EQ(corrupt(), 4u);
  EXPECT_EQ(told, 1);
}

}  // namespace
}  // namespace framelane
