#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <stop_token>
#include <utility>
#include <vector>

#include "kernels/conversion.hpp"
#include "pipeline/av/interrupt.hpp"
#include "pipeline/encode/audio_encode.hpp"
#include "pipeline/encode/encode_options.hpp"
#include "pipeline/encode/encode_plan.hpp"
#include "pipeline/encode/rate_limit.hpp"
#include "pipeline/feed/early_audio.hpp"
#include "pipeline/feed/encode_outage.hpp"
#include "pipeline/frames/frame_pool.hpp"
#include "pipeline/measure/feed_stats.hpp"
#include "pipeline/overlay/timed_overlays.hpp"
#include "pipeline/packets/media.hpp"
#include "pipeline/packets/packet_fanout.hpp"

namespace framelane {

/// One encode as the source thread sees it: where its packets go, and what its frames are made
/// into. Belongs to the source thread once the feed runs, except for `fanout`, which any thread may
/// use.
struct EncodeRoute {
  std::shared_ptr<const EncodeOptions> options;
  std::shared_ptr<PacketFanout> fanout;
  bool rendition = false;  ///< some output has several encodes, and this is one of them

  EarlyAudio early_audio;
  MediaFormatRef media = nullptr;         ///< of its packets; null until known
  MediaFormatRef source_media = nullptr;  ///< copied video: the streams that `media` was made from
  std::unique_ptr<AudioEncode> audio = nullptr;  ///< null if the sound is not transcoded

  // Null or empty if the encode copies its video.
  int consumer = 0;  ///< its number in the ring, and among a job's outputs
  std::shared_ptr<FeedStats::EncodeLine> line = nullptr;  ///< where its frames are counted
  Interrupt* opening = nullptr;                           ///< Encode::opening
  std::unique_ptr<FramePool> pool = nullptr;              ///< of converted frames
  std::unique_ptr<EncodeOutage> outage = nullptr;
  std::optional<std::chrono::microseconds> lost_until{};  ///< MediaFormat::lost_until
  RateLimit rate_limit{std::nullopt, std::nullopt};
  std::shared_ptr<EncodePlan> plan = nullptr;  ///< null before the first frame, and while down
  std::optional<Conversion> conversion = std::nullopt;  ///< empty: frames bypass the stage
  std::unique_ptr<TimedOverlays> overlays = nullptr;    ///< null: nothing is drawn
  /// The options have changed in more than what is drawn: the next frame gets another encoder.
  bool begins_anew = false;

  /// The audio that the encode delivers while the source has these streams; null: none.
  const StreamFormat* audio_format(const MediaFormat* source) const {
    if (audio) return audio->format();
    return options->copy_audio ? audio_of(source) : nullptr;
  }

  /// True if the encode cannot encode what comes: its frames and its sound are dropped.
  bool down() const { return outage && outage->down(); }

  /// Packets belong to `format` from now on. Publishes the early audio.
  void set_media(MediaFormatRef format, const std::stop_token& stop) {
    media = std::move(format);
    early_audio.publish(media, stop);
  }
};

}  // namespace framelane
