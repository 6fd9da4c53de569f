#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "capture/framelane_capture.h"

namespace framelane::testing {

/// A reader that speaks the protocol by itself, with packets written out by hand, so that it proves
/// the layout. It connects at once; every wait has a deadline of a minute. For one thread.
class RawReader {
 public:
  struct Buffer {
    std::int32_t area;
    std::uint64_t offset;
    std::uint64_t size;
  };

  explicit RawReader(const std::string& socket_path);
  RawReader(const RawReader&) = delete;
  RawReader& operator=(const RawReader&) = delete;
  ~RawReader();

  /// Whether the connection was made.
  [[nodiscard]] bool is_connected() const { return fd_ >= 0; }
  /// Reads the announcement of the area and maps it. False if the producer closed the connection
  /// instead.
  bool read_area();
  /// The next frame; nothing if the producer has closed the connection.
  std::optional<Buffer> next();
  /// Whether something can be read at once: a packet, or the end.
  [[nodiscard]] bool has_something() const;
  /// Reads until the producer has closed the connection. How many frames it had announced.
  int read_to_end();
  void acknowledge(const Buffer& buffer);
  /// Sends any bytes; false if the producer has closed the connection.
  bool send_bytes(std::span<const std::uint8_t> bytes);
  void leave();

  [[nodiscard]] const std::string& area_name() const { return area_name_; }
  [[nodiscard]] std::size_t area_size() const { return area_.size(); }
  [[nodiscard]] std::span<const std::uint8_t> area() const { return area_; }
  [[nodiscard]] std::span<const std::uint8_t> frame(const Buffer& buffer) const {
    return area_.subspan(buffer.offset, buffer.size);
  }
  /// By the contract in the header.
  [[nodiscard]] framelane_capture_stamp stamp(const Buffer& buffer) const;

 private:
  bool read(std::span<std::uint8_t> bytes);

  int fd_ = -1;
  std::string area_name_;
  std::span<const std::uint8_t> area_;
};

}  // namespace framelane::testing
