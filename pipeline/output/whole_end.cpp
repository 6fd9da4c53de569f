#include "pipeline/output/whole_end.hpp"

#include <algorithm>
#include <array>
#include <fstream>
#include <string_view>

#include "pipeline/base/failure.hpp"

namespace framelane {
namespace {

using Clock = std::chrono::steady_clock;

/// A box of an MP4, or an element of a Matroska file.
struct Part {
  std::uint64_t size;  // with its header
  enum class Kind {
    kMedia,
    kBeforeMedia,
    kOther,
    kUnknown,  // none that FFmpeg's muxers write: the file is damaged
  } kind;
};

std::optional<std::uint64_t> read_number(std::istream& file, int bytes) {
  std::uint64_t number = 0;
  for (int i = 0; i < bytes; ++i) {
    const int byte = file.get();
    if (byte < 0) return std::nullopt;
    number = number << 8 | static_cast<std::uint64_t>(byte);
  }
  return number;
}

constexpr std::uint64_t box_type(std::string_view name) {
  std::uint64_t type = 0;
  for (const char c : name) type = type << 8 | static_cast<unsigned char>(c);
  return type;
}

Part::Kind kind_of_box(std::uint64_t type) {
  if (type == box_type("mdat")) return Part::Kind::kMedia;
  if (type == box_type("moof")) return Part::Kind::kBeforeMedia;
  for (const char* other :
       {"ftyp", "free", "wide", "moov", "mfra", "sidx", "styp", "prft", "uuid"}) {
    if (type == box_type(other)) return Part::Kind::kOther;
  }
  return Part::Kind::kUnknown;
}

std::optional<Part> read_box(std::istream& file) {
  std::optional<std::uint64_t> size = read_number(file, 4);
  const std::optional<std::uint64_t> type = read_number(file, 4);
  if (size == 1u) size = read_number(file, 8);
  if (!size || !type || *size < 8) return std::nullopt;
  return Part{*size, kind_of_box(*type)};
}

/// A number that tells its own length by the zeros before its first one. `marked`: with that one.
std::optional<std::uint64_t> read_vint(std::istream& file, bool marked, int& length) {
  const int first = file.get();
  if (first <= 0) return std::nullopt;
  length = 1;
  while ((first << (length - 1) & 0x80) == 0) ++length;
  const std::optional<std::uint64_t> rest = read_number(file, length - 1);
  if (!rest) return std::nullopt;
  const int value = marked ? first : first & (0x7f >> (length - 1));
  return static_cast<std::uint64_t>(value) << (8 * (length - 1)) | *rest;
}

Part::Kind kind_of_element(std::uint64_t id) {
  constexpr std::uint64_t kCluster = 0x1f43b675;
  // EBML, SeekHead, Info, Tracks, Cues, Tags, Chapters, Attachments, Void, CRC-32
  constexpr std::array<std::uint64_t, 10> kOthers{0x1a45dfa3, 0x114d9b74, 0x1549a966, 0x1654ae6b,
                                                  0x1c53bb6b, 0x1254c367, 0x1043a770, 0x1941a469,
                                                  0xec,       0xbf};
  if (id == kCluster) return Part::Kind::kMedia;
  return std::ranges::find(kOthers, id) != kOthers.end() ? Part::Kind::kOther
                                                         : Part::Kind::kUnknown;
}

std::optional<Part> read_element(std::istream& file) {
  int id_length = 0;
  int size_length = 0;
  const std::optional<std::uint64_t> id = read_vint(file, true, id_length);
  if (!id) return std::nullopt;
  const std::optional<std::uint64_t> size = read_vint(file, false, size_length);
  if (!size) return std::nullopt;
  const std::uint64_t header =
      static_cast<std::uint64_t>(id_length) + static_cast<std::uint64_t>(size_length);
  constexpr std::uint64_t kSegment = 0x18538067;  // everything else is in it
  if (id == kSegment) return Part{header, Part::Kind::kOther};
  return Part{header + *size, kind_of_element(*id)};
}

/// The parts of a file, one after another.
struct Layout {
  std::uint64_t media_end = 0;  // of the last whole part with media; 0: there is none
  enum class End {
    kWhole,
    kHalf,     // something is missing at the end
    kUnknown,  // something before the end cannot be read, or is no such part
  } end = End::kWhole;
};

Layout read_layout(std::istream& file, bool matroska, const std::stop_token& stop,
                   Clock::time_point deadline) {
  using End = Layout::End;
  file.seekg(0, std::ios::end);
  const auto size = static_cast<std::uint64_t>(file.tellg());
  if (!file) return {.end = End::kUnknown};
  Layout layout;
  for (std::uint64_t at = 0; at < size && layout.end == End::kWhole;) {
    if (stop.stop_requested() || Clock::now() >= deadline) {
      throw IoError(IoFault::kTimeout, "could not tell in time whether its end is half");
    }
    file.seekg(static_cast<std::streamoff>(at));
    const std::optional<Part> part = matroska ? read_element(file) : read_box(file);
    if (!part) {
      layout.end = file.eof() ? End::kHalf : End::kUnknown;
    } else if (part->kind == Part::Kind::kUnknown) {
      layout.end = End::kUnknown;
    } else if (part->size > size - at) {
      layout.end = End::kHalf;
    } else {
      at += part->size;
      if (part->kind == Part::Kind::kMedia) layout.media_end = at;
      if (at == size && part->kind == Part::Kind::kBeforeMedia) layout.end = End::kHalf;
    }
  }
  return layout;
}

}  // namespace

bool is_matroska(const Container& container) {
  const std::string_view muxer = container.muxer ? container.muxer->name : "";
  return muxer == "matroska" || muxer == "webm";
}

bool is_mp4(const Container& container) {
  const std::string_view muxer = container.muxer ? container.muxer->name : "";
  return muxer == "mp4" || muxer == "mov" || muxer == "ipod" || muxer == "3gp" || muxer == "3g2" ||
         muxer == "f4v" || muxer == "psp";
}

std::optional<std::int64_t> whole_end(std::istream& file, const Container& container,
                                      const std::stop_token& stop, Clock::time_point deadline) {
  if (!is_matroska(container) && !is_mp4(container)) return std::nullopt;
  const Layout layout = read_layout(file, is_matroska(container), stop, deadline);
  if (layout.end != Layout::End::kHalf || layout.media_end == 0) return std::nullopt;
  return static_cast<std::int64_t>(layout.media_end);
}

bool is_matroska_header(const std::string& path, const Container& container) {
  if (!is_matroska(container)) return false;
  constexpr std::uint64_t kEbml = 0x1a45dfa3;
  std::ifstream file(path, std::ios::binary);
  if (read_number(file, 4) != kEbml) return false;
  const Layout layout = read_layout(file, true, {}, Clock::time_point::max());
  return layout.end == Layout::End::kWhole && layout.media_end == 0;
}

}  // namespace framelane
