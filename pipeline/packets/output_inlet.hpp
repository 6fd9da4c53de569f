#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <functional>
#include <stop_token>

#include "pipeline/measure/feed_stats.hpp"
#include "pipeline/packets/media.hpp"
#include "pipeline/packets/packet_queue.hpp"

namespace framelane {

/// Where an encode's packets enter one output: a bounded queue, what happens when it is full, and
/// what is counted as lost. The source's and the encodes' threads push; the output's thread pops.
class OutputInlet {
 public:
  /// True if the output carries the audio of this format; false leaves its packets out, uncounted.
  /// Called on every producer's thread, and must not block.
  using TakesAudio = std::function<bool(const MediaFormat&)>;

  /// `capacity` is in packets. `blocks`: a full queue makes the producer wait, as long as the
  /// output is open or opens for the first time. Otherwise the packet is lost, counted, and pushing
  /// goes on at the next keyframe.
  OutputInlet(int capacity, OutputStats& stats, bool blocks, TakesAudio takes_audio);

  // Producers, any number of threads.

  /// Another answer than the constructor's, once it is known whether the source is live.
  void set_blocks(bool blocks) { blocks_ = blocks; }
  bool blocks() const { return blocks_; }
  /// Stopped or closed: the packet is counted as dropped.
  void push(const AVPacket& packet, StreamKind stream, const MediaFormatRef& format,
            const std::stop_token& stop);
  /// True once after each request_resume(): the fan-out answers by pushing its cached group of
  /// pictures, so that the output resumes at a keyframe at once.
  bool take_resume_request() { return resume_wanted_.exchange(false); }
  /// No more packets will come: the output writes what is queued and ends.
  void finish() { queue_.close(); }

  // The output's thread.

  bool takes_audio(const MediaFormat& format) const { return takes_audio_(format); }
  PacketQueue::Pop pop(MediaPacket& packet, std::chrono::milliseconds timeout,
                       const std::stop_token& stop);
  /// The output is open: producers may wait for it, and a resume that was requested is settled by
  /// the keyframe it has opened with.
  void opened();
  /// The output is in trouble: until opened() nobody waits for it, so that the other outputs of the
  /// encode go on.
  void interrupted() { queue_.set_patient(false); }
  void request_resume() { resume_wanted_ = true; }
  /// Closes the queue, and counts what is in it, and whatever is pushed later, as dropped.
  void end(PacketDrop reason);

 private:
  OutputStats& stats_;
  const TakesAudio takes_audio_;
  PacketQueue queue_;
  std::atomic<bool> blocks_;
  std::atomic<bool> resume_wanted_{false};
  std::atomic<bool> overflowed_{false};  // packets were lost: nothing is of use before a keyframe
  std::atomic<PacketDrop> closed_as_{PacketDrop::kStop};
};

}  // namespace framelane
