#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <optional>
#include <stop_token>
#include <vector>

#include "pipeline/packets/media.hpp"
#include "pipeline/packets/output_inlet.hpp"

namespace framelane {

/// Hands one encode's packets to its outputs. Caches the current group of pictures, so that an
/// output that starts (again) can do so at a keyframe without waiting for the next one. Any thread;
/// the source thread (sound) and an encode thread publish at once.
class PacketFanout {
 public:
  explicit PacketFanout(std::vector<OutputInlet*> outputs = {});

  // These block while a producer waits for an output that is full.

  /// From now on the output gets packets too; first those of the present group, if it has room.
  void add(OutputInlet& output);
  /// The output gets no more packets, and leaves.
  void remove(OutputInlet& output);
  /// At the next keyframe `next` takes the place of `output`: each packet is in one of them. The
  /// output leaves when it has had the sound of before the keyframe, which may come after it; but
  /// no later than kLateSoundUs after the keyframe. If it still waits to replace another output
  /// itself, it leaves at once, and `next` waits in its place.
  void replace(OutputInlet& output, OutputInlet& next);
  /// OutputInlet::set_blocks of every output, also of those that come later.
  void set_blocks(bool blocks);
  /// OutputInlet::lose of every output.
  void lose(StreamKind stream, PacketDrop reason, std::uint64_t packets);

  /// Gives every output a reference to the packet. Blocks if an output is full and blocks then
  /// (OutputInlet::push).
  void publish(const AVPacket& packet, StreamKind stream, const MediaFormatRef& format,
               const std::stop_token& stop);
  /// The encoder is closed: the packets that follow do not refer to the current group.
  void end_group();
  /// The encode has ended: finishes every output.
  void finish();
  /// Waits for nobody.
  bool finished() const { return finished_; }

 private:
  /// Larger groups are not cached: outputs that start then wait for the next keyframe.
  static constexpr std::size_t kMaxCachedPackets = 1024;
  static constexpr std::size_t kMaxCachedBytes = 64u << 20;

  static constexpr std::int64_t kLateSoundUs = 1'000'000;

  /// An output that another one has replaced, and that waits for the rest of its sound.
  struct Handover {
    OutputInlet* output;
    OutputInlet* next;
    std::int64_t begin_us;  // of the keyframe that `next` began with
  };

  void take_out(OutputInlet& output);
  /// At the keyframe of this time; empty: at once.
  void put_replacements(std::optional<std::int64_t> keyframe_us);
  /// Has those leave whose sound of before this time is complete, if it is sound that comes, or
  /// that have waited for long enough.
  void end_handovers(StreamKind stream, std::int64_t time_us);
  void cache(const AVPacket& packet, StreamKind stream, const MediaFormatRef& format);
  bool has_room_for_group(const OutputInlet& output) const;
  void resend_group(OutputInlet& output, const std::stop_token& stop);
  void forget_group();

  struct Replacement {
    OutputInlet* output;
    OutputInlet* next;
  };

  std::atomic<bool> finished_{false};  // changed with mutex_ held
  std::mutex mutex_;                   // guards all that follows
  std::vector<OutputInlet*> outputs_;
  std::vector<Replacement> replacements_;  // due at the next keyframe
  std::vector<Handover> handovers_;
  std::optional<bool> blocks_;
  std::vector<MediaPacket> group_;  // the first group_size_ are in use; the others are spare
  std::size_t group_size_ = 0;
  std::size_t group_bytes_ = 0;
  bool group_complete_ = false;  // it starts at a keyframe and has every packet since
};

}  // namespace framelane
