#include "pipeline/source/playlist_guard.hpp"

extern "C" {
#include <libavformat/avio.h>
#include <libavutil/log.h>
#include <libavutil/mem.h>
#include <libavutil/version.h>
}

#include <algorithm>
#include <array>
#include <cstring>
#include <memory>
#include <new>
#include <string>
#include <string_view>
#include <utility>

namespace framelane {
namespace {

constexpr std::size_t kLargest = 64 << 20;
constexpr int kBuffer = 32 * 1024;
constexpr std::string_view kMark = "#EXTM3U";

/// FFmpeg's own functions, which every new context has.
struct Defaults {
  Defaults() {
    AVFormatContext* context = avformat_alloc_context();
    if (context == nullptr) throw std::bad_alloc();
    open = context->io_open;
    close = context->io_close2;
    avformat_free_context(context);
  }
  decltype(AVFormatContext::io_open) open;
  decltype(AVFormatContext::io_close2) close;
};

const Defaults& defaults() {
  static const Defaults functions;
  return functions;
}

/// What is left to read of a playlist that was read whole, and where it was read from.
struct Text {
  std::string text;
  AVIOContext* inner;
  std::size_t position = 0;
};

int read_text(void* opaque, std::uint8_t* data, int size) {
  Text& text = *static_cast<Text*>(opaque);
  const std::size_t count =
      std::min(text.text.size() - text.position, static_cast<std::size_t>(size));
  if (count == 0) return AVERROR_EOF;
  std::copy_n(text.text.data() + text.position, count, data);
  text.position += count;
  return static_cast<int>(count);
}

/// True if the data begins as a playlist does. Afterwards all of it can still be read.
bool begins_as_playlist(AVIOContext& io) {
  std::array<unsigned char, kMark.size()> begin{};
  const int count = avio_read(&io, begin.data(), static_cast<int>(begin.size()));
  // Within what the context has buffered, so that any input can be sought.
  if (count > 0) avio_seek(&io, -count, SEEK_CUR);
  return count == static_cast<int>(begin.size()) &&
         std::memcmp(begin.data(), kMark.data(), begin.size()) == 0;
}

/// Reads to the end; an AVERROR if that fails or the text is not that of one stream's playlist.
int read_playlist(AVIOContext& io, std::string& text) {
  std::array<unsigned char, 4096> part{};
  for (;;) {
    const int count = avio_read(&io, part.data(), static_cast<int>(part.size()));
    if (count == AVERROR_EOF) break;
    if (count < 0) return count;
    text.append(part.begin(), part.begin() + count);
    if (text.size() > kLargest) return AVERROR_INVALIDDATA;
  }
  const bool variants = text.find("#EXT-X-STREAM-INF:") != std::string::npos ||
                        text.find("#EXT-X-MEDIA:") != std::string::npos;
  return variants ? AVERROR_INVALIDDATA : 0;
}

/// The demuxer asks the playlist's context for the option "location": the address that an HTTP
/// server sent it on to, from which the playlist's names go. Only the inner context has it.
void* inner_of(void* io, void* previous) {
  return previous == nullptr ? static_cast<Text*>(static_cast<AVIOContext*>(io)->opaque)->inner
                             : nullptr;
}

const AVClass& reader_class() {
  static const AVClass reader = [] {
    AVClass made{};
    made.class_name = "playlist";
    made.item_name = av_default_item_name;
    made.version = LIBAVUTIL_VERSION_INT;
    made.child_next = inner_of;
    return made;
  }();
  return reader;
}

/// Takes over `inner`, unless it throws.
AVIOContext* make_reader(std::string text, AVIOContext* inner) {
  auto source = std::make_unique<Text>(Text{std::move(text), inner});
  auto* buffer = static_cast<unsigned char*>(av_malloc(kBuffer));
  AVIOContext* io = buffer == nullptr ? nullptr
                                      : avio_alloc_context(buffer, kBuffer, 0, source.get(),
                                                           read_text, nullptr, nullptr);
  if (io == nullptr) {
    av_free(buffer);
    throw std::bad_alloc();
  }
  (void)source.release();
  io->av_class = &reader_class();
  return io;
}

int open_guarded(AVFormatContext* context, AVIOContext** io, const char* url, int flags,
                 AVDictionary** options) {
  const int error = defaults().open(context, io, url, flags, options);
  const bool first = io == &context->pb;  // what the context itself is opened with
  if (error < 0 || first || !begins_as_playlist(**io)) return error;
  try {
    std::string text;
    const int wrong = read_playlist(**io, text);
    if (wrong >= 0) *io = make_reader(std::move(text), *io);
    if (wrong < 0) avio_closep(io);
    return wrong;
  } catch (const std::bad_alloc&) {  // must not pass through C
    avio_closep(io);
    return AVERROR(ENOMEM);
  }
}

int close_guarded(AVFormatContext* context, AVIOContext* io) {
  if (io == nullptr || io->read_packet != read_text) return defaults().close(context, io);
  const std::unique_ptr<Text> text(static_cast<Text*>(io->opaque));
  av_freep(&io->buffer);
  avio_context_free(&io);
  return defaults().close(context, text->inner);
}

}  // namespace

void guard_playlists(AVFormatContext& context, AVDictionary** options) {
  (void)defaults();
  context.io_open = open_guarded;
  context.io_close2 = close_guarded;
  // Otherwise the demuxer asks for the next version of a playlist on the connection of the last,
  // past io_open.
  av_dict_set(options, "http_persistent", "0", 0);
}

}  // namespace framelane
