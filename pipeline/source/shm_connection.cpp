#include "pipeline/source/shm_connection.hpp"

#include <fmt/core.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <new>
#include <utility>
#include <vector>

#include "pipeline/base/failure.hpp"
#include "pipeline/base/redact.hpp"
#include "pipeline/source/shm_packet.hpp"
#include "pipeline/source/source_failure.hpp"

namespace framelane {
namespace {

using Clock = std::chrono::steady_clock;

/// More areas at once than this are a fault: a producer has one, or two while it replaces it.
constexpr std::size_t kMostAreas = 16;
/// Acknowledgements that the producer has not read yet: room for thousands.
constexpr int kSendBuffer = 1 << 20;
/// How soon to try again to connect to a producer whose queue of connections is full.
constexpr std::chrono::milliseconds kConnectAgain{20};

int make_socket() {
  const int fd = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (fd < 0) throw io_error(errno, "cannot create a socket");
  (void)::setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &kSendBuffer, sizeof kSendBuffer);
  return fd;
}

/// What an operator can do if the connection fails like this.
std::string connect_remedy(int error, const std::string& path) {
  struct stat status {};
  if (::stat(path.c_str(), &status) == 0 && !S_ISSOCK(status.st_mode)) {
    return "; it is no socket: correct input.url";
  }
  switch (error) {
    case ENOENT:
      return "; start the producer, or correct input.url";
    case ECONNREFUSED:
      return "; nobody listens there: start the producer. A shmsink that was killed leaves the "
             "file, and the next one then listens on another name (cap.sock.0): remove the file "
             "before each start";
    case EACCES:
      return "; a reader needs to write to the socket: give the producer a mode that lets this "
             "process's group write (perms=432 of shmsink, which is 0660), and a group that both "
             "are in";
    case EPROTOTYPE:
      return "; this is a socket of another type";
    default:
      return "; check input.url";
  }
}

}  // namespace

std::shared_ptr<ShmConnection> ShmConnection::open(const std::string& path, std::size_t most_bytes,
                                                   std::chrono::milliseconds timeout,
                                                   const std::stop_token& stop,
                                                   std::chrono::milliseconds linger) {
  std::shared_ptr<ShmConnection> connection(
      new ShmConnection(path, most_bytes, timeout, stop, linger));
  connection->connect();
  return connection;
}

ShmConnection::ShmConnection(const std::string& path, std::size_t most_bytes,
                             std::chrono::milliseconds timeout, const std::stop_token& stop,
                             std::chrono::milliseconds linger)
    : path_(path),
      name_(redact("shm:" + path)),
      most_bytes_(most_bytes),
      timeout_(timeout),
      stop_(stop),
      linger_(linger),
      socket_(make_socket()),
      wake_(stop_) {}

ShmConnection::~ShmConnection() = default;

void ShmConnection::connect() {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path_.empty() || path_.size() >= sizeof address.sun_path) {
    throw FeedError(FeedFault::kConfiguration, name_ + " names no socket: a path has 1 to " +
                                                   std::to_string(sizeof address.sun_path - 1) +
                                                   " bytes; correct input.url");
  }
  path_.copy(address.sun_path, path_.size());
  serve_left();
  const Clock::time_point deadline = Clock::now() + timeout_;
  while (::connect(socket_.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) !=
         0) {
    const int error = errno;
    if (error != EAGAIN && error != EINTR) {
      const IoFault fault = error == ECONNREFUSED ? IoFault::kRefused : io_fault_from_errno(error);
      throw IoError(fault, "cannot connect to " + name_ + ": " + std::strerror(error) +
                               connect_remedy(error, path_));
    }
    if (Clock::now() >= deadline) {
      throw IoError(IoFault::kTimeout, name_ +
                                           " does not accept connections: too many wait there; "
                                           "see whether the producer hangs");
    }
    pollfd wake{wake_.fd(), POLLIN, 0};
    (void)::poll(&wake, 1, static_cast<int>(kConnectAgain.count()));
    serve_left();
    if (stop_.stop_requested()) throw IoError(IoFault::kIo, "stopped");
  }
  ucred peer{};
  socklen_t size = sizeof peer;
  if (::getsockopt(socket_.get(), SOL_SOCKET, SO_PEERCRED, &peer, &size) != 0) {
    throw io_error(errno, "cannot see whose process listens at " + name_);
  }
  producer_ = peer.uid;
  keep_in_sight();
}

