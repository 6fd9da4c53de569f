#include "pipeline/output/hls_options.hpp"

extern "C" {
#include <libavutil/parseutils.h>
}

#include <algorithm>
#include <charconv>
#include <iterator>

#include "pipeline/base/failure.hpp"
#include "pipeline/output/hls_files.hpp"
#include "pipeline/output/media_playlist.hpp"

namespace framelane {
namespace {

template <typename Number>
bool read_number(const std::string& text, Number& number) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc() && end == text.data() + text.size();
}

bool read_time(const std::string& text, std::chrono::microseconds& time) {
  std::int64_t us = 0;
  if (av_parse_time(&us, text.c_str(), 1) < 0 || us < 100'000 || us > 3'600'000'000) return false;
  time = std::chrono::microseconds(us);
  return true;
}

struct Text {
  std::string_view name;  ///< of an option or a flag
  std::string_view text;
};

constexpr std::string_view kNoEncryption =
    "framelane does not encrypt segments; let the server ask for a password and use HTTPS";
constexpr std::string_view kNoServer =
    "a playlist is written into a folder and not to a server; remove it";
constexpr std::string_view kNoSubtitles = "framelane writes no subtitles; remove it";
constexpr std::string_view kOneVariant =
    "a list of encodes in from makes an output with a master playlist; remove it";
constexpr std::string_view kNotByTime =
    "segments are numbered; use %d in hls_segment_filename, and hls_flags: +program_date_time";
constexpr std::string_view kOneFragment = "a segment is one fragment; use hls_time";
constexpr std::string_view kSegmentOptions =
    "options of the muxer of the segments stand beside the others; write them there, one by one";

/// Options of FFmpeg's hls muxer that are not in kHlsOptionNames, and those of its mp4 muxer that
/// would tear segments apart.
constexpr auto kRefusedOptions = std::to_array<Text>({
    {"hls_init_time", "the first segments are as long as all; use hls_time"},
    {"hls_ts_options", kSegmentOptions},
    {"hls_segment_options", kSegmentOptions},
    {"hls_vtt_options", kNoSubtitles},
    {"hls_subtitle_path", kNoSubtitles},
    {"hls_allow_cache", "players no longer read it; let the server send Cache-Control"},
    {"hls_segment_size", "segments are cut by time; use hls_time"},
    {"hls_key_info_file", kNoEncryption},
    {"hls_enc", kNoEncryption},
    {"hls_enc_key", kNoEncryption},
    {"hls_enc_key_url", kNoEncryption},
    {"hls_enc_iv", kNoEncryption},
    {"hls_fmp4_init_filename",
     "every format of the stream gets a header of its own, STEM-init-N.mp4; remove it"},
    {"hls_fmp4_init_resend", "headers are never written again; remove it"},
    {"strftime", kNotByTime},
    {"strftime_mkdir", kNotByTime},
    {"hls_start_number_source",
     "numbers go on from the playlist that is there; use start_number for the first"},
    {"frag_duration", kOneFragment},
    {"frag_size", kOneFragment},
    {"method", kNoServer},
    {"http_user_agent", kNoServer},
    {"http_persistent", kNoServer},
    {"headers", kNoServer},
    {"timeout", "it is for servers; use the output's own timeout"},
    {"ignore_io_errors", "framelane tries again by itself; remove it"},
    {"var_stream_map", kOneVariant},
    {"cc_stream_map", kOneVariant},
    {"master_pl_name", kOneVariant},
    {"master_pl_publish_rate", kOneVariant},
});

constexpr std::string_view kSecondLevel = "it needs strftime, which is refused; remove it";

/// Flags of FFmpeg's hls_flags that say what framelane does anyway.
constexpr std::array<std::string_view, 3> kAlways{"temp_file", "append_list", "omit_endlist"};

/// Its flags that framelane does not have, and those in kAlways, which cannot be taken away.
constexpr auto kRefusedFlags = std::to_array<Text>({
    {"single_file", "every segment is a file of its own; remove it"},
    {"round_durations", "players need the exact times; remove it"},
    {"discont_start", "a discontinuity is written wherever the stream begins again; remove it"},
    {"split_by_time", "segments begin at keyframes if they can; set a shorter gop for the encode"},
    {"second_level_segment_index", kSecondLevel},
    {"second_level_segment_duration", kSecondLevel},
    {"second_level_segment_size", kSecondLevel},
    {"periodic_rekey", kNoEncryption},
    {"temp_file", "every file gets its name when it is complete; remove it"},
    {"append_list", "a daemon continues the playlist that is there; remove it"},
    {"omit_endlist", "playlists end with --once and transcode alone; remove it"},
    {"iframes_only", "framelane writes no playlists of keyframes alone; remove it"},
});

/// What the values of options are that have a form of their own.
constexpr auto kForms = std::to_array<Text>({
    {"hls_time", "0.1 to 3600 (seconds)"},
    {"hls_list_size", "a number of segments; 0: all"},
    {"hls_delete_threshold", "a number of segments"},
    {"start_number", "a number with at most 15 digits"},
    {"hls_segment_type", "mpegts or fmp4"},
    {"hls_playlist_type", "event; a playlist that grows cannot be of the type vod"},
    {"hls_segment_filename",
     "a path with one %d or %0Nd, no other percent sign, and no control characters"},
    {"hls_base_url", "the beginning of a URI, without control characters, quotation marks or #"},
});

template <std::size_t size>
std::optional<std::string_view> find(const std::array<Text, size>& table, std::string_view name) {
  const auto row = std::ranges::find(table, name, &Text::name);
  return row == table.end() ? std::nullopt : std::optional(row->text);
}

/// "+a-b" adds to the defaults and takes away from them; "a+b" replaces them. Returns the first
/// flag that is none, if there is one.
std::optional<std::string_view> read_flags(std::string_view text, HlsOptions& options) {
  if (!text.starts_with('+') && !text.starts_with('-')) {
    options.deletes = options.independent_segments = options.program_date_time = false;
  }
  while (!text.empty()) {
    const bool on = text[0] != '-';
    if (text[0] == '+' || text[0] == '-') text.remove_prefix(1);
    const std::string_view flag = text.substr(0, text.find_first_of("+-"));
    text.remove_prefix(flag.size());
    if (flag == "delete_segments") {
      options.deletes = on;
    } else if (flag == "independent_segments") {
      options.independent_segments = on;
    } else if (flag == "program_date_time") {
      options.program_date_time = on;
    } else if (!on || std::ranges::find(kAlways, flag) == kAlways.end()) {
      return flag;
    }
  }
  return {};
}

/// A playlist has one name a line.
bool has_control_characters(const std::string& text) {
  return std::ranges::any_of(
      text, [](char c) { return static_cast<unsigned char>(c) < ' ' || c == '\x7f'; });
}

bool read(const AvOption& option, HlsOptions& options) {
  const std::string& value = option.value;
  if (option.key == "hls_time") return read_time(value, options.time);
  if (option.key == "hls_list_size") return read_number(value, options.list_size);
  if (option.key == "hls_delete_threshold") return read_number(value, options.keeps_unlisted);
  if (option.key == "hls_flags") return !read_flags(value, options);
  if (option.key == "start_number") {
    return read_number(value, options.start_number.emplace()) &&
           *options.start_number < kLargestSegmentNumber;
  }
  if (option.key == "hls_segment_type") {
    options.fmp4 = value == "fmp4" || value == "1";
    return options.fmp4 || value == "mpegts" || value == "0";
  }
  if (option.key == "hls_playlist_type") {
    options.event = true;
    return value == "event" || value == "1";
  }
  if (option.key == "hls_base_url") {
    options.base_url = value;
    return !has_control_characters(value) && value.find_first_of("\"#") == value.npos;
  } else if (option.key == "hls_segment_filename") {
    options.segment_filename = value;
    return NumberSeries::parse(value).has_value() && !has_control_characters(value);
  }
  return true;
}

[[noreturn]] void refuse_option(const std::string& output, const std::string& key,
                                const std::string& problem) {
  throw FeedError(FeedFault::kConfiguration,
                  "output " + output + ": option " + key + " " + problem);
}

}  // namespace

