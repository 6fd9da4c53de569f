#include "tests/capture/raw_reader.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <array>
#include <cstring>

namespace framelane::testing {
namespace {

template <typename T>
T at(std::span<const std::uint8_t> bytes, std::size_t offset) {
  T value;
  std::memcpy(&value, bytes.subspan(offset).data(), sizeof value);
  return value;
}

}  // namespace

RawReader::RawReader(const std::string& socket_path) {
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  socket_path.copy(address.sun_path, sizeof address.sun_path - 1);
  fd_ = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (connect(fd_, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) leave();
}

RawReader::~RawReader() {
  leave();
  if (!area_.empty()) munmap(const_cast<std::uint8_t*>(area_.data()), area_.size());
}

void RawReader::leave() {
  if (fd_ >= 0) close(fd_);
  fd_ = -1;
}

bool RawReader::has_something() const {
  pollfd entry = {fd_, POLLIN, 0};
  return poll(&entry, 1, 0) == 1;
}

bool RawReader::read(std::span<std::uint8_t> bytes) {
  while (!bytes.empty()) {
    pollfd entry = {fd_, POLLIN, 0};
    if (poll(&entry, 1, 60'000) != 1) {
      ADD_FAILURE() << "the producer sent nothing for a minute";
      return false;
    }
    const ssize_t got = recv(fd_, bytes.data(), bytes.size(), 0);
    if (got <= 0) return false;
    bytes = bytes.subspan(static_cast<std::size_t>(got));
  }
  return true;
}

bool RawReader::read_area() {
  std::array<std::uint8_t, 24> packet{};
  if (!read(packet)) return false;
  EXPECT_EQ(at<std::uint32_t>(packet, 0), 1U);
  const auto size = at<std::uint64_t>(packet, 8);
  std::string name(at<std::uint32_t>(packet, 16), '\0');
  if (!read({reinterpret_cast<std::uint8_t*>(name.data()), name.size()})) return false;
  EXPECT_EQ(name.back(), '\0');
  name.pop_back();
  area_name_ = name;
  const int area = shm_open(name.c_str(), O_RDONLY, 0);
  EXPECT_GE(area, 0) << name;
  void* mapped = mmap(nullptr, size, PROT_READ, MAP_SHARED, area, 0);
  close(area);
  EXPECT_NE(mapped, MAP_FAILED);
  if (mapped == MAP_FAILED) return false;
  area_ = {static_cast<const std::uint8_t*>(mapped), size};
  return true;
}

std::optional<RawReader::Buffer> RawReader::next() {
  std::array<std::uint8_t, 24> packet{};
  if (!read(packet)) return std::nullopt;
  EXPECT_EQ(at<std::uint32_t>(packet, 0), 3U);
  return Buffer{at<std::int32_t>(packet, 4), at<std::uint64_t>(packet, 8),
                at<std::uint64_t>(packet, 16)};
}

int RawReader::read_to_end() {
  int frames = 0;
  while (next()) ++frames;
  return frames;
}

void RawReader::acknowledge(const Buffer& buffer) {
  std::array<std::uint8_t, 24> packet{4};
  std::memcpy(packet.data() + 4, &buffer.area, 4);
  std::memcpy(packet.data() + 8, &buffer.offset, 8);
  send_bytes(packet);
}

bool RawReader::send_bytes(std::span<const std::uint8_t> bytes) {
  while (!bytes.empty()) {
    const ssize_t sent = send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent < 0) return false;
    bytes = bytes.subspan(static_cast<std::size_t>(sent));
  }
  return true;
}

framelane_capture_stamp RawReader::stamp(const Buffer& buffer) const {
  const std::size_t offset = buffer.offset + FRAMELANE_CAPTURE_STAMP_OFFSET(buffer.size);
  framelane_capture_stamp stamp = {};
  EXPECT_LE(offset + sizeof stamp, area_.size());
  if (offset + sizeof stamp <= area_.size()) {
    std::memcpy(&stamp, area_.data() + offset, sizeof stamp);
  }
  return stamp;
}

}  // namespace framelane::testing
