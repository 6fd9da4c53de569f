#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <mutex>
#include <string>

#include "pipeline/base/labels.hpp"

namespace framelane {

/// The line of an encode's transcoded sound in the ledger, in packets of the source. Always:
/// in = out + the sum of dropped + in_flight.
struct AudioCounts {
  std::uint64_t in = 0;
  std::uint64_t out = 0;
  std::array<std::uint64_t, kAudioDropNames.size()> dropped{};
  std::int64_t in_flight = 0;
};

/// Why a feed that is cancelled with this reason drops its sound.
AudioDrop audio_drop(DropReason cancel);

/// What the transcoded sound of one encode counts. Each change happens under one lock, so that
/// every snapshot balances. Any thread.
class AudioStats {
 public:
  explicit AudioStats(bool transcoded) : transcodes(transcoded) {}

  const bool transcodes;  ///< false: the sound is copied or left out, and nothing is counted

  /// The present run of the feed. What counts for an earlier one is ignored.
  std::uint32_t run() const;
  /// A packet of the source has come; it is in flight until one of the other two is called for it.
  void in(std::uint32_t run);
  /// The encoder has returned everything that the packet's sound became.
  void out(std::uint32_t run);
  void drop(std::uint32_t run, AudioDrop reason);
  /// Drops what the present run has in flight, and begins another (FeedStats::abandon_run).
  void abandon_run(DropReason reason);
  void count(AudioRepair repair) { ++repairs[index_of(repair)]; }
  AudioCounts counts() const;

  /// FFmpeg's name of the encoder in use; empty until one has been opened.
  void set_codec(std::string codec);
  std::string codec() const;

  std::array<std::atomic<std::uint64_t>, kAudioRepairNames.size()> repairs{};

 private:
  mutable std::mutex mutex_;
  AudioCounts counts_;
  std::uint32_t run_ = 0;
  std::string codec_;
};

}  // namespace framelane