std::optional<ShmConnection::Announced> ShmConnection::next() {
  const Clock::time_point deadline = Clock::now() + timeout_;
  for (;;) {
    serve_left_if_due();
    if (deaf_) {
      throw IoError(IoFault::kIo, name_ +
                                      " does not take acknowledgements: see whether the producer "
                                      "hangs");
    }
    if (Clock::now() >= deadline) throw timed_out();
    if (!receive(sizeof(ShmPacket), deadline)) return std::nullopt;
    ShmPacket packet;
    std::memcpy(&packet, received_.data() + begin_, sizeof packet);
    begin_ += sizeof packet;
    switch (packet.type) {
      case ShmPacket::kNewArea:
        if (!take_area(packet, deadline)) return std::nullopt;
        break;
      case ShmPacket::kAreaClosed:
        // Frames that are lent keep it.
        if (areas_.erase(packet.area) == 0) {
          throw not_the_protocol("it closes an area that it has not announced");
        }
        break;
      case ShmPacket::kFrame: {
        const auto area = areas_.find(packet.area);
        if (area == areas_.end()) {
          throw not_the_protocol("a frame lies in an area that it has not announced");
        }
        const std::uint64_t size = area->second->bytes();
        if (packet.first % 8 != 0) {
          throw not_the_protocol("a frame begins at " + std::to_string(packet.first) +
                                 ", which is no multiple of 8");
        }
        if (packet.first > size || packet.second > size - packet.first) {
          throw not_the_protocol("a frame of " + std::to_string(packet.second) + " bytes at " +
                                 std::to_string(packet.first) + " lies outside its area of " +
                                 std::to_string(size));
        }
        return Announced{area->second, packet.area, packet.first, packet.second};
      }
      default:
        throw not_the_protocol("a packet is of the type " + std::to_string(packet.type));
    }
  }
}

/// An area's name follows its packet. False if stopped.
bool ShmConnection::take_area(const ShmPacket& packet, Clock::time_point deadline) {
  const auto name_bytes = static_cast<std::uint32_t>(packet.second);
  if (name_bytes < 3 || name_bytes > ShmPacket::kLongestName) {
    throw not_the_protocol("an area's name has " + std::to_string(name_bytes) + " bytes");
  }
  if (!receive(name_bytes, deadline)) return false;
  std::string name(reinterpret_cast<const char*>(received_.data() + begin_), name_bytes);
  begin_ += name_bytes;
  name.resize(std::min(name.find('\0'), name.size()));
  if (name.size() < 2 || name[0] != '/' || name.find('/', 1) != std::string::npos) {
    throw not_the_protocol("an area is called " + redact(name));
  }
  if (areas_.size() >= kMostAreas || areas_.contains(packet.area)) {
    throw not_the_protocol("it announces an area twice, or more than " +
                           std::to_string(kMostAreas));
  }
  if (packet.first > most_bytes_) {
    throw IoError(IoFault::kIo,
                  fmt::format("the producer's shared memory {} has {} bytes, and framelane maps at "
                              "most {} for frames of this size; make it smaller",
                              redact(name), packet.first, most_bytes_));
  }
  std::erase_if(mapped_, [](const auto& area) { return area.expired(); });
  std::uint64_t mapped = 0;
  for (const auto& one : mapped_) {
    if (const auto area = one.lock()) mapped += area->bytes();
  }
  if (mapped > 2 * most_bytes_ - packet.first) {
    throw IoError(IoFault::kIo,
                  fmt::format("the producer gives more shared memory than {} bytes, which is twice "
                              "what framelane maps for frames of this size: it has to close areas "
                              "that it replaces",
                              2 * most_bytes_));
  }
  try {
    auto area = std::make_shared<const SharedArea>(name, packet.first, producer_);
    mapped_.push_back(area);
    areas_.emplace(packet.area, std::move(area));
  } catch (const FeedError& error) {  // for what a peer wants no encoder has to begin anew
    throw IoError(IoFault::kIo, error.what());
  }
  return true;
}

/// Receives until so many bytes can be read at begin_. False if stopped.
bool ShmConnection::receive(std::size_t bytes, Clock::time_point deadline) {
  while (end_ - begin_ < bytes) {
    if (stop_.stop_requested()) return false;
    if (!fill() && !wait(POLLIN, deadline)) return false;
  }
  return !stop_.stop_requested();
}

/// Receives what is there. False if that is nothing. Throws IoError if there will be no more.
bool ShmConnection::fill() {
  std::copy(received_.begin() + static_cast<std::ptrdiff_t>(begin_),
            received_.begin() + static_cast<std::ptrdiff_t>(end_), received_.begin());
  end_ -= begin_;
  begin_ = 0;
  for (;;) {
    const ssize_t count =
        ::recv(socket_.get(), received_.data() + end_, received_.size() - end_, MSG_DONTWAIT);
    if (count > 0) {
      end_ += static_cast<std::size_t>(count);
      return true;
    }
    if (count == 0 || errno == ECONNRESET) {
      throw IoError(IoFault::kEof, "the producer has closed " + name_);
    }
    if (errno == EAGAIN) return false;
    if (errno != EINTR) throw io_error(errno, "cannot read from " + name_);
  }
}

bool ShmConnection::wait(short events, Clock::time_point deadline) {
  for (;;) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - Clock::now()).count();
    if (left <= 0) throw timed_out();
    const auto patience = serve_left() ? std::min<std::int64_t>(left, kServeLeft.count())
                                       : std::min<std::int64_t>(left, 1 << 30);
    std::array<pollfd, 2> fds{{{socket_.get(), events, 0}, {wake_.fd(), POLLIN, 0}}};
    const int ready = ::poll(fds.data(), fds.size(), static_cast<int>(patience));
    if (stop_.stop_requested()) return false;
    if (ready > 0) return true;
    if (ready < 0 && errno != EINTR) throw io_error(errno, "cannot wait for " + name_);
  }
}

