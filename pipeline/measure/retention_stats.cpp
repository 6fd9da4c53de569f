#include "pipeline/measure/retention_stats.hpp"

#include <utility>

namespace framelane {

void RetentionStats::failed(RetentionFault fault, std::string reason) {
  ++counts_[index_of(fault)];
  const std::lock_guard lock(mutex_);
  reasons_[index_of(fault)] = std::move(reason);
}

void RetentionStats::recovered(RetentionFault fault) {
  const std::lock_guard lock(mutex_);
  reasons_[index_of(fault)].clear();
}

std::string RetentionStats::reason() const {
  const std::lock_guard lock(mutex_);
  std::string all;
  for (const std::string& reason : reasons_) {
    if (!reason.empty()) all += (all.empty() ? "" : "; ") + reason;
  }
  return all;
}

}  // namespace framelane
