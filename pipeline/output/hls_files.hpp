#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace framelane {

/// Names that differ in their number alone.
struct NumberSeries {
  std::string before;
  std::string after;
  std::size_t width = 1;  ///< with zeros in front the number has at least so many digits

  /// From a pattern with one %d, which may have a width (%03d), and no other percent sign.
  static std::optional<NumberSeries> parse(std::string_view pattern);

  std::string name(std::uint64_t number) const;
  /// Nothing if `text` is no name of the series.
  std::optional<std::uint64_t> number_of(std::string_view text) const;
};

/// The files beside one HLS playlist: its segments, and the headers of fragmented MP4. The playlist
/// may replace and remove nothing but these. Immutable: any thread.
class HlsFiles {
 public:
  /// `segment_filename` as in HlsOptions.
  HlsFiles(const std::filesystem::path& playlist, const std::string& segment_filename);

  /// Of the playlist; "." if its path has none.
  const std::filesystem::path& folder() const { return folder_; }
  std::filesystem::path segment(std::uint64_t number, bool fmp4) const;
  /// Named after the first segment that needs it.
  std::filesystem::path header(std::uint64_t number) const;

  /// A segment or header as the playlist names it: relative to the folder.
  std::string relative(const std::filesystem::path& file) const;
  /// The number of the segment, of either format, with this relative name. Nothing if the name is
  /// no segment's.
  std::optional<std::uint64_t> segment_number(std::string_view name) const;
  /// The segment or header with this relative name. Nothing if the name is none of theirs.
  std::optional<std::filesystem::path> find(std::string_view name) const;

  /// The names of all segments and headers, for FilePattern.
  std::vector<std::string> patterns() const;

  /// Why players would not find the files by their relative names, if these follow `base_url`.
  /// Nothing if they do. The clause follows the name of a setting: "names segments …".
  std::optional<std::string> why_not_found(std::string_view base_url) const;

 private:
  struct Series {
    NumberSeries paths;
    NumberSeries names;  // relative
  };
  Series with_names(const NumberSeries& paths) const;

  std::filesystem::path folder_;
  Series ts_;
  Series fmp4_;  // the same as ts_ if the user names segments
  Series headers_;
};

}  // namespace framelane
