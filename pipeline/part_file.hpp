#pragma once

#include <functional>
#include <optional>
#include <stop_token>
#include <string>

#include "pipeline/container.hpp"
#include "pipeline/file_pattern.hpp"
#include "pipeline/options.hpp"

namespace framelane {

/// A file on its way to its name: NAME.part exists and is locked as long as
/// this object lives, so that nobody takes it for a leftover. One thread.
class PartFile {
 public:
  /// Creates directories and the empty NAME.part, where NAME is `name` or, as
  /// long as that or its .part exists already, name.2.ext, name.3.ext, ...
  /// starting from `first_number`. But for kNumber the first one is taken or
  /// nothing: a leftover .part is written over, one that somebody is writing is
  /// an error, and so is, for kRefuse, an existing NAME. Throws IoError, DiskFull.
  static PartFile create(const std::string& name, int first_number, Existing existing);

  /// Takes over a NAME.part that an earlier process left behind; nothing when
  /// it cannot be opened or somebody is writing it.
  static std::optional<PartFile> adopt(const std::string& part);

  PartFile(PartFile&& other) noexcept;
  PartFile& operator=(PartFile&&) = delete;
  ~PartFile();

  const std::string& path() const { return part_; }
  int number() const { return number_; }

  /// Gives it its name and returns it. When a file of that name has appeared since, that is the
  /// next free numbered one, an error or a replacement, as `existing` says. `durable`: its data is
  /// on the disk before its name is, and that when this returns. Throws IoError, DiskFull.
  std::string complete(bool durable);

  /// After a failure: complete() when something in it can be played, else it is
  /// removed, and an empty string returned. Never throws: what cannot be
  /// renamed, or looked at in five seconds or before the stop, stays a .part.
  std::string salvage(const Container& container, const std::stop_token& stop = {});

 private:
  PartFile(std::string name, int number, Existing existing, int fd);
  std::string give_name();

  std::string name_;
  int number_;
  Existing existing_;
  std::string part_;
  int fd_;
};

/// Whether a part file holds something a player can show: its container's demuxer opens it and
/// finds a packet. Throws IoError when that could not be told in five seconds or before the stop.
bool is_playable(const std::string& path, const Container& container, const std::stop_token& stop);

/// Files that could not be deleted.
struct Undeletable {
  std::size_t files = 0;
  std::string first;  ///< which, redacted, and why
};

/// Deletes this output's own complete files, oldest first, until `keep` is met.
/// The newest stays whatever its size and age. Returns what should have gone and is still there.
/// `working` is called before each file, of which there may be many.
Undeletable enforce_retention(const FilePattern& pattern, const SegmentOptions& keep,
                              const std::function<void()>& working);

}  // namespace framelane
