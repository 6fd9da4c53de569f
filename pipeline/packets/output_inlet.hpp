#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <mutex>
#include <optional>
#include <stop_token>

#include "pipeline/base/labels.hpp"
#include "pipeline/measure/feed_stats.hpp"
#include "pipeline/packets/media.hpp"
#include "pipeline/packets/packet_queue.hpp"

namespace framelane {

/// Where packets enter one output: a bounded queue, the rule for what happens when it is full, and
/// the count of what is lost. The threads of the source and of the encode push; the output's thread
/// pops.
class OutputInlet {
 public:
  /// True if the output takes the audio of this format. If not, its packets are left out, and are
  /// not counted as lost. Called on the pushing threads; must not block.
  using TakesAudio = std::function<bool(const MediaFormat&)>;

  /// `capacity` is in packets. With `blocks` a producer waits while the queue is full, unless the
  /// output is in trouble. Without, or in trouble, a packet that finds the queue full is lost, and
  /// so are all that follow up to the next keyframe.
  /// `only`: losses of another stream are not counted, because it is not written.
  OutputInlet(int capacity, OutputStats& stats, bool blocks, TakesAudio takes_audio,
              std::optional<StreamKind> only = std::nullopt);

  // For producers, on any number of threads.

  /// Replaces the constructor's `blocks`, once it is known whether the source is live.
  void set_blocks(bool blocks) { blocks_ = blocks; }
  bool blocks() const { return blocks_; }
  /// Replaces the constructor's `capacity`.
  void set_capacity(int capacity);
  /// Queues the packet or counts it as dropped. After a stop or end() it is dropped.
  void push(const AVPacket& packet, StreamKind stream, const MediaFormatRef& format,
            const std::stop_token& stop);
  /// True once after each request_resume(): the producer then pushes the packets since the last
  /// keyframe again, so that the output can begin at once.
  bool take_resume_request() { return resume_wanted_.exchange(false); }
  /// False if the output leaves out packets of this stream.
  bool takes(StreamKind stream, const MediaFormat& format) const {
    return stream != StreamKind::kAudio || takes_audio_(format);
  }
  /// True if so many packets can be pushed without a loss, unless the output is in trouble.
  bool has_room(std::size_t packets) const { return blocks_ || queue_.room() >= packets; }
  /// No more packets will come: the output writes what is queued and ends.
  void finish() { queue_.close(); }
  /// Another output has taken its place: no more than late sound comes.
  void hand_over() { gets_pictures_ = false; }
  /// finish(), for an output that goes while others go on: nothing refers to the inlet any more.
  void leave() {
    hand_over();
    finish();
    left_ = true;  // last: it may be destroyed then
  }
  /// Counts packets that were lost before they could be pushed.
  void lose(StreamKind stream, PacketDrop reason, std::uint64_t packets) {
    if (stream == only_.value_or(stream)) stats_.drop(reason, packets);
  }

  // For the output's thread.

  /// See PacketQueue::pop().
  PacketQueue::Pop pop(MediaPacket& packet, std::chrono::milliseconds timeout,
                       const std::stop_token& stop);
  /// True if no packet waits.
  bool empty() const { return queue_.size() == 0; }
  /// The output is open: from now on producers may wait for it. It has its keyframe, so a resume
  /// that was requested is no longer needed.
  void opened();
  /// The output is in trouble: no producer waits for it until opened(), so that the other outputs
  /// of the encode get their packets.
  void interrupted() { queue_.set_patient(false); }
  void request_resume() { resume_wanted_ = true; }

  /// How many packets the output has taken so far. Any thread.
  std::uint64_t taken() const { return taken_; }
  /// False after hand_over() and leave(). Any thread.
  bool gets_pictures() const { return gets_pictures_; }
  /// True after leave(). Any thread.
  bool left() const { return left_; }
  /// Closes the queue. What is in it, and whatever is pushed later, is counted as dropped. From now
  /// on the output's statistics show the queue of its next run, even if this one's thread is still
  /// stuck in a call. Any thread.
  void end(PacketDrop reason);

 private:
  void show_length();

  OutputStats& stats_;
  const TakesAudio takes_audio_;
  const std::optional<StreamKind> only_;
  PacketQueue queue_;
  std::atomic<bool> blocks_;
  std::atomic<bool> resume_wanted_{false};
  std::atomic<bool> overflowed_{false};  // packets were lost: the next one needed is a keyframe
  std::atomic<PacketDrop> closed_as_{PacketDrop::kStop};
  std::atomic<std::uint64_t> taken_{0};
  std::atomic<bool> gets_pictures_{true};
  std::atomic<bool> left_{false};
  std::mutex mutex_;
  bool ended_ = false;  // guarded by mutex_
};

}  // namespace framelane
