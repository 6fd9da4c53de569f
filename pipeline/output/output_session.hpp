#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>

#include "pipeline/output/container.hpp"
#include "pipeline/output/muxer.hpp"
#include "pipeline/output/output_options.hpp"
#include "pipeline/output/part_file.hpp"
#include "pipeline/output/part_file_recovery.hpp"
#include "pipeline/packets/media.hpp"
#include "pipeline/packets/packet_queue.hpp"

namespace framelane {

/// One file, one connection, or one part of a playlist: all that is written between a header and
/// its trailer. It begins at a keyframe. Used by one thread; calls block as Muxer's do.
class OutputSession {
 public:
  /// Opens it. `file` is the NAME.part that `target` names, or nothing if it is no file.
  /// `container` and `recovery` must outlive it. For `stop` and `abandoned`, and for what is
  /// thrown, see Muxer.
  OutputSession(const OutputOptions& options, const Container& container,
                std::optional<PartFile> file, PartFileRecovery& recovery, const MuxerTarget& target,
                const MediaPacket& keyframe, std::stop_token stop, std::stop_token abandoned);
  /// If finish() has not succeeded, a file is cut back to what is whole and left to `recovery`.
  ~OutputSession();
  OutputSession(const OutputSession&) = delete;
  OutputSession& operator=(const OutputSession&) = delete;

  /// True if this audio can be written here: its format is the one the session was opened with, and
  /// it is not from before the session's start.
  bool takes(const MediaPacket& audio) const;
  /// Media time from the session's start to this packet.
  std::chrono::microseconds age_at(const MediaPacket& packet) const;
  /// Media time written.
  std::chrono::microseconds length() const;

  /// Writes the packet and changes its timestamps. False if the container refuses it. Throws
  /// IoError, also if too many packets in a row were refused.
  bool write(MediaPacket& packet);
  /// Once a second, hands what is buffered for a file to the system: if the process is killed, only
  /// that much is lost. Throws IoError.
  void flush_when_due();
  /// Writes the trailer and gives the file its name, which it returns (empty if it is no file).
  /// `end_of_list`: the playlist says that nothing follows. `durable`: see PartFile. Throws
  /// IoError.
  std::string finish(bool end_of_list, bool durable);
  /// Bytes written since the last call.
  std::uint64_t take_bytes() { return muxer_->take_bytes(); }

 private:
  static constexpr std::chrono::seconds kFlushEvery{1};
  /// A container that has refused so many packets in a row will not take the next one either.
  static constexpr int kMaxRefusedInARow = 250;

  /// The file's writer is gone.
  void leave_file(const CutPoints& points);

  const Container& container_;
  std::optional<PartFile> file_;
  PartFileRecovery& recovery_;
  const MediaFormatRef format_;
  const std::int64_t start_us_;
  std::int64_t end_us_;
  std::int64_t offset_us_;  // subtracted from timestamps
  std::array<std::int64_t, 2> last_dts_{AV_NOPTS_VALUE, AV_NOPTS_VALUE};  // of video, of audio
  int refused_ = 0;                                                       // packets in a row
  std::chrono::steady_clock::time_point flushed_at_;
  std::unique_ptr<Muxer> muxer_;
};

}  // namespace framelane
