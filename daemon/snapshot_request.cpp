#include "daemon/snapshot_request.hpp"

#include <algorithm>
#include <chrono>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "daemon/query.hpp"
#include "pipeline/base/failure.hpp"
#include "pipeline/base/redact.hpp"
#include "pipeline/encode/snapshot.hpp"
#include "pipeline/feed/feed_options.hpp"

namespace framelane {
namespace {

/// A feed of one frame a second and more brings one in this time.
constexpr std::chrono::milliseconds kSnapshotPatience{1500};
/// Between two keyframes of a feed that are decoded for a snapshot.
constexpr std::chrono::seconds kDecodePause{1};
constexpr std::int64_t kLeastWidth = 16;
constexpr std::int64_t kMostWidth = 8192;

RequestError no_frame(const std::string& why) { return {503, "no_frame", why}; }

/// True if some encode's frames come into host memory. Those for NVENC stay on the GPU as a rule.
bool encodes_in_host_memory(const FeedStats& stats) {
  return std::ranges::any_of(stats.ledger().encodes, [](const FeedStats::EncodeLine& line) {
    return !line.stats->copy && line.stats->reason().empty() &&
           !line.stats->codec().ends_with("_nvenc");
  });
}

/// One frame in host memory, or what it can be decoded from.
struct Picture {
  std::shared_ptr<const AVFrame> frame;
  SnapshotTap::Keyframe keyframe;
};

Picture newest_picture(const FeedView& feed) {
  if (encodes_in_host_memory(*feed.stats)) {
    if (auto frame = feed.tap->wait_frame(kSnapshotPatience)) return {std::move(frame), {}};
  }
  const bool masked = !feed.options->input.mask.empty();
  SnapshotTap::Keyframe keyframe = feed.tap->keyframe(masked);
  const FeedStats::Status status = feed.stats->status();
  if (masked && !converts(*feed.options)) {
    throw no_frame("the feed has a mask, and no encode with which a masked picture could be made");
  }
  if (status.state != FeedState::kRunning || keyframe.packet == nullptr) {
    throw no_frame("there is no picture: " +
                   (status.reason.empty() ? "none has come yet" : redact(status.reason)));
  }
  if (!feed.tap->may_decode(std::chrono::steady_clock::now(), kDecodePause)) {
    throw RequestError(
        429, "too_often",
        "this feed has no decoded frames, and a keyframe is decoded once a second at "
        "most; ask again");
  }
  return {nullptr, std::move(keyframe)};
}

}  // namespace

HttpResponse answer_snapshot(const HttpRequest& request, const Supervisor& supervisor,
                             const std::string& name) {
  require_known(request, {"width"});
  const auto width = static_cast<int>(number_in(request, "width", 0, kLeastWidth, kMostWidth));
  const FeedView feed = require_feed(supervisor, name);
  try {
    Picture picture = newest_picture(feed);
    static std::mutex one_at_a_time;  // however many pages are open, one processor is busy with it
    const std::lock_guard lock(one_at_a_time);
    if (picture.frame == nullptr) {
      picture.frame = decode_keyframe(picture.keyframe, feed.options->input.limits.coded_pixels());
    }
    HttpResponse response{.content_type = "image/jpeg", .body = make_jpeg(*picture.frame, width)};
    return response;
  } catch (const FeedError& error) {
    throw no_frame(redact(error.what()));
  }
}

}  // namespace framelane
