#include "daemon/gzip.hpp"

#include <zlib.h>

#include <array>
#include <new>
#include <stdexcept>

namespace framelane {
namespace {

constexpr int kGzip = 16 + MAX_WBITS;  // for zlib: with gzip's header and check sum
constexpr std::size_t kPiece = 64 * 1024;

void set_input(z_stream& stream, std::string_view data) {
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(data.data()));
  stream.avail_in = static_cast<uInt>(data.size());
}

/// What one call of zlib writes goes to the end of `out`.
template <typename Step>
int write_with(z_stream& stream, std::string& out, Step step) {
  std::array<Bytef, kPiece> piece;
  stream.next_out = piece.data();
  stream.avail_out = static_cast<uInt>(piece.size());
  const int result = step();
  out.append(reinterpret_cast<const char*>(piece.data()), piece.size() - stream.avail_out);
  return result;
}

}  // namespace

struct GzipWriter::Stream {
  z_stream z{};
};

// Level 1: a trace shrinks to a fifteenth, and the levels above take several times as long for a
// few percent less.
GzipWriter::GzipWriter() : stream_(std::make_unique<Stream>()) {
  constexpr int kMemoryLevel = 8;  // zlib's default
  if (deflateInit2(&stream_->z, Z_BEST_SPEED, Z_DEFLATED, kGzip, kMemoryLevel,
                   Z_DEFAULT_STRATEGY) != Z_OK) {
    throw std::bad_alloc();
  }
}

GzipWriter::~GzipWriter() { deflateEnd(&stream_->z); }

void GzipWriter::append(std::string_view text) {
  set_input(stream_->z, text);
  while (stream_->z.avail_in > 0) {
    write_with(stream_->z, packed_, [&] { return deflate(&stream_->z, Z_NO_FLUSH); });
  }
}

std::string GzipWriter::finish() {
  while (write_with(stream_->z, packed_, [&] { return deflate(&stream_->z, Z_FINISH); }) !=
         Z_STREAM_END) {
  }
  return std::move(packed_);
}

std::string unpack_gzip(std::string_view packed, std::size_t most) {
  z_stream stream{};
  if (inflateInit2(&stream, kGzip) != Z_OK) throw std::bad_alloc();
  const std::unique_ptr<z_stream, int (*)(z_stream*)> end(&stream, &inflateEnd);
  set_input(stream, packed);
  std::string text;
  for (;;) {
    const int result = write_with(stream, text, [&] { return inflate(&stream, Z_NO_FLUSH); });
    if (text.size() > most) throw std::runtime_error("the answer does not end");
    if (result == Z_STREAM_END) return text;
    if (result != Z_OK) throw std::runtime_error("the answer is damaged");
  }
}

}  // namespace framelane
