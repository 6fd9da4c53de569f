#pragma once

#include <chrono>
#include <memory>
#include <stop_token>
#include <utility>

#include "kernels/overlay.hpp"
#include "pipeline/base/line_clock.hpp"
#include "pipeline/encode/frame_format.hpp"
#include "pipeline/feed/encode_route.hpp"
#include "pipeline/feed/feed_deadlines.hpp"
#include "pipeline/frames/input_frame.hpp"
#include "pipeline/source/source.hpp"

namespace framelane {

/// Makes what is drawn on the frames of a feed's encodes. Whoever converts a frame draws it there.
/// The source thread alone calls.
class FrameDrawer {
 public:
  /// `deadlines` and `line_clock` outlive this. After `cancel` it waits for files for a second at
  /// most.
  FrameDrawer(const FeedDeadlines& deadlines, const LineClock& line_clock, std::stop_token cancel)
      : deadlines_(deadlines), line_clock_(line_clock), cancel_(std::move(cancel)) {}

  /// Makes the route's overlays for frames of this format. Throws FeedError, also for files that
  /// take longer than FeedDeadlines::overlay_files; the route then keeps those that it had.
  void prepare_overlays(EncodeRoute& route, const FrameFormat& frames) const;
  /// What a frame that was taken then gets in this encode: null if nothing is drawn on it. A text
  /// that has changed is drawn. Throws as prepare_overlays() does: then the route's overlays are of
  /// no more use.
  static std::shared_ptr<const Overlays> draw(const EncodeRoute& route,
                                              std::chrono::system_clock::time_point taken);
  /// When the picture was taken. If its source does not tell, as a file does not: when it was read.
  std::chrono::system_clock::time_point wall_clock_time(const InputFrame& frame,
                                                        const SourceInfo& source) const;

 private:
  const FeedDeadlines& deadlines_;
  const LineClock& line_clock_;
  const std::stop_token cancel_;
};

}  // namespace framelane
