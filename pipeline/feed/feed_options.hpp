#pragma once

#include <optional>
#include <string>
#include <vector>

#include "pipeline/encode/encode_options.hpp"
#include "pipeline/output/output_options.hpp"
#include "pipeline/source/input_options.hpp"

namespace framelane {

enum class OnFull { kAuto, kBlock, kDrop };

inline constexpr int kMostSlices = 16;

struct FeedOptions {
  std::string name;
  InputOptions input;
  std::vector<EncodeOptions> encodes;
  std::vector<OutputOptions> outputs;
  int ring = 8;
  int lanes = 3;
  std::optional<int> slices;  ///< row ranges a frame's upload is cut into; empty: by its size
  OnFull on_full = OnFull::kAuto;
  bool analyse = false;  ///< the luma of what the first encode that decodes encodes
  /// --once and transcode: a source that cannot be opened or breaks fails the feed at once.
  bool once = false;
  /// The feed's first start in this process: outputs complete what an earlier one left behind.
  bool recover = false;
};

/// Whether a full ring or queue makes the producer wait (true) or lose the frame (false), when the
/// source is live or not.
bool blocks_when_full(OnFull on_full, bool live);

}  // namespace framelane
