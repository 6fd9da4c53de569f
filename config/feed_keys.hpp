#pragma once

#include <map>
#include <string>
#include <vector>

#include "config/keys.hpp"

namespace framelane {

// Declared and not included: a new key of one of them must not rebuild the tables of the others.
struct EncodeOptions;
struct FeedOptions;
struct InputOptions;
struct OutputOptions;

const Section<InputOptions>& input_keys();
const Section<EncodeOptions>& encode_keys();
const Section<OutputOptions>& output_keys();

/// The keys of `defaults` and of a profile.
const Section<FeedOptions>& layer_keys();
/// The keys of a feed: the same, and `profile`, which is merged before the feed is read.
const Section<FeedOptions>& feed_keys();

/// Where the outputs of all feeds write, to find those that would write to the same place.
struct OutputPlaces {
  struct Files {
    std::string pattern;  ///< of a file output, absolute
    bool deletes;         ///< the output deletes old segments (`keep`)
    std::string output;   ///< for messages
  };
  std::map<std::string, std::string> taken;  ///< a place, and which output writes there
  std::vector<Files> files;
};

/// Fills in the built-in values of what the configuration leaves out, and reports keys that do not
/// fit together. `feed` has been read from `node`, which is merged from defaults, profile and feed,
/// with `reader`.
void complete_feed(const Node& node, FeedOptions& feed, Reader& reader, OutputPlaces& places);

}  // namespace framelane
