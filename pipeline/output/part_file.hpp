#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <stop_token>
#include <string>

#include "pipeline/output/container.hpp"
#include "pipeline/output/cut_points.hpp"
#include "pipeline/output/output_options.hpp"

namespace framelane {

/// A file that is still written: NAME.part, which gets its name when it is complete. The file is
/// locked while this object lives, so that PartFileRecovery leaves it alone, in this process and
/// others. Not thread-safe. Every call blocks as long as the file system does.
class PartFile {
 public:
  /// Creates the folders and an empty NAME.part. Throws IoError, DiskFull. Which NAME depends on
  /// `existing`:
  /// - kNumber: the first of `name`, name.2.ext, name.3.ext, … of which neither the file nor its
  ///   .part exists, beginning at `first_number`;
  /// - kRefuse: `name` (of `first_number`); throws if it exists;
  /// - kReplace: the same, but an existing file stays until complete() replaces it.
  /// With the last two a .part of an earlier run is written over; one that somebody still writes is
  /// an error.
  static PartFile create(const std::string& name, int first_number, Existing existing);

  /// Takes over a NAME.part of an earlier process. Nothing if it is gone or somebody still writes
  /// it. Throws IoError if it cannot be opened.
  static std::optional<PartFile> adopt(const std::string& part);

  PartFile(PartFile&& other) noexcept;
  PartFile& operator=(PartFile&&) = delete;
  ~PartFile();

  /// NAME.part.
  const std::string& path() const { return part_; }
  /// The number in NAME, 1 for none.
  int number() const { return number_; }

  /// Renames NAME.part to NAME and returns that. If a file of that name has appeared meanwhile, the
  /// next free number is taken, or it is an error, or it is replaced: as `existing` was. `durable`:
  /// waits until first the data and then the name are on the disk. Throws IoError, DiskFull.
  std::string complete(bool durable);

  /// After a write that failed: cuts off what is half. Nothing may write the file any more. Returns
  /// how many packets are left; nothing if the file is complete. Never throws.
  std::optional<std::uint64_t> cut_back(const CutPoints& points);

  enum class Fate {
    kNamed,    ///< it has its name
    kRemoved,  ///< there was nothing in it: it was empty, or a header alone
    kDamaged,  ///< nothing in it can be read: it stays, as a .part
    kStays,    ///< it stays for now: it could not be opened or renamed, or not be examined in time
  };
  struct Salvage {
    Fate fate;
    std::string text{};  ///< kNamed: the name; kStays: why
  };
  /// After a failure: gives the file its name if there is something to play in it, without what is
  /// half at its end (whole_end). Looks into it until the deadline or the stop. Never throws.
  Salvage salvage(const Container& container, const std::stop_token& stop,
                  std::chrono::steady_clock::time_point deadline);

 private:
  PartFile(std::string name, int number, Existing existing, int fd);
  std::string rename_to_name();
  void cut_at(std::int64_t end);

  std::string name_;  // before it was numbered
  int number_;
  Existing existing_;
  std::string part_;
  int fd_;
};

}  // namespace framelane
