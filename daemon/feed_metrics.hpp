#pragma once

#include "daemon/feed_view.hpp"
#include "daemon/metric_page.hpp"

namespace framelane {

/// The metric families of feeds, with their encodes, outputs and lanes. The constructor declares
/// them on the page.
class FeedMetrics {
 public:
  explicit FeedMetrics(MetricPage& page);

  /// Adds the series of one feed. The counts of its frames come from one snapshot.
  void add(const FeedView& feed);

 private:
  void add_frames(const FeedStats& stats, const FeedStats::Ledger& ledger,
                  const std::string& device);
  void add_encodes(const std::string& feed, const FeedStats::Ledger& ledger);
  void add_audio(const std::string& feed, const EncodeStats& encode);
  void add_outputs(const FeedStats& stats);

  MetricFamily& up_;
  MetricFamily& state_;
  MetricFamily& info_;
  MetricFamily& last_frame_;
  MetricFamily& input_bytes_;
  MetricFamily& frames_missed_;
  MetricFamily& packets_skipped_;
  MetricFamily& source_reconnects_;
  MetricFamily& restarts_;
  MetricFamily& timestamp_repairs_;
  MetricFamily& decode_errors_;
  MetricFamily& host_copies_;
  MetricFamily& bottleneck_;
  MetricFamily& luma_mean_;
  MetricFamily& frames_in_;
  MetricFamily& frames_out_;
  MetricFamily& frames_in_flight_;
  MetricFamily& frames_dropped_;
  MetricFamily& encode_info_;
  MetricFamily& encode_size_;
  MetricFamily& audio_info_;
  MetricFamily& audio_in_;
  MetricFamily& audio_out_;
  MetricFamily& audio_in_flight_;
  MetricFamily& audio_dropped_;
  MetricFamily& audio_repairs_;
  MetricFamily& latency_;
  MetricFamily& step_duration_;
  MetricFamily& ring_jobs_;
  MetricFamily& lane_busy_;
  MetricFamily& lane_occupancy_;
  MetricFamily& output_up_;
  MetricFamily& output_paused_;
  MetricFamily& output_queue_;
  MetricFamily& output_bytes_;
  MetricFamily& output_reconnects_;
  MetricFamily& output_drops_;
  MetricFamily& output_retention_errors_;
};

}  // namespace framelane