BufferRef ShmConnection::lend(Announced frame) {
  Loan* loan = nullptr;
  {
    const std::lock_guard lock(mutex_);
    if (free_loan_ == nullptr) free_loan_ = &loans_.emplace_back();
    loan = free_loan_;
    free_loan_ = loan->next_free;
  }
  // FFmpeg's buffers have no const form; the flag makes FFmpeg treat it as one.
  auto* const data = const_cast<std::uint8_t*>(frame.data());
  AVBufferRef* const ref =
      av_buffer_create(data, frame.bytes, &end_loan, loan, AV_BUFFER_FLAG_READONLY);
  if (ref == nullptr) {
    give_back(frame);
    const std::lock_guard lock(mutex_);
    loan->next_free = std::exchange(free_loan_, loan);
    throw std::bad_alloc();
  }
  loan->connection = shared_from_this();
  loan->frame = std::move(frame);
  ++lent_;
  return BufferRef::adopt(ref);
}

const FrameLoan& ShmConnection::loan_of(const BufferRef& frame) {
  return *static_cast<const Loan*>(av_buffer_get_opaque(frame.get()));
}

std::string ShmConnection::Loan::why_spoiled() const {
  if (!connection->cut_off(*frame.area) && !frame.area->spoiled()) return {};
  const std::string begin = connection->name_ + ": frames that were in use are not delivered: ";
  switch (connection->peer_) {
    case Peer::kCutOff:
      return begin +
             "the producer has disconnected this feed, which gave nothing back for too long, and "
             "may overwrite them; give the producer more slots or a longer reader_timeout_ms, or "
             "make ring smaller";
    case Peer::kLeft:
      return begin +
             "they did not come back in time after the feed had left the producer, or was to stop";
    default:
      return begin + "the producer's shared memory " + frame.area->name() +
             " has changed under them: it was truncated, or /dev/shm is full; leave its size as it "
             "is, or make /dev/shm larger (mount -o remount,size=N /dev/shm)";
  }
}

/// True if the connection has ended and the producer may still write to the area.
bool ShmConnection::cut_off(const SharedArea& area) noexcept {
  if (peer_ == Peer::kWaits) {
    pollfd end{socket_.get(), POLLRDHUP, 0};
    if (::poll(&end, 1, 0) <= 0) return false;
    // One that has ended, or has closed its side in order, writes no more.
    Peer waits = Peer::kWaits;
    peer_.compare_exchange_strong(waits, area.locked() ? Peer::kCutOff : Peer::kEnded);
  }
  const Peer peer = peer_;
  return peer == Peer::kCutOff || peer == Peer::kLeft;
}

void ShmConnection::end_loan(void* opaque, std::uint8_t*) noexcept {
  Loan* const loan = static_cast<Loan*>(opaque);
  // They may be the last that hold the connection, with the loan in it, and the area. Their
  // destructors run without the lock.
  const std::shared_ptr<ShmConnection> connection = loan->connection;
  Announced frame;
  const std::lock_guard lock(connection->mutex_);
  loan->connection.reset();
  frame = std::move(loan->frame);
  --connection->lent_;  // before the producer can send the next one
  connection->acknowledge(frame);
  if (connection->left_) connection->give_back_unread();
  loan->next_free = std::exchange(connection->free_loan_, loan);
}

void ShmConnection::give_back(const Announced& frame) noexcept {
  const std::lock_guard lock(mutex_);
  acknowledge(frame);
}

/// Requires the mutex.
void ShmConnection::acknowledge(const Announced& frame) noexcept {
  if (deaf_) return;  // a packet was sent in part, perhaps
  const ShmPacket packet{.type = ShmPacket::kAcknowledgement,
                         .area = frame.area_number,
                         .first = frame.offset,
                         .second = 0};
  // Only a producer that does not read them fills the socket's buffer.
  const ssize_t sent = ::send(socket_.get(), &packet, sizeof packet, MSG_NOSIGNAL | MSG_DONTWAIT);
  const bool gone = sent < 0 && (errno == EPIPE || errno == ECONNRESET);
  if (sent != static_cast<ssize_t>(sizeof packet) && !gone) deaf_ = true;
}

IoError ShmConnection::not_the_protocol(const std::string& what) const {
  return IoError(IoFault::kIo, name_ + " does not speak the protocol of GStreamer's shmsink: " +
                                   what + "; check input.url and the program that listens there");
}

IoError ShmConnection::timed_out() const {
  return IoError(IoFault::kTimeout,
                 fmt::format("no frame from {} for {:g} s; check the producer, or raise "
                             "input.timeout",
                             name_, std::chrono::duration<double>(timeout_).count()));
}

}  // namespace framelane
