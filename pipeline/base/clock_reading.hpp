#pragma once

#include <chrono>

namespace framelane {

/// Both clocks, read at one moment, for code that is told the time so that tests can choose it.
struct ClockReading {
  std::chrono::steady_clock::time_point steady;  ///< for how long something takes
  std::chrono::system_clock::time_point wall;    ///< for names and dates of files; may be set back

  static ClockReading now() {
    return {std::chrono::steady_clock::now(), std::chrono::system_clock::now()};
  }

  /// The wall time of an earlier or later moment, as this reading's wall clock counts.
  std::chrono::system_clock::time_point wall_at(
      std::chrono::steady_clock::time_point moment) const {
    return wall - std::chrono::duration_cast<std::chrono::system_clock::duration>(steady - moment);
  }
};

}  // namespace framelane
