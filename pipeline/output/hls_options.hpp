#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "pipeline/base/av_option.hpp"

namespace framelane {

/// The options of FFmpeg's hls muxer that framelane knows: it writes playlists itself.
inline constexpr std::array<std::string_view, 9> kHlsOptionNames{
    "hls_time",          "hls_list_size", "hls_segment_type", "hls_segment_filename", "hls_flags",
    "hls_playlist_type", "hls_base_url",  "start_number",     "hls_delete_threshold"};

/// How a playlist and its segments are written. The defaults are FFmpeg's, but six segments are
/// listed and old ones deleted.
struct HlsOptions {
  std::chrono::microseconds time{2'000'000};  ///< a segment ends at the first keyframe after it
  std::size_t list_size = 6;                  ///< 0: all segments stay in the playlist
  bool fmp4 = false;                          ///< segments of MP4; else of MPEG-TS
  bool deletes = true;                        ///< removes segments that are listed no more
  std::size_t keeps_unlisted = 1;             ///< so many of them stay, for slow readers
  bool independent_segments = false;  ///< none begins without a keyframe, and the playlist says so
  bool program_date_time = false;
  bool event = false;              ///< the playlist promises that nothing leaves it
  std::string base_url{};          ///< stands before the names in the playlist
  std::string segment_filename{};  ///< a path with %d; empty: STEM-%d.ts beside the playlist
  std::optional<std::uint64_t> start_number{};
};

/// The same from an output's options. Throws FeedError(kConfiguration), "output NAME: ...", for an
/// option of FFmpeg's that is refused, and for a value that is none.
HlsOptions read_hls_options(const std::string& output, const AvOptions& options);

/// What is wrong with hls_flags if segments are to be independent, and nothing says how far apart
/// keyframes are.
inline constexpr std::string_view kNeedsGop =
    "has the flag independent_segments, which can be kept only if keyframes are never further "
    "apart "
    "than a time that is known; take an encode that encodes and has a gop, or remove the flag";

/// If this option is one of FFmpeg's that framelane's playlists do not have: why, and what to use
/// instead, as the end of a sentence. Otherwise nothing.
std::optional<std::string_view> why_hls_option_refused(std::string_view name);

/// What is wrong with the value of an option in kHlsOptionNames, without the value: "has the flag
/// single_file, ...". Nothing if it is right, or the option is another one.
std::optional<std::string> wrong_hls_value(const AvOption& option);

/// What is left for the muxer of the segments.
AvOptions without_hls_options(const AvOptions& options);

}  // namespace framelane
