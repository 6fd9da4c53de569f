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

/// The producers' side of one output: a bounded queue, the rule for a full one, and the counts of
/// dropped packets. The threads of the source and of the encodes push; the output's thread pops.
class OutputInlet {
 public:
  /// True if the output carries the audio of this format. If not, audio packets are left out and
  /// not counted. Called on the producers' threads; must not block.
  using TakesAudio = std::function<bool(const MediaFormat&)>;

  /// `capacity` is in packets. `blocks`: if the queue is full, the producer waits, unless the
  /// output is interrupted (see interrupted()). Otherwise the packet is dropped and counted, and so
  /// are all up to the next keyframe.
  OutputInlet(int capacity, OutputStats& stats, bool blocks, TakesAudio takes_audio);

  // For producers, on any number of threads.

  /// Changes `blocks`, once it is known whether the source is live.
  void set_blocks(bool blocks) { blocks_ = blocks; }
  bool blocks() const { return blocks_; }
  /// Queues a reference to the packet, or drops and counts it: if the queue is full, closed, or the
  /// wait was stopped.
  void push(const AVPacket& packet, StreamKind stream, const MediaFormatRef& format,
            const std::stop_token& stop);
  /// True once after each request_resume(). The fan-out then pushes its cached group of pictures,
  /// so that the output resumes at a keyframe at once.
  bool take_resume_request() { return resume_wanted_.exchange(false); }
  /// No more packets come: the output writes those that are queued, and ends.
  void finish() { queue_.close(); }

  // For the output's thread.

  bool takes_audio(const MediaFormat& format) const { return takes_audio_(format); }
  PacketQueue::Pop pop(MediaPacket& packet, std::chrono::milliseconds timeout,
                       const std::stop_token& stop);
  /// The output is open: producers may wait for it again. A resume request that was not answered is
  /// withdrawn, since the output has opened with a keyframe.
  void opened();
  /// The output is not open and tries again: until opened() no producer waits for it, so that the
  /// other outputs of the encode go on.
  void interrupted() { queue_.set_patient(false); }
  void request_resume() { resume_wanted_ = true; }
  /// Closes the queue. The packets in it, and all that are pushed later, are counted as dropped.
  void end(PacketDrop reason);

 private:
  OutputStats& stats_;
  const TakesAudio takes_audio_;
  PacketQueue queue_;
  std::atomic<bool> blocks_;
  std::atomic<bool> resume_wanted_{false};
  std::atomic<bool> overflowed_{false};  // a packet was dropped: so are all up to a keyframe
  std::atomic<PacketDrop> closed_as_{PacketDrop::kStop};
};

}  // namespace framelane
