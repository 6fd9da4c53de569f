#pragma once

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "pipeline/output/disk_retention.hpp"
#include "tests/pipeline/output/old_files.hpp"
#include "tests/pipeline/output/output_fixture.hpp"

namespace framelane::testing {

using WallTime = std::chrono::system_clock::time_point;

inline const WallTime kNoon = std::chrono::system_clock::from_time_t(1'700'000'000);

inline SegmentOptions keep_for(std::chrono::seconds age) {
  SegmentOptions keep;
  keep.keep_age = age;
  return keep;
}
inline SegmentOptions keep_up_to(std::int64_t bytes) {
  SegmentOptions keep;
  keep.keep_bytes = bytes;
  return keep;
}
inline SegmentOptions keep_free(DiskShare share) {
  SegmentOptions keep;
  keep.keep_free = share;
  return keep;
}

inline dev_t device_of(const std::string& path) {
  struct stat status {};
  EXPECT_EQ(stat(path.c_str(), &status), 0);
  return status.st_dev;
}

/// One file system with outputs, which does its turns when the test says so.
class DiskRetentionTest : public ::testing::Test {
 protected:
  /// As on a disk whose thread has run for a while.
  DiskRetentionTest() {
    disk_.turn({now_.steady - DiskRetention::kSpaceEvery, now_.wall}, outputs_);
  }
  OutputRetention& add(const std::string& name, const SegmentOptions& keep) {
    stats_.push_back(std::make_shared<RetentionStats>());
    retentions_.push_back(std::make_unique<OutputRetention>(FilePattern(folder_ / name), keep,
                                                            "gate: output " + name, stats_.back()));
    outputs_.push_back(retentions_.back().get());
    return *outputs_.back();
  }
  /// All that is due after this time.
  void round(std::chrono::milliseconds later = {}) {
    now_.steady += later;
    now_.wall += later;
    while (disk_.turn(now_, outputs_)) {
    }
  }
  /// One output, and all that is due at noon.
  void round_of(const std::string& path, const SegmentOptions& keep) {
    add(path, keep);
    round();
  }
  /// The output writes this file.
  void complete(OutputRetention& output, const std::string& name, std::size_t bytes = 1) {
    write_aged(folder_ / name, now_.wall, bytes);
    output.completed(folder_ / name, disk_.calls());
    disk_.check_space();
  }
  std::set<std::string> names() const { return names_in(folder_ / ""); }
  std::uint64_t faults(std::size_t output, RetentionFault fault) const {
    return stats_[output]->counts()[index_of(fault)];
  }

  const MemoryFolder folder_;
  const dev_t device_ = device_of(folder_ / "");
  /// A disk of 1000 bytes on which the files are all there is.
  DiskSpace space() const {
    std::int64_t used = 0;
    for (const std::string& name : names()) {
      used += static_cast<std::int64_t>(std::filesystem::file_size(folder_ / name));
    }
    return DiskSpace{.device = device_, .whole = 1000, .free = 1000 - used};
  }
  SpaceOf space_of_ = [this](const std::string&) { return space(); };
  DiskRetention disk_{device_, [this](const std::string& folder) { return space_of_(folder); }};
  ClockReading now_{std::chrono::steady_clock::time_point(24h), kNoon};
  std::vector<std::shared_ptr<RetentionStats>> stats_;
  std::vector<std::unique_ptr<OutputRetention>> retentions_;
  std::vector<OutputRetention*> outputs_;
};

}  // namespace framelane::testing
