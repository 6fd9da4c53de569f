#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <stop_token>
#include <string>

#include "pipeline/base/failure.hpp"
#include "pipeline/base/file_descriptor.hpp"
#include "pipeline/source/stop_event.hpp"

namespace framelane {

/// Reads a file, a FIFO or standard input. Unlike with FFmpeg's file and pipe protocols every wait
/// ends: at once on a stop, and after the timeout when no data comes. One thread.
///
/// A FIFO is opened without waiting for a writer. The first read waits for one; a writer that comes
/// and goes without a byte is not the end. A pipe gets the largest buffer that the system allows:
/// with the usual 64 KiB it carries less than half as many bytes a second.
class FdReader {
 public:
  /// `path`: "-" is standard input. Throws IoError.
  FdReader(const std::string& path, std::chrono::milliseconds timeout, std::stop_token stop);
  ~FdReader();
  FdReader(const FdReader&) = delete;
  FdReader& operator=(const FdReader&) = delete;

  enum class Status { kData, kEnd, kStopped };
  struct Result {
    Status status = Status::kEnd;
    std::size_t bytes = 0;  ///< with kData, at least 1
  };
  /// Waits for data and reads what is there, at most `size` bytes. Throws IoError: kTimeout when
  /// nothing came in time, kIo when reading failed.
  Result read(std::uint8_t* data, std::size_t size);

  /// True for a regular file: it can be rewound, and its reads do not wait for data.
  bool regular() const { return regular_; }
  /// True for a FIFO with a name: writers come and go.
  bool fifo() const { return fifo_; }
  /// After kEnd from a FIFO: the next read waits for another writer.
  void await_writer() { awaits_writer_ = fifo_; }
  /// True if somebody has opened the FIFO since the last call, for writing as a rule: the system
  /// does not tell readers from writers. False where it does not say.
  bool has_been_joined();
  /// True when `path` still names what is open here, and not something that has taken its place.
  bool is_still(const std::string& path) const;
  /// Back to the start of a regular file. Throws IoError.
  void rewind();

  /// True for a regular file with a name, of which any part may be read: the next three functions
  /// are for those. Not for standard input, which another process may be reading too.
  bool positional() const { return positional_; }
  /// pread(2). Any thread, several at once.
  ssize_t read_at(std::uint8_t* data, std::size_t size, std::uint64_t offset) const;
  /// How long the file is now; 0 if that cannot be found out. Any thread.
  std::uint64_t size() const;

  /// What read() throws if reading fails with this errno value.
  IoError read_error(int error) const;
  /// What read() throws if no data comes in time.
  IoError timeout_error() const;

 private:
  using Clock = std::chrono::steady_clock;

  bool wait(Clock::time_point deadline, bool& hung_up);
  void pause() const;

  const std::string name_;
  const std::chrono::milliseconds timeout_;
  const std::stop_token stop_;
  const FileDescriptor file_;  // -1: standard input, which is not ours to close
  const int input_;
  const StopEvent wake_;
  const FileDescriptor opens_;  // an inotify of who opens the FIFO; -1: there is none
  bool regular_ = false;
  bool positional_ = false;
  bool fifo_ = false;
  bool awaits_writer_ = false;
};

/// True when the URL names a path at which there is a FIFO at this moment. Asks the file system.
bool names_fifo(const std::string& url);

}  // namespace framelane
