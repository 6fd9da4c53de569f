#include "pipeline/source/packet_account.hpp"

#include <utility>

namespace framelane {
namespace {

/// A frame comes out at the latest this many packets after its own: decoders hold back up to 16
/// frames to reorder them, and a frame may have two packets, one for each field.
constexpr std::int64_t kReorder = 32;

}  // namespace

PacketAccount::PacketAccount(FeedStats& stats, std::function<void()> on_first_fault)
    : stats_(stats), on_first_fault_(std::move(on_first_fault)) {}

std::int64_t PacketAccount::packet_sent(Expect expect) {
  const auto capacity = static_cast<std::int64_t>(packets_.size());
  if (sent_ - decided_ == capacity) account_up_to(decided_ + 1);
  ++sent_;
  state_of(sent_) = expect == Expect::kFrame     ? Packet::kOpen
                    : expect == Expect::kSkipped ? Packet::kSkippable
                                                 : Packet::kExplained;
  if (expect == Expect::kTruncated) {
    count(DecodeFault::kTruncated);
    ++truncated_;
  }
  return sent_;
}

void PacketAccount::frame_received(std::int64_t number, bool corrupt) {
  if (corrupt) {
    // The frame of a truncated packet is marked too; that packet has been counted.
    if (truncated_ > 0) {
      --truncated_;
    } else {
      count(DecodeFault::kCorrupt);
    }
  }
  // Decoders that do not pass the number on have no delay.
  if (number < 1 || number > sent_) number = sent_;
  if (number <= decided_ || state_of(number) == Packet::kExplained) {
    // The same frame again: some packet that has none of its own asked for it.
    ++excuses_;
    excused_up_to_ = sent_;
    return;
  }
  state_of(number) = Packet::kExplained;
  account_up_to(number - kReorder);
}

void PacketAccount::decoder_failed(DecodeFault fault) {
  ++excuses_;
  excused_up_to_ = sent_;
  count(fault);
}

void PacketAccount::account_up_to(std::int64_t packet) {
  while (decided_ < packet) {
    ++decided_;
    if (decided_ > excused_up_to_) excuses_ = 0;
    if (state_of(decided_) == Packet::kSkippable) ++stats_.packets_skipped;
    if (state_of(decided_) != Packet::kOpen) {
      previous_has_frame_ = true;
      continue;
    }
    if (excuses_ > 0) {
      --excuses_;
    } else if (!previous_has_frame_) {
      count(DecodeFault::kCorrupt);
    }
    previous_has_frame_ = false;
  }
}

void PacketAccount::reset() {
  decided_ = sent_;
  previous_has_frame_ = false;
  excuses_ = 0;
  truncated_ = 0;
}

void PacketAccount::count(DecodeFault fault) {
  stats_.count(fault);
  if (const auto first = std::exchange(on_first_fault_, nullptr)) first();
}

}  // namespace framelane
