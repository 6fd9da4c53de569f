#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <mutex>
#include <string>

#include "pipeline/base/labels.hpp"

namespace framelane {

/// What goes wrong when one output's old files are deleted. Any thread.
class RetentionStats {
 public:
  /// Counts the fault. `reason` is shown until it is over.
  void failed(RetentionFault fault, std::string reason);
  void recovered(RetentionFault fault);

  using Counts = std::array<std::atomic<std::uint64_t>, kRetentionFaultNames.size()>;
  const Counts& counts() const { return counts_; }
  /// What is wrong at present; empty if nothing is.
  std::string reason() const;

 private:
  Counts counts_{};
  mutable std::mutex mutex_;
  std::array<std::string, kRetentionFaultNames.size()> reasons_;
};

}  // namespace framelane
