// What a connection does after leave(), and how others look after it.

#include <sys/socket.h>

#include <algorithm>
#include <cstring>
#include <new>
#include <utility>
#include <vector>

#include "pipeline/base/failure.hpp"
#include "pipeline/source/shm_connection.hpp"
#include "pipeline/source/shm_packet.hpp"

namespace framelane {
namespace {

using Clock = std::chrono::steady_clock;

// All that are open, or were left while frames of theirs were out. Locked before a connection's
// mutex.
std::mutex g_connections_mutex;
std::vector<std::weak_ptr<ShmConnection>> g_connections;

}  // namespace

void ShmConnection::keep_in_sight() {
  const std::lock_guard lock(g_connections_mutex);
  g_connections.push_back(weak_from_this());
}

void ShmConnection::leave() {
  const std::lock_guard lock(mutex_);
  left_ = true;
  closes_at_ = Clock::now() + linger_;
  give_back_unread();
}

/// Gives back what the producer has announced since leave(), up to a limit: it may answer at once.
/// Requires the mutex.
void ShmConnection::give_back_unread() noexcept {
  constexpr int kMostFills = 64;
  try {
    int fills = 0;
    do {
      while (end_ - begin_ >= sizeof(ShmPacket)) {
        ShmPacket packet;
        std::memcpy(&packet, received_.data() + begin_, sizeof packet);
        std::size_t whole = sizeof packet;
        if (packet.type == ShmPacket::kNewArea) {
          const auto name_bytes = static_cast<std::uint32_t>(packet.second);
          if (name_bytes > ShmPacket::kLongestName)
            throw not_the_protocol("an area's name is too long");
          whole += name_bytes;
          if (end_ - begin_ < whole) break;
        }
        begin_ += whole;
        if (packet.type == ShmPacket::kFrame)
          acknowledge({nullptr, packet.area, packet.first, packet.second});
      }
    } while (++fills < kMostFills && fill());
  } catch (const IoError& error) {
    // The producer has gone, or does not speak the protocol: there is nobody to wait.
    producer_gone_ = error.code() == IoFault::kEof;
  } catch (...) {  // no memory for a message
  }
}

void ShmConnection::serve_left_if_due() noexcept {
  const Clock::time_point now = Clock::now();
  if (now - served_ < kServeLeft) return;
  served_ = now;
  serve_left();
}

/// Looks after connections that were left or should have been. False if there are none.
bool ShmConnection::serve_left() noexcept {
  // Whichever of them these are the last to hold go after the lock: areas are unregistered then.
  std::vector<std::shared_ptr<ShmConnection>> held;
  const Clock::time_point now = Clock::now();
  bool any = false;
  const std::lock_guard lock(g_connections_mutex);
  std::erase_if(g_connections, [&](const std::weak_ptr<ShmConnection>& one) {
    std::shared_ptr<ShmConnection> connection = one.lock();
    if (connection == nullptr) return true;
    ShmConnection& other = *connection;
    try {
      held.push_back(std::move(connection));
    } catch (const std::bad_alloc&) {
      return false;
    }
    const std::lock_guard own(other.mutex_);
    if (other.must_close(now)) {
      other.cut_loans();
      return true;
    }
    any = any || other.closes_at_;
    return other.producer_gone_;
  });
  return any;
}

/// Gives back what is announced to a connection that was left. True if it, or one whose reading
/// thread hangs, has had its time. Requires the mutex.
bool ShmConnection::must_close(Clock::time_point now) noexcept {
  if (left_) {
    give_back_unread();
  } else if (!closes_at_ && stop_.stop_requested()) {
    closes_at_ = now + linger_;
  }
  return closes_at_ && now >= *closes_at_ && !producer_gone_;
}

/// Requires the mutex.
void ShmConnection::cut_loans() noexcept {
  Peer waits = Peer::kWaits;
  peer_.compare_exchange_strong(waits, Peer::kLeft);
  ::shutdown(socket_.get(), SHUT_RDWR);
}

}  // namespace framelane
