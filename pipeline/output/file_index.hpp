#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <string_view>

namespace framelane {

/// What is known of some files: their sizes, and which is the oldest. Everything but the end of a
/// pass takes a time that grows with the logarithm of their number. Not thread-safe.
class FileIndex {
 public:
  /// What the file system says of a file.
  struct State {
    std::chrono::system_clock::time_point changed;
    std::int64_t bytes;
    dev_t device;  ///< the file system whose space it takes

    bool operator==(const State&) const = default;
  };
  struct File {
    std::string path;
    State state;
    mutable std::uint32_t pass;  ///< in which it was last seen
  };

  /// Files as old as each other come in the order of their names.
  friend bool is_older(const File& a, const File& b) {
    return a.state.changed != b.state.changed ? a.state.changed < b.state.changed : a.path < b.path;
  }

  /// Adds the file, as seen in the current pass, or takes over what has changed.
  void add(const std::string& path, const State& state);
  void remove(std::string_view path);
  /// Forgets all files.
  void clear();
  /// Marks the file as seen in the current pass; false if it is not known.
  bool mark_seen(std::string_view path);

  /// The oldest file, unless it is the newest as well. Null if there is none.
  const File* oldest() const;
  /// The oldest of those on one file system, unless it is the newest of all.
  const File* oldest(dev_t device) const;
  /// The file that comes after this one on its file system. Null if there is none.
  const File* next(const File& file) const;
  /// Takes a file out of the order: it is no longer the oldest. It still counts.
  void put_aside(const File& file);
  /// Puts the files back that were put aside.
  void put_back_all();
  std::size_t aside() const { return aside_.size(); }

  /// Of all files together, also of those that are aside.
  std::int64_t bytes() const { return bytes_; }
  std::size_t size() const { return files_.size(); }

  /// A pass is one look at all that is on the disk.
  void begin_pass() { ++pass_; }
  /// Forgets the files that were not seen since begin_pass(), except where `stays` says so.
  void forget_unseen(const std::function<bool(std::string_view path)>& stays);

 private:
  struct ByPath {
    using is_transparent = void;
    bool operator()(const File& a, const File& b) const { return a.path < b.path; }
    bool operator()(const File& a, std::string_view b) const { return a.path < b; }
    bool operator()(std::string_view a, const File& b) const { return a < b.path; }
  };
  struct Older {
    bool operator()(const File* a, const File* b) const { return is_older(*a, *b); }
  };
  using Files = std::set<File, ByPath>;

  using ByAge = std::set<const File*, Older>;

  Files::iterator erase(Files::iterator file);
  const File* newest() const;

  Files files_;
  std::map<dev_t, ByAge> by_age_;  // those that are not aside
  ByAge aside_;
  std::int64_t bytes_ = 0;
  std::uint32_t pass_ = 0;
};

}  // namespace framelane
