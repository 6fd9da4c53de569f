#include "pipeline/feed/frame_drawer.hpp"

extern "C" {
#include <libavutil/avutil.h>
#include <libavutil/mathematics.h>
}

#include "pipeline/base/failure.hpp"
#include "pipeline/overlay/timed_overlays.hpp"

namespace framelane {
namespace {

/// An error of the encode's overlays, by its name. Files come and go: the encode is down until they
/// are there.
FeedError of_overlay(const EncodeRoute& route, const FeedError& error) {
  const bool for_now = error.code() == FeedFault::kConfiguration;
  return {for_now ? FeedFault::kEncoder : error.code(),
          "encode " + route.options->name + ": overlay: " + error.what()};
}

}  // namespace

void FrameDrawer::prepare_overlays(EncodeRoute& route, const FrameFormat& frames) const {
  if (route.options->overlays.empty()) return route.overlays.reset();
  const AVRational shape = frames.sample_aspect_ratio;
  const bool known = shape.num > 0 && shape.den > 0;
  const TimedOverlays::Frames drawn_on{
      .size = {frames.width, frames.height},
      .sample_aspect_ratio = known ? Rational{shape.num, shape.den} : Rational{1, 1},
      .format = frames.layout,
      .color = frames.color};
  try {
    route.overlays = std::make_unique<TimedOverlays>(route.options->overlays, drawn_on,
                                                     deadlines_.overlay_files, cancel_);
  } catch (const FeedError& error) {
    throw of_overlay(route, error);
  }
}

std::shared_ptr<const Overlays> FrameDrawer::draw(const EncodeRoute& route,
                                                  std::chrono::system_clock::time_point taken) {
  try {
    return route.overlays ? route.overlays->at(taken) : nullptr;
  } catch (const FeedError& error) {
    throw of_overlay(route, error);
  }
}

std::chrono::system_clock::time_point FrameDrawer::wall_clock_time(const InputFrame& frame,
                                                                   const SourceInfo& source) const {
  const std::chrono::microseconds time(av_rescale_q(frame.pts, source.time_base, AV_TIME_BASE_Q));
  const auto taken = line_clock_.taken_at(time).value_or(frame.decoded_at);
  const auto age = std::chrono::steady_clock::now() - taken;
  return std::chrono::system_clock::now() -
         std::chrono::duration_cast<std::chrono::system_clock::duration>(age);
}

}  // namespace framelane
