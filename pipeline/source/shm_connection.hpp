#pragma once

#include <sys/types.h>

#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "pipeline/av/buffer_ref.hpp"
#include "pipeline/base/failure.hpp"
#include "pipeline/base/file_descriptor.hpp"
#include "pipeline/frames/input_frame.hpp"
#include "pipeline/source/shared_area.hpp"
#include "pipeline/source/stop_event.hpp"

namespace framelane {

struct ShmPacket;

/// A connection to a producer of frames in shared memory, which speaks GStreamer's protocol
/// (sys/shm/shmpipe.c in gst-plugins-bad; docs/capture.md has its packets): shmsink, or a program
/// with capture/framelane_capture.h.
///
/// The producer overwrites a frame when it has been given back, and all of them when the connection
/// is closed. So every frame that is out holds the connection, and its area, until it comes back,
/// also after leave(). What the producer announces to a connection that was left is given back
/// whenever a frame of it comes back, and by connections that are open or being opened: without
/// that it would wait for ever. If frames are out kLinger after leave(), or a connection is not
/// left kLinger after its stop, a thread hangs: another connection then closes it, and its frames
/// count as spoiled. While no feed reads shared memory nobody does that.
///
/// A producer may disconnect a reader that gives nothing back, and use its frames again at once. It
/// disconnects first; so a frame is good if, after it was read, the connection is still there.
///
/// next() and leave() are for one thread. Frames may be given back on any.
class ShmConnection : public std::enable_shared_from_this<ShmConnection> {
 public:
  /// A frame as the producer has announced it: bytes of an area.
  struct Announced {
    std::shared_ptr<const SharedArea> area;
    std::int32_t area_number = 0;
    std::uint64_t offset = 0;
    std::uint64_t bytes = 0;

    const std::uint8_t* data() const { return area->data() + offset; }
  };

  static constexpr std::chrono::seconds kLinger{10};

  /// Connects to the socket at `path`. Waits `timeout` for a producer that has no time to accept.
  /// Throws IoError, with what the operator can do.
  /// `most_bytes`: of an area. A peer may claim what it likes, and a GPU locks it.
  static std::shared_ptr<ShmConnection> open(const std::string& path, std::size_t most_bytes,
                                             std::chrono::milliseconds timeout,
                                             const std::stop_token& stop,
                                             std::chrono::milliseconds linger = kLinger);
  ~ShmConnection();
  ShmConnection(const ShmConnection&) = delete;
  ShmConnection& operator=(const ShmConnection&) = delete;

  /// Waits for the next frame; nothing if stopped. It has to be lent or given back. Throws IoError:
  /// kTimeout if none came in time, kEof if the producer has closed the connection, kIo if it does
  /// not speak the protocol.
  std::optional<Announced> next();

  /// No more frames are wanted. The connection is closed when all that are out have come back, or
  /// after the time that open() was given.
  void leave();

  /// A reference to the frame, which is given back when the last copy of it goes.
  BufferRef lend(Announced frame);
  /// Of what lend() returned. Valid while a copy of that is held.
  static const FrameLoan& loan_of(const BufferRef& frame);
  void give_back(const Announced& frame) noexcept;
  /// Frames that are lent and have not come back.
  int lent() const { return lent_; }

 private:
  struct Loan final : FrameLoan {
    std::string why_spoiled() const override;

    std::shared_ptr<ShmConnection> connection;  // null: free
    Announced frame;
    Loan* next_free = nullptr;
  };
  /// Whether the producer may use frames again that are out.
  enum class Peer : std::uint8_t { kWaits, kEnded, kCutOff, kLeft };
  /// How often a connection looks after those that were left.
  static constexpr std::chrono::milliseconds kServeLeft{50};

  ShmConnection(const std::string& path, std::size_t most_bytes, std::chrono::milliseconds timeout,
                const std::stop_token& stop, std::chrono::milliseconds linger);
  void connect();
  static void end_loan(void* loan, std::uint8_t* data) noexcept;
  bool receive(std::size_t bytes, std::chrono::steady_clock::time_point deadline);
  bool wait(short events, std::chrono::steady_clock::time_point deadline);
  bool take_area(const ShmPacket& packet, std::chrono::steady_clock::time_point deadline);
  bool fill();
  void acknowledge(const Announced& frame) noexcept;
  void give_back_unread() noexcept;
  void keep_in_sight();
  void serve_left_if_due() noexcept;
  static bool serve_left() noexcept;
  bool must_close(std::chrono::steady_clock::time_point now) noexcept;
  void cut_loans() noexcept;
  bool cut_off(const SharedArea& area) noexcept;
  IoError not_the_protocol(const std::string& what) const;
  IoError timed_out() const;

  const std::string path_;
  const std::string name_;  // for messages
  const std::size_t most_bytes_;
  const std::chrono::milliseconds timeout_;
  const std::stop_token stop_;
  const std::chrono::milliseconds linger_;
  const FileDescriptor socket_;
  const StopEvent wake_;
  uid_t producer_ = 0;  // its user
  std::atomic<Peer> peer_{Peer::kWaits};
  std::chrono::steady_clock::time_point served_;  // when next() last looked after others

  std::mutex mutex_;  // guards what follows, and keeps acknowledgements whole
  // Of the reading thread alone, until leave(); then under the mutex too.
  std::array<std::uint8_t, 2048> received_{};
  std::size_t begin_ = 0;  // of what was received and not yet read
  std::size_t end_ = 0;
  std::map<std::int32_t, std::shared_ptr<const SharedArea>> areas_;
  std::vector<std::weak_ptr<const SharedArea>> mapped_;  // also those that only frames hold
  bool left_ = false;
  // Set by leave(), and if a connection that is to stop is not left.
  std::optional<std::chrono::steady_clock::time_point> closes_at_;
  bool producer_gone_ = false;
  std::deque<Loan> loans_;
  Loan* free_loan_ = nullptr;
  std::atomic<int> lent_{0};
  std::atomic<bool> deaf_{false};  // the producer did not take an acknowledgement
};

}  // namespace framelane
