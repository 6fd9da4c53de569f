// What `framelane tune` and its check measure with.
#pragma once

#include <array>
#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "bench/product/stage_work.hpp"
#include "tune/tune.hpp"

namespace framelane::bench {

/// None is smaller than the default: places that speed does not need hold frames for slow encoders.
inline constexpr std::array kRings{kRing, 16, 32};
/// The most feeds that are measured at once.
inline constexpr int kMostFeeds = 64;
/// How many times more rounds the last contenders get.
inline constexpr int kLastRounds = 3;

/// "1920x1080 bgra to nv12": the frames' size, and what is made of them.
std::string work_of(const FeedKind& kind);
/// Frames a second, where a frame takes the median of these.
double frames_per_second(const std::vector<double>& milliseconds);

/// Measures setups on one device and collects the rows. One thread.
class Measuring {
 public:
  Measuring(const Session& session, Result& result)
      : session_(session), result_(result), device_(session) {}

 protected:
  bool on_gpu() const { return device_.gpu != nullptr; }
  /// The shape to measure. Slices are left out on the CPU, which has none.
  StageShape shape_of(const Settings& settings) const;
  Session session_on(bool gpu) const {
    Session session = session_;
    if (!gpu) session.gpu = nullptr;
    return session;
  }
  /// The numbers of lanes to try on this device.
  std::vector<int> lane_counts() const;
  /// Whether there is nothing to recommend: after a stop, or after a wrong result.
  bool is_over() const;
  /// Gives the rows from `first` on the parameter "part".
  void label(std::size_t first, const std::string& part);
  /// Measures the setups; returns a row for each, in order. Setups that are too large to try have
  /// no row; those for which there was no room have no samples. Throws the device's errors.
  std::vector<Row> measure(const FeedKind& kind, const std::vector<Setup>& setups,
                           const std::string& part, bool with_ceilings = false);
  /// Enough feeds to keep all processors, or the GPU, busy.
  int many_feeds(const FeedKind& kind, const Settings& settings) const;
  /// The number of feeds of this kind, or fewer if there is no room for them with every setting.
  int its_feeds(const FeedKind& kind) const;
  /// `feeds`, or fewer if there is no room for so many.
  int fitting(const FeedKind& kind, const Settings& settings, int feeds) const;

  struct Seen {
    std::vector<Conversion> conversions;
    double frames_per_second;
  };

  const Session& session_;
  Result& result_;
  Session device_;  // session_; with only the chosen device once there is one
  double turn_ = 0;
  std::vector<Seen> seen_;

  /// The kind's frames, which stay until another kind is measured: their exact results take long.
  std::shared_ptr<StageFrames> frames_for(const FeedKind& kind);

 private:
  std::shared_ptr<StageFrames> frames_;
  double turn_of(const FeedKind& kind) const;
};

/// Measures how many feeds of the kind run at their rate, with the settings and the device that
/// were chosen. False after a stop or where that could not be measured.
bool find_ceiling(const Measuring& measuring, TunedKind& tuned);

}  // namespace framelane::bench
