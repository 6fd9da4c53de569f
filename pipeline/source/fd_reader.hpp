#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <stop_token>
#include <string>

namespace framelane {

/// Reads a file, a FIFO or standard input so that every wait ends: on a stop at once, without data
/// after the timeout. FFmpeg's own file and pipe protocols can do neither. One thread.
///
/// A FIFO is opened without waiting for its writer; the first read waits for one, and one that
/// comes and goes without a byte is not yet the end. Pipes get the largest buffer the system gives:
/// with the usual 64 KiB they carry less than half.
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
  /// nothing came in time, kIo.
  Result read(std::uint8_t* data, std::size_t size);

  /// A regular file: it can be rewound, and its reads do not wait.
  bool regular() const { return regular_; }
  /// A FIFO with a name: writers come and go.
  bool fifo() const { return fifo_; }
  /// Takes the end that read() told for the end of one writer: the next read waits for another.
  void await_writer() { awaits_writer_ = fifo_; }
  /// Whether `path` still names what is read here, and not something that has taken its place.
  bool is_still(const std::string& path) const;
  /// Back to the start of a regular file. Throws IoError.
  void rewind();

 private:
  class Descriptor {
   public:
    explicit Descriptor(int fd, bool owned = true) : fd_(fd), owned_(owned) {}
    ~Descriptor();
    Descriptor(const Descriptor&) = delete;
    Descriptor& operator=(const Descriptor&) = delete;
    int get() const { return fd_; }

   private:
    const int fd_;
    const bool owned_;
  };
  using Clock = std::chrono::steady_clock;

  bool wait(Clock::time_point deadline, bool& hung_up);
  void pause() const;
  [[noreturn]] void time_out() const;

  const std::string name_;
  const std::chrono::milliseconds timeout_;
  const std::stop_token stop_;
  const Descriptor input_;
  const Descriptor wake_;  // readable once stopped
  const std::stop_callback<std::function<void()>> on_stop_;
  bool regular_ = false;
  bool fifo_ = false;
  bool awaits_writer_ = false;
};

/// Whether a URL names a FIFO of this machine, at this moment.
bool names_fifo(const std::string& url);

}  // namespace framelane
