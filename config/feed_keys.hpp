#pragma once

#include <map>
#include <string>
#include <vector>

#include "config/keys.hpp"
#include "pipeline/encode/encode_options.hpp"
#include "pipeline/feed/feed_options.hpp"
#include "pipeline/output/output_options.hpp"
#include "pipeline/source/input_options.hpp"

namespace framelane {

const Section<InputOptions>& input_keys();
const Section<EncodeOptions>& encode_keys();
const Section<OutputOptions>& output_keys();

/// The keys of `defaults` and of a profile.
const Section<FeedOptions>& layer_keys();
/// The keys of a feed: those and `profile`, which has done its work before a feed is read.
const Section<FeedOptions>& feed_keys();

/// Where outputs write, over all feeds.
struct OutputPlaces {
  struct Files {
    std::string pattern;  ///< of a file output, absolute
    bool deletes;         ///< what `keep` does not allow
    std::string output;
  };
  std::map<std::string, std::string> taken;  ///< the place, and the output that has taken it
  std::vector<Files> files;
};

/// `feed` has been read from `node`, which is merged from defaults, profile and feed. Fills in what
/// these leave to built-in values and reports what does not fit together. `reader` has the scope
/// the feed was read in.
void complete_feed(const Node& node, FeedOptions& feed, Reader& reader, OutputPlaces& places);

}  // namespace framelane
