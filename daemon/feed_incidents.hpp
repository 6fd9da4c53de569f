#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>

#include "daemon/burst_watch.hpp"
#include "daemon/feed_view.hpp"
#include "daemon/format_watch.hpp"
#include "daemon/incidents.hpp"
#include "daemon/outage_watch.hpp"
#include "pipeline/base/labels.hpp"
#include "pipeline/measure/output_totals.hpp"

namespace framelane {

/// Finds the incidents of one feed in what it counts. One thread.
class FeedIncidents {
 public:
  /// So many frames or packets have to be lost in a short time.
  static constexpr std::uint64_t kBurst = 10;

  FeedIncidents(Incidents& incidents, const FeedView& feed);

  /// False if the feed's counts are others: it was removed and added again.
  bool is_of(const FeedView& feed) const { return feed.stats == stats_; }
  void look(const FeedView& feed, Moment now);
  /// The feed is watched no more. `because` is added to the texts of what lasts.
  void end(Moment now, std::string_view because);

 private:
  using FrameCounts = std::array<std::uint64_t, kDropReasonNames.size()>;
  using PacketCounts = std::array<std::uint64_t, kPacketDropNames.size()>;
  struct OutputWatch {
    OutageWatch outage;
    PacketCounts dropped{};
    BurstWatch losses;
  };

  Incident about(IncidentKind kind = {}, Severity severity = {}) const;
  void note_options(const std::shared_ptr<const FeedOptions>& options);
  void look_at_source(Moment now);
  void look_at_encodes(Moment now);
  void look_at_outputs(Moment now);
  void look_at_output(OutputWatch& watch, const OutputTotals& output, Moment now);

  Incidents& incidents_;
  const std::shared_ptr<const FeedStats> stats_;
  std::shared_ptr<const FeedOptions> options_;
  std::set<std::string> recording_outputs_;
  std::set<std::string> recorded_encodes_;
  OutageWatch source_;
  FormatWatch format_;
  std::uint64_t jumps_seen_ = 0;
  BurstWatch jumps_;
  std::map<std::string, OutageWatch> encodes_;
  std::map<std::string, FrameCounts> dropped_;  // by encode
  BurstWatch losses_;
  std::map<std::string, OutputWatch> outputs_;
};

}  // namespace framelane
