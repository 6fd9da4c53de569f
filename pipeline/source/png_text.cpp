#include "pipeline/source/png_text.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <new>
#include <string_view>

namespace framelane {
namespace {

constexpr std::size_t kSignature = 8;
/// Of a chunk, beside its data: length, type and check sum.
constexpr std::size_t kAroundData = 12;
constexpr std::array<std::string_view, 4> kDropped{"tEXt", "zTXt", "iTXt", "iCCP"};

/// The size of the chunk at `data`, with all that belongs to it; `left` if it is cut off.
std::size_t chunk_size(const std::uint8_t* data, std::size_t left) {
  if (left < kAroundData) return left;
  std::size_t length = 0;
  for (int i = 0; i < 4; ++i) length = length << 8 | data[i];
  return std::min(left, length + kAroundData);
}

bool is_dropped(const std::uint8_t* chunk, std::size_t size) {
  if (size < 8) return false;
  const std::string_view type(reinterpret_cast<const char*>(chunk) + 4, 4);
  return std::ranges::find(kDropped, type) != kDropped.end();
}

}  // namespace

void drop_png_texts(AVPacket& packet) {
  const auto size = static_cast<std::size_t>(std::max(packet.size, 0));
  bool any = false;
  for (std::size_t at = kSignature; at < size && !any;) {
    const std::size_t chunk = chunk_size(packet.data + at, size - at);
    any = is_dropped(packet.data + at, chunk);
    at += chunk;
  }
  if (!any) return;
  if (av_packet_make_writable(&packet) < 0) throw std::bad_alloc();
  std::size_t kept = kSignature;
  for (std::size_t at = kSignature; at < size;) {
    std::uint8_t* const data = packet.data + at;
    const std::size_t chunk = chunk_size(data, size - at);
    at += chunk;
    if (is_dropped(data, chunk)) continue;
    std::memmove(packet.data + kept, data, chunk);
    kept += chunk;
  }
  av_shrink_packet(&packet, static_cast<int>(kept));
}

}  // namespace framelane
