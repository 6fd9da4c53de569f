#include "pipeline/feed/encode_outage.hpp"

#include <fmt/core.h>

#include <utility>

#include "pipeline/base/failure.hpp"

namespace framelane {
namespace {

constexpr BackoffOptions kReopen{std::chrono::seconds(1), std::chrono::seconds(60)};

}  // namespace

EncodeOutage::EncodeOutage(std::string_view feed, EncodeStats& stats)
    : stats_(stats),
      faults_(fmt::format("feed {}: encode {}", feed, stats.name)),
      backoff_(kReopen) {
  stats_.set_reason({});  // of an earlier run
}

void EncodeOutage::failed(std::string reason, Clock::time_point now) {
  const std::string name = "encode " + stats_.name + ": ";  // the log has it already
  if (reason.starts_with(name)) reason.erase(0, name.size());
  const auto wait = backoff_.next();
  has_failed_ = true;
  next_try_ = now + wait;
  faults_.failed(fault_code(FeedFault::kEncoder), reason,
                 fmt::format("dropping its frames, trying again in {:.1f} s",
                             std::chrono::duration<double>(wait).count()),
                 now);
  stats_.set_reason(std::move(reason));
}

void EncodeOutage::opened(std::string_view codec) {
  if (!next_try_) return;
  next_try_.reset();
  stats_.set_reason({});
  faults_.recovered(codec);
}

}  // namespace framelane
