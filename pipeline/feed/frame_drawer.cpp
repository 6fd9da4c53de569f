#include "pipeline/feed/frame_drawer.hpp"

extern "C" {
#include <libavutil/avutil.h>
#include <libavutil/mathematics.h>
}

#include <cstddef>
#include <optional>

#include "pipeline/av/interrupt.hpp"
#include "pipeline/base/failure.hpp"

namespace framelane {
namespace {

/// What is drawn on the frames of this format; null: nothing. Throws FeedError.
std::unique_ptr<FrameOverlays> make_overlays(const EncodeRoute& route, const FrameFormat& frames) {
  if (route.options->overlays.empty()) return nullptr;
  try {
    const AVRational shape = frames.sample_aspect_ratio;
    const bool known = shape.num > 0 && shape.den > 0;
    return std::make_unique<FrameOverlays>(
        route.options->overlays, PictureSize{frames.width, frames.height},
        known ? Rational{shape.num, shape.den} : Rational{1, 1}, frames.layout, frames.color);
  } catch (const FeedError& error) {
    // Files come and go: the encode is down until they are there.
    const bool for_now = error.code() == FeedFault::kConfiguration;
    throw FeedError(for_now ? FeedFault::kEncoder : error.code(),
                    "encode " + route.options->name + ": overlay: " + error.what());
  }
}

}  // namespace

void FrameDrawer::prepare_overlays(EncodeRoute& route, const FrameFormat& frames) const {
  const CallScope reading(*route.opening, deadlines_.prepare);  // perhaps a slow disk
  route.overlays = make_overlays(route, frames);
}

std::span<std::shared_ptr<const Overlays>> FrameDrawer::draw(const InputFrame& frame,
                                                             const SourceInfo& source,
                                                             std::span<EncodeRoute* const> routes,
                                                             std::span<const FrameTicket> tickets) {
  drawn_.resize(routes.size());
  std::optional<std::chrono::system_clock::time_point> taken;
  for (std::size_t i = 0; i < routes.size(); ++i) {
    const EncodeRoute& route = *routes[i];
    drawn_[i].reset();
    if (!route.overlays || !tickets[i]) continue;
    if (!taken) taken = wall_clock_time(frame, source);
    const CallScope drawing(*route.opening, deadlines_.prepare);  // may read fonts
    drawn_[i] = route.overlays->at(*taken);
  }
  return drawn_;
}

/// When the picture was taken. If its source does not tell, as a file does not: when it was read.
std::chrono::system_clock::time_point FrameDrawer::wall_clock_time(const InputFrame& frame,
                                                                   const SourceInfo& source) const {
  const std::chrono::microseconds time(av_rescale_q(frame.pts, source.time_base, AV_TIME_BASE_Q));
  const auto taken = line_clock_.taken_at(time).value_or(frame.decoded_at);
  const auto age = std::chrono::steady_clock::now() - taken;
  return std::chrono::system_clock::now() -
         std::chrono::duration_cast<std::chrono::system_clock::duration>(age);
}

}  // namespace framelane