std::optional<std::string_view> why_hls_option_refused(std::string_view name) {
  return find(kRefusedOptions, name);
}

std::optional<std::string> wrong_hls_value(const AvOption& option) {
  HlsOptions hls;
  if (read(option, hls)) return {};
  if (const auto form = find(kForms, option.key)) return "is not " + std::string(*form);
  const std::string_view flag = *read_flags(option.value, hls);
  if (const auto why = find(kRefusedFlags, flag)) {
    return "has the flag " + std::string(flag) + ", which is refused: " + std::string(*why);
  }
  return "has a flag that is none; the flags are delete_segments, independent_segments and "
         "program_date_time";
}

HlsOptions read_hls_options(const std::string& output, const AvOptions& options) {
  HlsOptions hls;
  for (const AvOption& option : options) {
    if (const auto why = why_hls_option_refused(option.key)) {
      refuse_option(output, option.key, "is refused: " + std::string(*why));
    }
    if (!read(option, hls)) refuse_option(output, option.key, *wrong_hls_value(option));
  }
  if (hls.event) {
    hls.list_size = 0;
    hls.deletes = false;
  }
  return hls;
}

AvOptions without_hls_options(const AvOptions& options) {
  AvOptions others;
  std::ranges::copy_if(options, std::back_inserter(others), [](const AvOption& option) {
    return std::ranges::find(kHlsOptionNames, option.key) == kHlsOptionNames.end();
  });
  return others;
}

}  // namespace framelane
