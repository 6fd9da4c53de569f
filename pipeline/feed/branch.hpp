#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "kernels/conversion.hpp"
#include "pipeline/encode/encode_options.hpp"
#include "pipeline/encode/encoder.hpp"
#include "pipeline/frames/frame_pool.hpp"
#include "pipeline/packets/media.hpp"
#include "pipeline/packets/packet_fanout.hpp"

namespace framelane {

/// One encode as the source thread sees it: where its packets go and what they are made for.
/// Everything but `fanout` belongs to the source thread once the feed runs.
struct Branch {
  const EncodeOptions* options = nullptr;
  std::unique_ptr<PacketFanout> fanout;
  bool global_header = false;  ///< some output's container wants the codec's headers up front

  MediaFormatRef media;                ///< what its packets belong to; null until known
  MediaFormatRef source_media;         ///< the source's streams that `media` was made from
  std::vector<PacketPtr> early_audio;  ///< copied audio that came before `media` was known

  // Only where frames are encoded.
  std::shared_ptr<EncodePlan> plan;
  std::optional<Conversion> conversion;  ///< nothing: the frame bypasses the stage
  std::unique_ptr<FramePool> pool;       ///< of converted frames
};

}  // namespace framelane
