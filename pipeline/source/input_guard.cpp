#include "pipeline/source/input_guard.hpp"

extern "C" {
#include <libavformat/avio.h>
#include <libavutil/mem.h>
}

#include <netinet/in.h>
#include <netinet/tcp.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdlib>
#include <new>
#include <optional>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "pipeline/av/allocation_limit.hpp"
#include "pipeline/base/redact.hpp"
#include "pipeline/base/url.hpp"

namespace framelane {
namespace {

constexpr std::string_view kPlaylistMark = "#EXTM3U";

/// FFmpeg's own function, which every new context has.
decltype(AVFormatContext::io_open) open_of_ffmpeg() {
  static const auto open = [] {
    AVFormatContext* context = avformat_alloc_context();
    if (context == nullptr) throw std::bad_alloc();
    const auto function = context->io_open;
    avformat_free_context(context);
    return function;
  }();
  return open;
}

/// The first bytes of what is read. Afterwards all of it can still be read.
std::string peek(AVIOContext& io) {
  std::array<char, 10> begin{};
  const int count = avio_read(&io, reinterpret_cast<unsigned char*>(begin.data()),
                              static_cast<int>(begin.size()));
  if (count <= 0) return {};
  // Within what the context has buffered, so that any input can be sought.
  avio_seek(&io, -count, SEEK_CUR);
  return {begin.data(), static_cast<std::size_t>(count)};
}

/// True if it begins as a playlist does, HLS or DASH.
bool begins_as_playlist(std::string_view text) {
  constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";
  return text.starts_with(kPlaylistMark) || text.starts_with('<') ||
         (text.starts_with(kByteOrderMark) && text.substr(kByteOrderMark.size()).starts_with('<'));
}

/// How many bytes follow the header of the ID3v2 tag that it begins with (ID3v2.4.0, 3.1); 0 if it
/// begins with none.
int id3_size(std::string_view begin) {
  constexpr std::size_t kHeader = 10;
  if (begin.size() < kHeader || !begin.starts_with("ID3")) return 0;
  int size = 0;
  for (const char c : begin.substr(6, 4)) size = size << 7 | (c & 0x7f);
  return size;
}

/// Has the context give `text` again, which was all there is to read. FFmpeg does the same with the
/// data that it has probed.
int put_back(AVIOContext& io, const std::string& text) {
  auto* buffer = static_cast<unsigned char*>(av_memdup(text.data(), text.size()));
  if (buffer == nullptr) return AVERROR(ENOMEM);
  av_free(io.buffer);
  io.buffer = io.buf_ptr = buffer;
  io.buffer_size = static_cast<int>(text.size());
  io.buf_end = buffer + text.size();
  io.pos = static_cast<std::int64_t>(text.size());
  io.eof_reached = 0;
  return 0;
}

/// True if TCP waits for the peer's first answer.
bool is_connecting(int socket) {
  tcp_info info{};
  socklen_t size = sizeof info;
  return getsockopt(socket, IPPROTO_TCP, TCP_INFO, &info, &size) == 0 &&
         info.tcpi_state == TCP_SYN_SENT;
}

/// True if a peer has answered with a status. Then the address was none that may not be reached.
bool is_answer(int error) {
  switch (error) {
    case AVERROR_HTTP_BAD_REQUEST:
    case AVERROR_HTTP_UNAUTHORIZED:
    case AVERROR_HTTP_FORBIDDEN:
    case AVERROR_HTTP_NOT_FOUND:
    case AVERROR_HTTP_OTHER_4XX:
    case AVERROR_HTTP_SERVER_ERROR:
      return true;
    default:
      return false;
  }
}

/// The next line of `text`, which is cut off from it.
std::string_view take_line(std::string_view& text) {
  const std::size_t end = std::min(text.find('\n'), text.size());
  std::string_view line = text.substr(0, end);
  text.remove_prefix(std::min(end + 1, text.size()));
  if (line.ends_with('\r')) line.remove_suffix(1);
  return line;
}

/// The URL that a line of an HLS playlist has FFmpeg open (RFC 8216, section 4.3); may be relative.
std::string_view url_in(std::string_view line) {
  if (!line.starts_with('#')) return line;
  constexpr std::array<std::string_view, 3> kTags{"#EXT-X-KEY:", "#EXT-X-MAP:", "#EXT-X-MEDIA:"};
  const auto begins = [line](std::string_view tag) { return line.starts_with(tag); };
  if (std::ranges::none_of(kTags, begins)) return {};
  constexpr std::string_view kUri = "URI=\"";
  const std::size_t begin = line.find(kUri);
  if (begin == std::string_view::npos) return {};
  line.remove_prefix(begin + kUri.size());
  return line.substr(0, line.find('"'));
}

/// The next base of URLs in a DASH manifest (ISO/IEC 23009-1, 5.6); the text is cut off behind it.
std::string_view take_base_url(std::string_view& text) {
  constexpr std::string_view kElement = "<BaseURL";
  text.remove_prefix(std::min(text.find(kElement), text.size()));
  text.remove_prefix(std::min(text.find('>'), text.size()));
  if (!text.empty()) text.remove_prefix(1);
  std::string_view url = text.substr(0, text.find('<'));
  url.remove_prefix(std::min(url.find_first_not_of(" \t\r\n"), url.size()));
  return url.substr(0, url.find_first_of(" \t\r\n"));
}

bool lists_variants(std::string_view text) {
  return text.find("#EXT-X-STREAM-INF:") != std::string_view::npos ||
         text.find("#EXT-X-MEDIA:") != std::string_view::npos;
}

// FFmpeg keeps some kilobytes for each of these.
constexpr std::array<std::string_view, 2> kVariantsOfHls{"#EXT-X-STREAM-INF:", "#EXT-X-MEDIA:"};
constexpr std::array<std::string_view, 1> kVariantsOfDash{"<Representation"};
constexpr std::array<std::string_view, 2> kEntriesOfDash{"<SegmentURL", "<S "};
constexpr int kMostEntries = 100'000;
/// FFmpeg keeps the tag of a segment of HLS in memory, where it needs its time alone.
constexpr int kLargestId3 = 1 << 20;

/// How often one of these comes in the text.
int count_of(std::string_view text, std::span<const std::string_view> words) {
  int count = 0;
  for (const std::string_view word : words) {
    for (std::size_t at = text.find(word); at != std::string_view::npos;
         at = text.find(word, at + word.size())) {
      ++count;
    }
  }
  return count;
}

std::string too_many_streams(int most) {
  return "has more streams than input.limits.streams allows (" + std::to_string(most) +
         "); raise it if that is right";
}

}  // namespace

InputGuard::InputGuard(const InputOptions& input) : access_(input), limits_(input.limits) {
  allow_av_pictures(limits_.coded_pixels());
}

void InputGuard::attach(AVFormatContext& context, Dictionary& options) {
  (void)open_of_ffmpeg();
  context.opaque = this;
  context.io_open = &InputGuard::open;
  // Otherwise the demuxer asks for the next version of a playlist on the connection of the last,
  // past io_open.
  options.set("http_persistent", "0");
  struct List {
    const char* option;
    const std::string& names;
  };
  for (const auto& [option, names] :
       {List{"protocol_whitelist", access_.protocols()},
        List{"format_whitelist", access_.formats()}, List{"codec_whitelist", access_.decoders()}}) {
    if (!names.empty()) options.set_default(option, names);
  }
  // One more than allowed, so that too many show (excess_of) also where FFmpeg leaves out the rest.
  options.set_default("max_streams", std::to_string(limits_.streams + 1));
  options.set_default("probesize", std::to_string(limits_.probe_size));
  const std::int64_t format_bytes = std::min<std::int64_t>(limits_.probe_size, 1 << 20);
  options.set_default("formatprobesize", std::to_string(format_bytes));
}

CallCheck InputGuard::check_calls() {
  CallCheck::UnpackRefused unpacks;
  if (access_.from_network()) {
    unpacks = [this] {
      try {
        refuse(
            "has a compressed header (an ID3 tag, or the index of an old QuickTime file), which "
            "may unpack to any size; an input from the network may not have one, and no key allows "
            "it: write it anew without one (ffmpeg -i OLD -c copy -map_metadata -1 NEW), or read "
            "it as a local file if you trust it");
      } catch (const std::bad_alloc&) {  // must not pass through C; the header is not unpacked
      }
    };
  }
  return CallCheck([this](const sockaddr& address, std::size_t size,
                          int socket) { return may_reach(address, size, socket); },
                   std::move(unpacks));
}

bool InputGuard::may_reach(const sockaddr& address, std::size_t size, int socket) {
  const auto refusal = access_.refusal_of_address(address, size);
  // What was refused before is no cause if another address is reached since; nor is this one, if
  // FFmpeg tries several addresses of a name at once, and another one may still answer.
  if (!refusal) {
    unreachable_.clear();
    tried_ = socket;
  } else if (!is_connecting(tried_)) {
    unreachable_ = *refusal;
  }
  return !refusal;
}

int InputGuard::refuse(const std::string& reason) {
  if (refusal_.empty()) refusal_ = reason;
  return AVERROR(EACCES);
}

int InputGuard::open(AVFormatContext* context, AVIOContext** io, const char* url, int flags,
                     AVDictionary** options) {
  auto* guard = static_cast<InputGuard*>(context->opaque);
  // A context inside the demuxer of another one: it has that one's lists.
  if (guard == nullptr) return open_of_ffmpeg()(context, io, url, flags, options);
  try {
    const int error = guard->open_checked(*context, *io, url, flags, options);
    if (error < 0) avio_closep(io);
    return error;
  } catch (const std::bad_alloc&) {  // must not pass through C
    avio_closep(io);
    return AVERROR(ENOMEM);
  }
}

int InputGuard::open_checked(AVFormatContext& context, AVIOContext*& io, const char* url, int flags,
                             AVDictionary** options) {
  const bool first = &io == &context.pb;  // what the context itself is opened with
  if (!first) {
    if (const auto refusal = access_.refusal_of_url(url)) return refuse(*refusal);
  }
  unreachable_.clear();
  if (const int error = open_of_ffmpeg()(&context, &io, url, flags, options); error < 0) {
    if (first || unreachable_.empty() || error != AVERROR(EACCES)) return error;
    return refuse("names " + redact(url) + ", which " + unreachable_);
  }
  unreachable_.clear();
  const std::string begin = peek(*io);
  if (const int size = id3_size(begin); size > kLargestId3 && access_.from_network()) {
    return refuse("names " + redact(url) + ", which begins with an ID3 tag of " +
                  std::to_string(size) + " bytes, where " + std::to_string(kLargestId3) +
                  " are the most; no key allows more: have the sender put less into it");
  }
  if (begins_as_playlist(begin)) {
    if (const int error = read_ahead(*io, first); error < 0) return error;
  }
  return first && context.iformat == nullptr ? probe(context, *io, url) : 0;
}

int InputGuard::read_ahead(AVIOContext& io, bool first) {
  std::string text;
  std::array<unsigned char, 4096> part{};
  for (;;) {
    const int count = avio_read(&io, part.data(), static_cast<int>(part.size()));
    // FFmpeg says EIO at the end of an answer without a length, and its demuxers take it for one.
    if (count == AVERROR_EOF || count == AVERROR(EIO)) break;
    if (count < 0) return count;
    text.append(part.begin(), part.begin() + count);
    if (std::cmp_greater(text.size(), limits_.playlist_size)) {
      return refuse("sends a playlist of more than input.limits.playlist_size (" +
                    std::to_string(limits_.playlist_size) + " bytes); raise it if that is right");
    }
  }
  // FFmpeg's demuxers leave out what they would not open either, and do not say why.
  const bool hls = text.starts_with(kPlaylistMark);
  if (const int most = limits_.streams;
      count_of(text, hls ? std::span<const std::string_view>(kVariantsOfHls) : kVariantsOfDash) >
      most) {
    return refuse(too_many_streams(most));
  }
  int entries = hls ? 0 : count_of(text, kEntriesOfDash);
  for (std::string_view rest = text; !rest.empty() && entries <= kMostEntries;) {
    const std::string_view url = hls ? url_in(take_line(rest)) : take_base_url(rest);
    if (url.empty()) continue;
    ++entries;
    // A relative one becomes no shorter.
    if (url.size() <= InputAccess::kLongestUrl && url_scheme(url).empty()) continue;
    if (const auto refusal = access_.refusal_of_url(std::string(url))) return refuse(*refusal);
  }
  if (entries > kMostEntries) {
    return refuse("sends a playlist of more than " + std::to_string(kMostEntries) +
                  " segments; no key allows more: have the sender list fewer");
  }
  if (hls && !first && lists_variants(text)) return AVERROR_INVALIDDATA;
  return put_back(io, text);
}

/// Finds the format, as FFmpeg would now, to name it if it is refused.
int InputGuard::probe(AVFormatContext& context, AVIOContext& io, const char* url) {
  const int score = av_probe_input_buffer2(&io, &context.iformat, url, &context, 0,
                                           static_cast<unsigned>(context.format_probesize));
  if (score < 0) return score;
  if (const auto refusal = access_.refusal_of_format(*context.iformat)) return refuse(*refusal);
  return 0;
}

int InputGuard::find_streams(AVFormatContext& context) const {
  // FFmpeg takes options for the streams that there are by now. For those that come later it has a
  // limit of its own, of some 2^28 pixels.
  std::vector<AVDictionary*> options(context.nb_streams, nullptr);
  const std::string most = std::to_string(limits_.coded_pixels());
  for (AVDictionary*& one : options) av_dict_set(&one, "max_pixels", most.c_str(), 0);
  const int error = avformat_find_stream_info(&context, options.empty() ? nullptr : options.data());
  for (AVDictionary*& one : options) av_dict_free(&one);
  return error;
}

std::string InputGuard::reason_of(const std::string& line) const {
  constexpr std::string_view kProtocol = "Protocol '";
  constexpr std::string_view kSize = "Picture size ";
  if (line.starts_with(kProtocol)) {
    const std::size_t end = line.find('\'', kProtocol.size());
    const std::string name = line.substr(kProtocol.size(), end - kProtocol.size());
    return access_.refusal_of_url(name + ":").value_or("");
  }
  if (line.starts_with("Format not on whitelist")) {
    return "is of a format that input.formats does not allow; add it there";
  }
  if (line.starts_with("Number of streams exceeds")) return too_many_streams(limits_.streams);
  if (line.starts_with(kSize)) {
    const std::string size = line.substr(kSize.size());
    char* end = nullptr;
    const std::int64_t width = std::strtoll(size.c_str(), &end, 10);
    const std::int64_t height = *end == 'x' ? std::strtoll(end + 1, nullptr, 10) : 0;
    return excess_of_size(width, height);
  }
  return {};
}

std::string InputGuard::unreachable_by(int error) const {
  return is_answer(error) ? "" : unreachable_;
}

std::string InputGuard::refusal_in(int error, std::initializer_list<std::string> lines) const {
  if (!refusal_.empty()) return refusal_;
  if (std::string refusal = unreachable_by(error); !refusal.empty()) return refusal;
  for (const std::string& line : lines) {
    if (std::string reason = reason_of(line); !reason.empty()) return reason;
  }
  return {};
}

std::string InputGuard::refusal_of(const AVFormatContext& context, const std::string& line) const {
  if (!refusal_.empty()) return refusal_;
  if (std::string excess = excess_of(context); !excess.empty()) return excess;
  for (unsigned i = 0; i < context.nb_streams; ++i) {
    const AVCodecParameters& stream = *context.streams[i]->codecpar;
    // FFmpeg has not found a size that it would take.
    if (stream.codec_type == AVMEDIA_TYPE_VIDEO && stream.width == 0) return reason_of(line);
  }
  return {};
}

std::string InputGuard::excess_of(const AVFormatContext& context) const {
  if (std::cmp_greater(context.nb_streams, limits_.streams)) {
    return too_many_streams(limits_.streams);
  }
  for (unsigned i = 0; i < context.nb_streams; ++i) {
    const AVCodecParameters& stream = *context.streams[i]->codecpar;
    std::string excess = excess_of_size(stream.width, stream.height);
    if (!excess.empty()) return excess;
  }
  return {};
}

std::string InputGuard::excess_of_size(std::int64_t width, std::int64_t height) const {
  if (width * height <= limits_.pixels) return {};
  return "has pictures of " + std::to_string(width) + "x" + std::to_string(height) +
         ", more than input.limits.pixels allows (" + std::to_string(limits_.pixels) +
         " pixels); raise it if that is right";
}

}  // namespace framelane
