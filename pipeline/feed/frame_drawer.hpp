#pragma once

#include <chrono>
#include <memory>
#include <span>
#include <vector>

#include "kernels/overlay.hpp"
#include "pipeline/base/line_clock.hpp"
#include "pipeline/encode/frame_format.hpp"
#include "pipeline/feed/encode_route.hpp"
#include "pipeline/feed/feed_deadlines.hpp"
#include "pipeline/frames/input_frame.hpp"
#include "pipeline/measure/feed_stats.hpp"
#include "pipeline/source/source.hpp"

namespace framelane {

/// Makes what is drawn on the frames of a feed's encodes. Whoever converts a frame draws it there.
/// The source thread alone calls.
class FrameDrawer {
 public:
  /// Both outlive this.
  FrameDrawer(const FeedDeadlines& deadlines, const LineClock& line_clock)
      : deadlines_(deadlines), line_clock_(line_clock) {}

  /// Makes the route's overlays for frames of this format. Throws FeedError; the route then keeps
  /// those that it had.
  void prepare_overlays(EncodeRoute& route, const FrameFormat& frames) const;
  /// What each route's frame gets: null if nothing is drawn on it, or if its ticket is closed. A
  /// text that has changed is drawn. The pointers are the caller's until the next call.
  std::span<std::shared_ptr<const Overlays>> draw(const InputFrame& frame, const SourceInfo& source,
                                                  std::span<EncodeRoute* const> routes,
                                                  std::span<const FrameTicket> tickets);

 private:
  std::chrono::system_clock::time_point wall_clock_time(const InputFrame& frame,
                                                        const SourceInfo& source) const;

  const FeedDeadlines& deadlines_;
  const LineClock& line_clock_;
  std::vector<std::shared_ptr<const Overlays>> drawn_;  // on the frame in hand
};

}  // namespace framelane
