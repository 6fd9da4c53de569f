#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>

#include "pipeline/output/muxer.hpp"
#include "pipeline/output/part_file.hpp"
#include "pipeline/packets/packet_queue.hpp"

namespace framelane {

/// One file, one connection, or one stretch of a playlist, from its first keyframe to its end.
/// Owned and used by one thread.
class OutputSession {
 public:
  /// Opens it; `file` is the NAME.part that `target` names, if it is a file. Throws as Muxer does.
  OutputSession(const OutputOptions& options, const Container& container,
                std::optional<PartFile> file, const MuxerTarget& target,
                const MediaPacket& keyframe, std::stop_token stop, std::stop_token given_up);
  /// Of a file that was not finished, what can be played is kept under its name.
  ~OutputSession();
  OutputSession(const OutputSession&) = delete;
  OutputSession& operator=(const OutputSession&) = delete;

  /// Whether this audio belongs here: of the kind it was opened for, and not from before its start.
  bool takes(const MediaPacket& audio) const;
  /// Media time between the session's start and this packet.
  std::chrono::microseconds age_at(const MediaPacket& packet) const;
  /// Media time written.
  std::chrono::microseconds length() const;

  /// Writes the packet and changes its timestamps. False when the container refuses it. Throws
  /// IoError, also when it refuses one packet after the other.
  bool write(MediaPacket& packet);
  /// Once a second, hands what is buffered to the system, so that a kill costs little. Throws
  /// IoError.
  void flush_when_due();
  /// Trailer and final name, which it returns (empty where there is no file). `end_of_list`: a
  /// playlist says that nothing follows; `durable`: see PartFile. Throws IoError.
  std::string finish(bool end_of_list, bool durable);
  /// Bytes written since the last call.
  std::uint64_t take_bytes() { return muxer_->take_bytes(); }

 private:
  static constexpr std::chrono::seconds kFlushEvery{1};
  /// A container that refuses this many packets in a row will not take the next one either.
  static constexpr int kMaxRefusedInARow = 250;

  const Container& container_;
  std::optional<PartFile> file_;
  const MediaFormatRef format_;
  const std::int64_t start_us_;
  std::int64_t end_us_;
  std::int64_t offset_us_;  // subtracted from timestamps
  std::array<std::int64_t, 2> last_dts_{AV_NOPTS_VALUE, AV_NOPTS_VALUE};
  int refused_ = 0;
  std::chrono::steady_clock::time_point flushed_at_;
  std::unique_ptr<Muxer> muxer_;
};

}  // namespace framelane
