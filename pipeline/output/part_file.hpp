#pragma once

#include <optional>
#include <stop_token>
#include <string>

#include "pipeline/output/container.hpp"
#include "pipeline/output/file_pattern.hpp"
#include "pipeline/output/output_options.hpp"

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

}  // namespace framelane
