#include "tests/pipeline/stage/cuda/cuda_feed_fixture.hpp"

namespace framelane::testing {

const std::string& small_clip() {
  static const TempFolder folder;
  static const std::string path = [] {
    ffmpeg("-i '" + clip("street_h264.mp4") + "' -vf scale=160:120 -c:v libx264 '" +
           (folder / "small.mp4") + "'");
    return folder / "small.mp4";
  }();
  return path;
}

void expect_all_out(const FeedStats& stats, std::uint64_t frames) {
  const FeedStats::Ledger ledger = stats.ledger();
  EXPECT_EQ(ledger.frames_in, frames);
  for (const EncodeCounts& counts : ledger.encodes) {
    EXPECT_EQ(counts.in, frames);
    EXPECT_EQ(counts.out, frames);
    EXPECT_EQ(counts.in_flight, 0);
    for (const std::uint64_t dropped : counts.dropped) EXPECT_EQ(dropped, 0u);
  }
  for (const auto& jobs : *stats.ring_jobs()) EXPECT_EQ(jobs, 0u);
}

}  // namespace framelane::testing
