#include "daemon/feed_metrics.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>

#include "daemon/bottleneck.hpp"
#include "pipeline/measure/output_totals.hpp"
#include "pipeline/source/input_options.hpp"

namespace framelane {
namespace {

double seconds(std::chrono::nanoseconds time) {
  return std::chrono::duration<double>(time).count();
}

/// 1 at `index`, 0 elsewhere.
template <std::size_t kCount>
std::array<int, kCount> one_of(std::size_t index) {
  std::array<int, kCount> values{};
  if (index < kCount) values[index] = 1;
  return values;
}

bool decodes(const FeedStats::Ledger& ledger) {
  return std::ranges::any_of(ledger.encodes, [](const auto& line) { return !line.stats->copy; });
}

}  // namespace

FeedMetrics::FeedMetrics(MetricPage& page)
    : up_(page.gauge(
          "framelane_feed_up",
          "1 if the feed runs and a frame or copied packet has come within its input.timeout.")),
      state_(page.gauge("framelane_feed_state",
                        "1 for the state the feed is in, 0 for the others. backoff: it will be "
                        "tried again; ended: a file is finished; failed: it is not tried again.")),
      info_(page.gauge("framelane_feed_info",
                       "The decoder of the feed, empty until its source has been opened and if "
                       "nothing is decoded, and its device, empty if nothing is converted; always "
                       "1.")),
      last_frame_(page.gauge(
          "framelane_last_frame_timestamp_seconds",
          "Unix time of the last frame or copied packet from the source; 0 before the first.")),
      input_bytes_(page.counter("framelane_input_bytes_total",
                                "Bytes of video and sound that came from the source, without what "
                                "its container and the network add.")),
      frames_missed_(page.counter("framelane_input_frames_missed_total",
                                  "Frames that the producer of an input in shared memory published "
                                  "and did not give to the feed.")),
      packets_skipped_(page.counter("framelane_decode_skipped_total",
                                    "Pictures that were not decoded, because the feed's skip says "
                                    "so.")),
      source_reconnects_(
          page.counter("framelane_source_reconnects_total",
                       "How often the source was lost or could not be opened, by cause.")),
      restarts_(page.counter("framelane_feed_restarts_total",
                             "How often the supervisor restarted the feed, by cause.")),
      timestamp_repairs_(page.counter("framelane_timestamp_repairs_total",
                                      "Timestamps of the source that were repaired.")),
      decode_errors_(page.counter("framelane_decode_errors_total",
                                  "Packets from which no frame could be decoded, by cause.")),
      host_copies_(page.counter("framelane_host_copies_total",
                                "Frames whose pixels were copied on the host, by cause.")),
      bottleneck_(
          page.gauge("framelane_feed_bottleneck",
                     "1 for the step that limits the rate of a running feed, 0 for the others.")),
      luma_mean_(page.gauge("framelane_feed_luma_mean",
                            "With analyse: true, the mean of the luma samples of the newest frame, "
                            "0 to 255, as the first encode that decodes gets it.")),
      frames_in_(page.counter("framelane_frames_in_total",
                              "Frames that the decoder (raw video: the reader) returned.")),
      frames_out_(
          page.counter("framelane_frames_out_total", "Frames whose packet the encoder returned.")),
      frames_in_flight_(page.gauge("framelane_frames_in_flight",
                                   "Frames that are neither out nor dropped yet: in the ring, in "
                                   "conversion or in the encoder.")),
      frames_dropped_(page.counter("framelane_frames_dropped_total",
                                   "Frames that the encoder did not return as packets, by cause.")),
      encode_info_(page.gauge("framelane_encode_info",
                              "The encoder that was chosen for the encode, or copy; empty until it "
                              "has been opened; always 1.")),
      encode_size_(page.gauge("framelane_encode_size_pixels",
                              "Width and height of the pictures that the encoder gets; not there "
                              "until it has been opened.")),
      audio_info_(page.gauge("framelane_audio_info",
                             "The encoder that was chosen for the encode's sound; empty until it "
                             "has been opened; always 1.")),
      audio_in_(page.counter("framelane_audio_packets_in_total",
                             "Packets of sound that came to be transcoded.")),
      audio_out_(page.counter("framelane_audio_packets_out_total",
                              "Packets of sound that the encoder has returned, transcoded.")),
      audio_in_flight_(page.gauge("framelane_audio_packets_in_flight",
                                  "Packets of sound that are neither out nor dropped yet.")),
      audio_dropped_(
          page.counter("framelane_audio_packets_dropped_total",
                       "Packets of sound that were lost while they were transcoded, by cause.")),
      audio_repairs_(page.counter("framelane_audio_repairs_total",
                                  "How often the sound was brought back in step, by means.")),
      latency_(page.histogram("framelane_frame_latency_seconds",
                              "Time from when a frame is decoded until its packet is queued for "
                              "the outputs, the encoder's lookahead included.")),
      step_duration_(page.histogram(
          "framelane_stage_duration_seconds",
          "Time that a frame spent in each step. wait: for a place in the ring; encode: from being "
          "sent to the encoder to its packet; mux: from the queueing of a packet to its write. On "
          "a GPU a copy or kernel counts from some 9 microseconds before its work.")),
      ring_jobs_(page.gauge("framelane_ring_jobs",
                            "Jobs in the feed's ring: in conversion, or ready for an encode.")),
      lane_busy_(page.counter("framelane_lane_busy_seconds_total",
                              "Time that the lane spent on each kind of work. On a GPU each copy "
                              "and kernel counts from some 9 microseconds before its work: a "
                              "kernel of a 1080p frame as 2.6 times its work.")),
      lane_occupancy_(page.gauge("framelane_lane_occupancy_ratio",
                                 "Share of the last 10 s in which the lane was busy.")),
      output_up_(page.gauge("framelane_output_up",
                            "1 if the output is being written and does not wait for its encode; "
                            "with several encodes, "
                            "if all of its renditions are.")),
      output_paused_(page.gauge("framelane_output_paused",
                                "1 if the output, or one of its renditions, waits because the disk "
                                "is full, or before it reconnects.")),
      output_queue_(page.gauge("framelane_output_queue_packets",
                               "Packets that wait for the output's thread.")),
      output_bytes_(page.counter("framelane_output_bytes_total", "Bytes written to the output.")),
      output_reconnects_(
          page.counter("framelane_output_reconnects_total",
                       "How often the output was lost or could not be opened, by cause.")),
      output_drops_(page.counter("framelane_output_packets_dropped_total",
                                 "Packets that were not written, by cause.")),
      output_retention_errors_(page.counter("framelane_output_retention_errors_total",
                                            "Failures to delete old recordings, by cause.")) {}

void FeedMetrics::add(const FeedView& feed) {
  const FeedStats& stats = *feed.stats;
  const FeedStats::Status status = stats.status();
  const MetricLabels labels{{"feed", stats.feed()}};
  const bool running = status.state == FeedState::kRunning;
  up_.add(labels, is_up(feed, std::chrono::steady_clock::now()) ? 1 : 0);
  state_.add_each(labels, "state", kFeedStateNames,
                  one_of<kFeedStateNames.size()>(index_of(status.state)));
  info_.add({{"feed", stats.feed()}, {"decoder", status.decoder}, {"device", status.device}}, 1);
  last_frame_.add(labels, seconds(stats.last_arrival().time_since_epoch()));
  input_bytes_.add(labels, static_cast<double>(stats.input_bytes));
  if (shm_socket(feed.options->input.url)) {
    frames_missed_.add(labels, static_cast<double>(stats.frames_missed));
  }
  if (feed.options->input.skip != Skip::kNone) {
    packets_skipped_.add(labels, static_cast<double>(stats.packets_skipped));
  }
  source_reconnects_.add_each(labels, "reason", kIoFaultNames, stats.reconnects);
  restarts_.add_each(labels, "reason", kFeedFaultNames, stats.restarts);
  timestamp_repairs_.add_each(labels, "reason", kTimestampRepairNames, stats.timestamp_repairs);
  decode_errors_.add_each(labels, "reason", kDecodeFaultNames, stats.decode_faults);
  host_copies_.add_each(labels, "reason", kHostCopyNames, stats.host_copies);
  const std::size_t limit =
      running ? index_of(bottleneck(step_loads(feed))) : kBottleneckNames.size();
  bottleneck_.add_each(labels, "stage", kBottleneckNames, one_of<kBottleneckNames.size()>(limit));
  const double luma_mean = stats.luma_mean;
  if (!std::isnan(luma_mean)) luma_mean_.add(labels, luma_mean);
  const FeedStats::Ledger ledger = stats.ledger();
  add_frames(stats, ledger, status.device);
  add_encodes(stats.feed(), ledger);
  add_outputs(stats);
}

void FeedMetrics::add_frames(const FeedStats& stats, const FeedStats::Ledger& ledger,
                             const std::string& device) {
  const MetricLabels labels{{"feed", stats.feed()}};
  const auto add_step = [&](StageStep step) {
    step_duration_.add(
        {{"feed", stats.feed()}, {"stage", std::string(kStageStepNames[index_of(step)])}},
        stats.steps[index_of(step)].snapshot());
  };
  add_step(StageStep::kMux);
  if (!decodes(ledger)) return;  // a feed that only copies has no frames
  add_step(StageStep::kDecode);
  add_step(StageStep::kWait);
  add_step(StageStep::kKernel);
  add_step(StageStep::kEncode);
  // A feed that has moved from a GPU to the CPU keeps its counters.
  const bool transfers =
      device.starts_with("cuda") || stats.steps[index_of(StageStep::kH2d)].snapshot().count > 0;
  if (transfers) {
    add_step(StageStep::kH2d);
    add_step(StageStep::kD2h);
  }
  ring_jobs_.add_each(labels, "state", kRingStateNames, *stats.ring_jobs());
  const auto lanes = stats.lanes();
  for (std::size_t i = 0; i < lanes.size(); ++i) {
    const EngineMeters& busy = lanes[i]->busy;
    const MetricLabels lane{{"feed", stats.feed()}, {"lane", std::to_string(i)}};
    lane_occupancy_.add(lane, busy.any().recent_ratio());
    for (const Engine op : {Engine::kH2d, Engine::kKernel, Engine::kD2h}) {
      if (op != Engine::kKernel && !transfers) continue;
      MetricLabels with_op = lane;
      with_op.push_back({"op", std::string(kEngineNames[index_of(op)])});
      lane_busy_.add(std::move(with_op), seconds(busy[op].total()));
    }
  }
}

void FeedMetrics::add_encodes(const std::string& feed, const FeedStats::Ledger& ledger) {
  if (decodes(ledger)) frames_in_.add({{"feed", feed}}, static_cast<double>(ledger.frames_in));
  for (const FeedStats::EncodeLine& counts : ledger.encodes) {
    const EncodeStats& encode = *counts.stats;
    const MetricLabels labels{{"feed", feed}, {"encode", encode.name}};
    MetricLabels info = labels;
    info.push_back({"codec", encode.copy ? "copy" : encode.codec()});
    encode_info_.add(std::move(info), 1);
    if (encode.audio.transcodes) add_audio(feed, encode);
    if (encode.copy) continue;  // copied packets are not decoded, so there are no frames
    if (const auto [width, height] = encode.size(); width > 0) {
      encode_size_.add_each(labels, "axis", std::array<std::string_view, 2>{"width", "height"},
                            std::array{width, height});
    }
    frames_out_.add(labels, static_cast<double>(counts.out));
    frames_in_flight_.add(labels, static_cast<double>(counts.in_flight));
    frames_dropped_.add_each(labels, "reason", kDropReasonNames, counts.dropped);
    latency_.add(labels, encode.latency.snapshot());
  }
}

void FeedMetrics::add_audio(const std::string& feed, const EncodeStats& encode) {
  const MetricLabels labels{{"feed", feed}, {"encode", encode.name}};
  MetricLabels info = labels;
  info.push_back({"codec", encode.audio.codec()});
  audio_info_.add(std::move(info), 1);
  const AudioCounts counts = encode.audio.counts();
  audio_in_.add(labels, static_cast<double>(counts.in));
  audio_out_.add(labels, static_cast<double>(counts.out));
  audio_in_flight_.add(labels, static_cast<double>(counts.in_flight));
  audio_dropped_.add_each(labels, "reason", kAudioDropNames, counts.dropped);
  audio_repairs_.add_each(labels, "reason", kAudioRepairNames, encode.audio.repairs);
}

void FeedMetrics::add_outputs(const FeedStats& stats) {
  for (const OutputTotals& output : output_totals(stats)) {
    const MetricLabels labels{{"feed", stats.feed()}, {"output", output.name}};
    output_up_.add(labels, output.up ? 1 : 0);
    output_paused_.add(labels, output.paused ? 1 : 0);
    output_queue_.add(labels, static_cast<double>(output.queue_packets));
    output_bytes_.add(labels, static_cast<double>(output.bytes));
    output_reconnects_.add_each(labels, "reason", kIoFaultNames, output.reconnects);
    output_drops_.add_each(labels, "reason", kPacketDropNames, output.packets_dropped);
    output_retention_errors_.add_each(labels, "reason", kRetentionFaultNames,
                                      output.retention_faults);
  }
}

}  // namespace framelane
