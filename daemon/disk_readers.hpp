#pragma once

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <deque>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>

#include "daemon/admin_server.hpp"
#include "pipeline/base/abandoned_threads.hpp"

namespace framelane {

/// An answer that is read from a disk. The thread that reads it has this; its client may be slow,
/// or go away.
class DiskAnswer : public std::enable_shared_from_this<DiskAnswer> {
 public:
  /// True once nobody waits for it any more.
  bool is_gone() const;
  /// The whole answer.
  void answer(HttpResponse response);
  /// The answer begins like this, and goes on with what send() is given, to the return of the
  /// thread's function. Throws RequestError if DiskReaders::kMostSending are sent already.
  void begin(HttpResponse response);
  /// Waits while the client has not taken what it was sent. False if it is gone.
  bool send(std::string piece);

 private:
  friend class DiskReaders;
  using Steady = std::chrono::steady_clock;
  class Stream;
  struct All;  // answers of the same readers, and the mutex of them all

  DiskAnswer(std::shared_ptr<All> all, std::string place, std::chrono::milliseconds patience)
      : all_(std::move(all)), place_(std::move(place)), patience_(patience) {}
  void finish(std::exception_ptr error);
  /// What begin() or answer() was given; throws what the thread has thrown, or RequestError if the
  /// disk takes too long or framelane is being stopped.
  HttpResponse wait();
  /// True if it has become clear now that the disk hangs.
  bool is_newly_stuck(Steady::time_point now);
  std::optional<std::string> take();
  void leave();
  /// Tells the listener that there is something for it; not with the mutex held.
  void tell(std::unique_lock<std::mutex> lock);

  const std::shared_ptr<All> all_;
  const std::string place_;
  const std::chrono::milliseconds patience_;
  AbandonableThread thread_;
  std::condition_variable changed_;
  // The mutex of all_ guards what follows.
  std::optional<HttpResponse> response_;
  std::weak_ptr<Stream> stream_;
  std::exception_ptr error_;
  std::deque<std::string> pieces_;
  std::size_t bytes_ = 0;  // in pieces_
  std::optional<Steady::time_point> reads_since_ = Steady::now();
  bool begun_ = false;
  bool sends_ = false;  // it has begun, and goes on
  bool stuck_ = false;
  bool gone_ = false;
  bool stopped_ = false;
  bool ended_ = false;
};

/// Reads files for answers, each on a thread of its own: neither a disk that does not answer nor a
/// client that is slow holds up anybody else. A thread that is stuck is left behind, and counted.
class DiskReaders {
 public:
  /// Answers that are read while they are sent, without those that are stuck.
  static constexpr std::size_t kMostSending = 32;
  /// Requests whose answers have not begun. Each holds a thread of the listener
  /// (AdminServer::kMaxAnswering), which other requests need too.
  static constexpr std::size_t kMostWaiting = 24;
  /// Of those, how many only places can have for which no request waits yet, so that others are
  /// answered beside one that hangs.
  static constexpr std::size_t kLeftForOthers = 8;
  /// Of those of one place, how many are read at the same time. Others wait for kTurn.
  static constexpr std::size_t kMostReadingOfPlace = 4;
  static constexpr std::chrono::seconds kTurn{1};
  /// How long a disk may take before an answer begins, and between two of its pieces.
  static constexpr std::chrono::seconds kPatience{10};
  /// A player that has enough for now reads on later.
  static constexpr std::chrono::seconds kClientIdle{60};

  /// The arguments: replaced in tests.
  explicit DiskReaders(std::chrono::milliseconds patience = kPatience,
                       std::chrono::milliseconds turn = kTurn);
  ~DiskReaders();
  DiskReaders(const DiskReaders&) = delete;
  DiskReaders& operator=(const DiskReaders&) = delete;

  /// What reads and sends. It may throw, and shares the ownership of what it uses.
  using Read = std::function<void(const std::shared_ptr<DiskAnswer>&)>;
  /// Has `read` answer, and waits until it has begun to. Nothing is read for a `place` whose disk
  /// hangs, so a disk has few threads that are stuck for each place. The place is what the log says
  /// of them, such as "feed gate". Any thread. Throws what `read` throws before it has begun, and
  /// RequestError.
  HttpResponse answer(const std::string& place, Read read);
  /// Looks for threads that are stuck; their clients are disconnected. Now and then, on any thread.
  void watch();
  /// Ends all answers, and waits for their threads for a moment.
  void stop();

 private:
  /// Waits until one more may be read there.
  std::shared_ptr<DiskAnswer> take_turn(const std::string& place);

  const std::chrono::milliseconds patience_;
  const std::chrono::milliseconds turn_;
  const std::shared_ptr<DiskAnswer::All> all_;
};

}  // namespace framelane
