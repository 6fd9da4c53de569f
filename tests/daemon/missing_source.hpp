#pragma once

#include <chrono>
#include <utility>

#include "pipeline/feed/feed_options.hpp"

namespace framelane::testing {

/// The options of a feed "gate" with one encode, whose source does not exist, and which waits an
/// hour before it tries that again.
inline FeedOptions feed_without_source() {
  FeedOptions feed;
  feed.name = "gate";
  feed.input.url = "/nonexistent/clip.mp4";
  feed.input.reconnect = {std::chrono::hours(1), std::chrono::hours(1)};
  EncodeOptions live;
  live.name = "live";
  live.codecs = {{"mpeg4", {}}};
  feed.encodes = {std::move(live)};
  return feed;
}

}  // namespace framelane::testing
