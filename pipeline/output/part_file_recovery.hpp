#pragma once

#include <stop_token>
#include <string>

#include "pipeline/output/output_options.hpp"

namespace framelane {

/// Completes the part files that an earlier process left where this output writes: a NAME.part with
/// something to play in it becomes NAME, or the next free numbered name; one without is removed.
/// Part files that another process writes stay, and so does what was not examined before the stop.
/// Logs what it did, for the feed of this name. Called once per output, before its feed's packets
/// come. Blocks as long as the file system does, and up to five seconds for each file.
void recover_part_files(const OutputOptions& options, const std::string& feed,
                        const std::stop_token& stop = {});

}  // namespace framelane
