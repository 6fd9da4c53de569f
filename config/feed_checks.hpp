#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "config/av_names.hpp"
#include "config/feed_keys.hpp"

namespace framelane {

struct BackoffOptions;

/// A feed that has been read, with what its checks need. The checks are in one file for each part:
/// input_checks.cpp, encode_checks.cpp, output_checks.cpp and rendition_checks.cpp.
struct ReadFeed {
  const Node& node;  ///< merged from defaults, profile and feed
  FeedOptions& feed;
  Reader& reader;  ///< with the scope that the feed was read in

  Problems& problems() const { return reader.problems(); }
};

/// Also removes the options of raw video if the input is not raw.
void check_input(const ReadFeed& read);
/// Fills in what the configuration leaves out: the encode "main", the codec. Requires check_input.
void complete_encodes(const ReadFeed& read);
/// Fills in `from`, and makes an output of each encode in a list there. Requires complete_encodes.
void complete_outputs(const ReadFeed& read, OutputPlaces& places);

/// The checks of one output. `node` is the map it was read from.
void check_output(const ReadFeed& read, const Node& node, OutputOptions& output,
                  OutputPlaces& places);
/// An output for each encode in the list `from` of `node`, all checked; none where one cannot tell.
std::vector<OutputOptions> make_renditions(const ReadFeed& read, const Node& node,
                                           const OutputOptions& output, OutputPlaces& places);
/// Why the path of a playlist must not have a field of the time, if it has one.
std::optional<std::string> time_in_playlist_path(std::string_view path);
/// The path from the root on, without "." and "..".
std::string full_path(const std::string& path);

/// Of the key `reconnect` of `owner`, an input or an output.
void check_backoff(const Node& owner, const BackoffOptions& backoff, Problems& problems);
/// Reports the option at `node` if its name is not among those that `owner` knows.
void check_option(const Node& node, const std::string& name, const AvNames& known,
                  const std::string& owner, Problems& problems);

bool is_raw(const FeedOptions& feed);

}  // namespace framelane
