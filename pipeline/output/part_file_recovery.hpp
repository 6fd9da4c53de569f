#pragma once

#include <stop_token>
#include <string>

#include "pipeline/output/output_options.hpp"

namespace framelane {

/// Completes what an earlier process left behind at this output's place: NAME.part that holds
/// something playable becomes NAME (or NAME.N when that exists), empty ones are removed. Logs what
/// it did, for the feed of this name; what could not be looked at before the stop stays. Called
/// once per output before its feed's packets come.
void recover_leftovers(const OutputOptions& options, const std::string& feed,
                       const std::stop_token& stop = {});

}  // namespace framelane
