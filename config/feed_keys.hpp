#pragma once

#include "config/keys.hpp"

namespace framelane {

// Declared and not included: a new key of one of them must not rebuild the tables of the others.
struct EncodeOptions;
struct FeedOptions;
struct InputOptions;
struct OutputOptions;
struct Rect;
struct SizeOption;
class OutputPlaces;

const Section<InputOptions>& input_keys();
const Section<EncodeOptions>& encode_keys();
const Section<OutputOptions>& output_keys();

/// The key `overlay` of an encode.
Key<EncodeOptions> overlay_key();
/// Of an encode. The command line has them too.
Shape bitrate_shape();
Shape gop_shape();
/// What a value of kImagePart and one of kSizeOrShape mean.
Rect image_part(const Value& value);
SizeOption size_option(const Value& value);

/// The keys of `defaults` and of a profile.
const Section<FeedOptions>& layer_keys();
/// The keys of a feed: the same, and `profile`, which is merged before the feed is read.
const Section<FeedOptions>& feed_keys();

/// Fills in the built-in values of what the configuration leaves out, and reports keys that do not
/// fit together. `feed` has been read from `node`, which is merged from defaults, profile and feed,
/// with `reader`.
void complete_feed(const Node& node, FeedOptions& feed, Reader& reader, OutputPlaces& places);

}  // namespace framelane
