#pragma once

#include <cstddef>
#include <cstdint>

namespace framelane {

/// 24 bytes, in the machine's byte order. shmpipe.c has a union of C, with these fields.
struct ShmPacket {
  enum Type : std::uint32_t { kNewArea = 1, kAreaClosed = 2, kFrame = 3, kAcknowledgement = 4 };
  /// Of an area: Linux's limit, with the "/" before it and the NUL behind.
  static constexpr std::size_t kLongestName = 257;

  std::uint32_t type = 0;
  std::int32_t area = 0;
  std::uint64_t first = 0;   // new area: its bytes; frame and acknowledgement: the offset
  std::uint64_t second = 0;  // frame: its bytes; new area: in the low half, the bytes of its name
};

}  // namespace framelane
