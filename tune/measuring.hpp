// What `framelane tune` and its check measure with.
#pragma once

#include <array>
#include <cstddef>
#include <string>
#include <vector>

#include "bench/product/stage_work.hpp"
#include "tune/tune.hpp"

namespace framelane::bench {

/// Not fewer than the default: those that are not needed for speed wait for slow encoders.
inline constexpr std::array kRings{kRing, 16, 32};
/// Measured at once.
inline constexpr int kMostFeeds = 64;
/// The last contenders have so many times the rounds.
inline constexpr int kLastRounds = 3;

/// "1920x1080 bgra to nv12"
std::string work_of(const Conversion& convert);
/// Frames a second, where a frame takes the median of these.
double frames_per_second(const std::vector<double>& milliseconds);
/// Bytes of a GPU's memory, for one feed.
std::size_t device_bytes(const FeedKind& kind, int lanes);
std::size_t free_device_bytes(const Session& session);

/// One device, and the rows that come of measuring on it. One thread.
class Measuring {
 public:
  Measuring(const Session& session, Result& result) : session_(session), result_(result) {}

 protected:
  bool on_gpu() const { return device_.gpu != nullptr; }
  /// As it is measured: slices are a GPU's.
  StageShape shape_of(const Settings& settings) const;
  Session session_on(bool gpu) const {
    Session session = session_;
    if (!gpu) session.gpu = nullptr;
    return session;
  }
  /// Those to be tried on this device.
  std::vector<int> lane_counts() const;
  /// Whether something went wrong that leaves nothing to recommend.
  bool is_over() const;
  /// Rows from there on have the name of their part.
  void label(std::size_t first, const std::string& part);
  /// One row for each setup, in order, but for those too large to try; where there was no room for
  /// it, without samples. Throws what the device says.
  std::vector<Row> measure(const FeedKind& kind, const std::vector<Setup>& setups,
                           const std::string& part, bool with_ceilings = false);
  /// Enough feeds to keep all processors at work, or the GPU.
  int many_feeds(const FeedKind& kind, const Settings& settings) const;
  /// Those there are, as far as all of their settings find room.
  int its_feeds(const FeedKind& kind) const;
  /// So many, or fewer, where there is not room for them.
  int fitting(const FeedKind& kind, const Settings& settings, int feeds) const;

  struct Seen {
    Conversion convert;
    double frames_per_second;
  };

  const Session& session_;
  Result& result_;
  Session device_;  // session_ with the chosen device alone
  double turn_ = 0;
  std::vector<Seen> seen_;

 private:
  double turn_of(const FeedKind& kind) const;
};

/// Measures how many feeds of the kind run at their rate, with the settings and the device that
/// were chosen. False after a stop or where that could not be measured.
bool find_ceiling(const Measuring& measuring, TunedKind& tuned);

}  // namespace framelane::bench
