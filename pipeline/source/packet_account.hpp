#pragma once

#include <array>
#include <cstdint>
#include <functional>

#include "pipeline/base/labels.hpp"
#include "pipeline/measure/feed_stats.hpp"

namespace framelane {

/// Counts the damage in what a decoder is sent: the faults it reports, and the packets that it
/// swallows without a word, such as those before the first keyframe.
///
/// Packets have numbers, from 1, in the order in which they are sent; a frame comes with the number
/// of its packet. Once no frame can come of a packet any more, the packet is decided: one without a
/// frame counts as corrupt. Two kinds do not count:
/// - a lone one right behind a packet with a frame, for it may be the second field of that frame or
///   a reference that is never shown;
/// - one that is explained: by an error that the decoder reported, or by a frame that came twice
///   because a packet only asked to show it again.
///
/// Knows nothing of FFmpeg. One thread.
class PacketAccount {
 public:
  /// `on_first_fault` is called once, when the first fault is counted. `stats` outlives this.
  PacketAccount(FeedStats& stats, std::function<void()> on_first_fault);

  enum class Expect {
    kFrame,      ///< of this packet a frame should come
    kLeftOut,    ///< the packet's frame is left out on purpose: that none comes is no fault
    kSkipped,    ///< the decoder may skip it: counted as skipped if no frame comes
    kTruncated,  ///< part of the packet is missing: counted at once, with a frame or without
  };
  /// A packet is about to be sent. Returns its number.
  std::int64_t packet_sent(Expect expect);
  /// The number of the last packet; 0 before the first.
  std::int64_t last_packet() const { return sent_; }

  /// A frame has come of the packet `number`; of the last one when there is no such number.
  /// `corrupt`: the decoder marked the frame as damaged.
  void frame_received(std::int64_t number, bool corrupt);

  /// The decoder reported an error: counts it, and takes it as the explanation of one packet
  /// without a frame among those sent so far.
  void decoder_failed(DecodeFault fault);

  /// Decides the packets up to this one: no more frames come of them.
  void account_up_to(std::int64_t packet);
  /// Another decoder gets the next packet, which can therefore not belong to an earlier frame.
  void decoder_replaced() { previous_has_frame_ = false; }
  /// Forgets the packets that are not decided: the decoder was flushed.
  void reset();

 private:
  enum class Packet : std::uint8_t {
    kOpen,
    kExplained,  ///< it has a frame, or none is expected
    kSkippable,  ///< it has no frame yet, and may have none
  };
  Packet& state_of(std::int64_t number) {
    return packets_[static_cast<std::size_t>(number) % packets_.size()];
  }
  void count(DecodeFault fault);

  FeedStats& stats_;
  std::function<void()> on_first_fault_;  // null once called

  std::array<Packet, 256> packets_{};  // by number; valid for the undecided packets
  std::int64_t sent_ = 0;              // the last packet
  std::int64_t decided_ = 0;           // the last packet that is decided
  bool previous_has_frame_ = false;    // that one has a frame: the next may be without
  int excuses_ = 0;                    // packets without a frame that need not be counted…
  std::int64_t excused_up_to_ = 0;     // …if they are not later than this one
  int truncated_ = 0;                  // packets counted as truncated, with a frame yet to come
};

}  // namespace framelane
