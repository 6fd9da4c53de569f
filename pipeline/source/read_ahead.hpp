#pragma once

#include <sys/types.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

#include "pipeline/av/buffer_ref.hpp"
#include "pipeline/av/interrupt.hpp"
#include "pipeline/frames/frame_pool.hpp"
#include "pipeline/source/fd_reader.hpp"

namespace framelane {

/// Reads the frames of a regular file ahead of the thread that takes them, in pieces, with several
/// threads at once, into buffers of a pool. Frames come out in order, as if one thread had read the
/// file from its start to its end: what the file holds when its end is reached counts, not what it
/// held when the end was planned.
///
/// One core copies some 6 GB/s out of the page cache. So whoever has to wait for a frame reads a
/// piece of it too, and starts one more thread if there is another piece that nobody reads. A
/// source that is paced, or whose consumer is slower, has one thread; those that are of no use any
/// more end (kSpareAfter). All files of the process together have no more threads than processors,
/// except that each may have one. Where no thread starts, the consumer reads alone.
///
/// Threads that have nothing to do sleep until half of what is planned ahead is not read yet, or
/// the consumer has to wait.
///
/// Memory: 2 frames, or what suits the threads that run: kPiecesAhead pieces for each of them and
/// for the consumer (78 MiB with 12 threads). If no thread may start, one frame.
///
/// One thread, the consumer. The destructor waits for reads that are under way. It arms the
/// interrupt, so that whoever watches the consumer sees it hang if such a read never returns; its
/// threads are then abandoned with it.
class ReadAhead {
 public:
  /// A thread claims no more than this at a time: half a millisecond's work, beside which handing
  /// it out costs nothing, and little enough for all threads to work on one frame of 1080p.
  static constexpr std::size_t kPieceBytes = std::size_t{2} << 20;
  static constexpr std::size_t kPiecesAhead = 3;
  /// Measured from the page cache of a machine with 16 processors: 5.9, 14.9, 29.8 and 45.3 GB/s
  /// with 1, 4, 8 and 12 threads. PCIe 5 carries 55 GB/s.
  static constexpr int kMaxThreads = 12;
  /// A thread ends if the consumer has not waited for so long, unless it is the only one.
  static constexpr std::chrono::seconds kSpareAfter{5};

  /// Like pread(2) of the file. Several threads call it at once.
  using ReadAt = std::function<ssize_t(std::uint8_t* data, std::size_t size, std::uint64_t offset)>;
  struct Settings {
    std::size_t frame_bytes = 0;
    std::size_t tail_padding = 0;  ///< room behind each frame, which is not read
    bool loop = false;             ///< plan to go on at the start; rewind() then goes on at once
    std::chrono::milliseconds timeout{10'000};  ///< of the interrupt; renewed whenever data comes
    int max_threads = usual_threads();
    ReadAt read_at;  ///< empty: the file's own
  };
  /// So many that the feed's other threads keep two processors; 0 to kMaxThreads.
  static int usual_threads();

  /// All arguments outlive it. `file` is FdReader::positional(). The interrupt is armed, and left
  /// armed, by next(); its stop ends all reading.
  ReadAhead(const FdReader& file, FramePool& pool, Interrupt& interrupt, Settings settings);
  ~ReadAhead();
  ReadAhead(const ReadAhead&) = delete;
  ReadAhead& operator=(const ReadAhead&) = delete;

  enum class Status { kFrame, kEnd, kStopped, kFailed };
  /// Waits for the next frame. `filled`: how many bytes of it there are in `buffer`; less than a
  /// frame unless kFrame. After kEnd and kFailed the position stays at the frame's first byte.
  /// kFailed: see error(). Throws FeedError(kMemory) if there is not even memory for one frame.
  Status next(BufferRef& buffer, std::size_t& filled);
  /// The errno value of what failed; EAGAIN if there was no data within the timeout.
  int error() const { return error_; }
  /// Goes on at the file's start.
  void rewind() { position_ = 0; }

  /// How many threads of all files read now, or wait for work.
  static int threads();

 private:
  /// A frame that is being read ahead, or the file's end, which may be an empty slot without a
  /// buffer.
  struct Slot {
    std::uint64_t offset = 0;  // in the file
    BufferRef buffer;
    std::size_t planned = 0;  // so many bytes of the frame are in the file, as far as is known
    std::size_t claimed = 0;  // so many of these have been read, or are being read
    std::size_t filled = 0;   // so many are there, before the first that could not be read
    int error = 0;            // why that could not be read; 0 at the end of the file
    int readers = 0;
  };
  struct Piece {
    Slot* slot = nullptr;
    std::size_t begin = 0;
    std::size_t size = 0;
  };
  struct Reader {
    std::thread thread;
    bool ended = false;
  };
  using Clock = std::chrono::steady_clock;

  Slot& at(std::uint64_t sequence) { return slots_[sequence % slots_.size()]; }
  bool plan();
  bool wants_more() const;
  void count(const Slot& slot, int change);
  void append(BufferRef buffer, std::size_t planned);
  bool discard();
  bool wait_for_front(std::unique_lock<std::mutex>& lock);
  template <typename Condition>
  bool wait(std::unique_lock<std::mutex>& lock, Condition condition);
  Status complete(BufferRef& buffer, std::size_t& filled);

  // These require mutex_.
  bool claim(Piece& piece);
  void settle(const Piece& piece, std::size_t bytes, int error);
  void call_reader();
  void start_reader();

  std::size_t read(const Piece& piece, int& error, bool renews_timeout);
  void reader_thread(std::size_t index);

  const FdReader& file_;
  FramePool& pool_;
  Interrupt& interrupt_;
  const Settings settings_;
  const std::size_t piece_bytes_;

  // The consumer's own.
  std::uint64_t position_ = 0;  // in the file, of the frame that is wanted next
  std::uint64_t planned_to_ = 0;
  std::uint64_t file_bytes_ = 0;    // when it was last asked for
  bool planned_end_ = false;        // nothing more is planned until the slots are empty
  std::ptrdiff_t ahead_bytes_ = 0;  // planned, in all slots
  int frames_ahead_ = 0;            // slots that are not empty
  std::uint64_t max_slots_;
  int error_ = 0;

  std::atomic<std::uint64_t> progress_{0};  // bytes read so far, to see that data comes
  std::atomic<bool> ending_{false};         // what is being read is of no use

  std::mutex mutex_;  // guards the slots and all that follows
  std::condition_variable work_;
  std::condition_variable_any done_;
  std::vector<Slot> slots_;
  std::size_t unclaimed_ = 0;    // bytes that are planned, and that nobody reads yet
  std::uint64_t front_ = 0;      // sequence of the slot that is taken next; the consumer sets it
  std::uint64_t back_ = 0;       // and of the one that is planned next; likewise
  std::uint64_t claiming_ = 0;   // all slots before it are claimed whole
  int under_way_ = 0;            // pieces that are being read
  int idle_ = 0;                 // threads that wait for work
  std::atomic<int> running_{0};  // threads that have not ended; changes under mutex_
  int max_running_;
  bool consumer_waits_ = false;
  bool closing_ = false;
  Clock::time_point last_wait_;  // when the consumer last had to wait, or a spare thread ended
  std::vector<Reader> readers_;
};

}  // namespace framelane
