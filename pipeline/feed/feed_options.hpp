#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "pipeline/encode/encode_options.hpp"
#include "pipeline/output/output_options.hpp"
#include "pipeline/source/input_options.hpp"
#include "pipeline/stage/device_choice.hpp"

namespace framelane {

/// on_full: what happens to a frame or packet if the ring or a queue is full. kAuto: as
/// blocks_when_full says.
enum class OnFull { kAuto, kBlock, kDrop };

inline constexpr int kMostSlices = 16;

/// A feed's configuration.
struct FeedOptions {
  std::string name;
  InputOptions input;
  std::vector<EncodeOptions> encodes;
  std::vector<OutputOptions> outputs;
  std::optional<DeviceChoice> device{};  ///< empty: that of the process
  int ring = 8;                          ///< frames in flight, at most
  int lanes = 3;                         ///< frames that are converted side by side
  std::optional<int> slices;  ///< row ranges that a frame's upload is cut into; empty: by its size
  OnFull on_full = OnFull::kAuto;
  /// A live source that has been silent for longer counts as gone: recordings and playlists end,
  /// and begin anew when it is back. Empty: it never does.
  std::optional<std::chrono::milliseconds> split_after{5000};
  bool analyse = false;  ///< count the luma of each frame as the first encode that decodes gets it
  /// --once and transcode: a source that cannot be opened, or breaks, fails the feed at once.
  bool once = false;
  /// Outputs recover the files that an earlier run left, of this process or another.
  bool recover = false;

  friend bool operator==(const FeedOptions&, const FeedOptions&) = default;
};

/// True if Feed::change can make `b` of `a`. They may differ in outputs, encodes, the mask,
/// `on_full` and the input's `reconnect`. But the source has to be read as before: some encode
/// decodes in both or in none, and some wants sound in both or in none. Renditions belong together:
/// neither they nor their encodes may change, except in what is drawn and in what
/// can_change_in_place.
bool can_change_in_run(const FeedOptions& a, const FeedOptions& b);

/// True if some encode does not copy its video.
bool converts(const FeedOptions& options);

/// True if a full ring or queue makes its producer wait, false if the frame or packet is dropped.
/// kAuto: a live source drops, any other waits.
bool blocks_when_full(OnFull on_full, bool live);

}  // namespace framelane
