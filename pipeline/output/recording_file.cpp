#include "pipeline/output/recording_file.hpp"

extern "C" {
#include <libavcodec/bsf.h>
#include <libavutil/mathematics.h>
}

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <new>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "pipeline/av/av_error.hpp"
#include "pipeline/av/av_ptr.hpp"
#include "pipeline/av/dictionary.hpp"
#include "pipeline/base/failure.hpp"
#include "pipeline/base/utc_time.hpp"

namespace framelane {
namespace {

using std::chrono::microseconds;
using std::chrono::system_clock;

constexpr int kIoBuffer = 32 * 1024;
/// Sound may come first; so many packets are looked through for the first picture.
constexpr int kMostBefore = 1000;
/// Packets, with those of sound.
constexpr int kMostInGroup = 5000;

bool is_mov(const AVFormatContext& context) {
  return std::string_view(context.iformat->name).starts_with("mov");
}

std::uint64_t big_endian(std::span<const std::uint8_t> bytes) {
  std::uint64_t number = 0;
  for (const std::uint8_t byte : bytes) number = number << 8 | byte;
  return number;
}

/// FNV-1a, over what describes the streams.
class Digest {
 public:
  void add(std::span<const std::uint8_t> bytes) {
    for (const std::uint8_t byte : bytes) value_ = (value_ ^ byte) * 0x100000001b3;
  }
  void add(std::int64_t number) {
    std::array<std::uint8_t, sizeof number> bytes;
    std::memcpy(bytes.data(), &number, sizeof number);
    add(bytes);
  }
  std::uint64_t value() const { return value_; }

 private:
  std::uint64_t value_ = 0xcbf29ce484222325;
};

/// The codec's headers that stand in a keyframe itself (MPEG-TS).
void add_headers_in_band(Digest& digest, const AVStream& stream, const AVPacket& keyframe) {
  const AVBitStreamFilter* const filter = av_bsf_get_by_name("extract_extradata");
  AVBSFContext* context = nullptr;
  if (filter == nullptr || av_bsf_alloc(filter, &context) < 0) return;
  const PacketPtr packet = make_packet();
  if (avcodec_parameters_copy(context->par_in, stream.codecpar) >= 0 && av_bsf_init(context) >= 0 &&
      av_packet_ref(packet.get(), &keyframe) >= 0 &&
      av_bsf_send_packet(context, packet.get()) >= 0 &&
      av_bsf_receive_packet(context, packet.get()) >= 0) {
    std::size_t size = 0;
    const std::uint8_t* const headers =
        av_packet_get_side_data(packet.get(), AV_PKT_DATA_NEW_EXTRADATA, &size);
    if (headers != nullptr) digest.add(std::span(headers, size));
  }
  av_bsf_free(&context);
}

}  // namespace

RecordingFile::RecordingFile(FileDescriptor file, const Container& container, For purpose,
                             ReadingEnds ends)
    : file_(std::move(file)), purpose_(purpose), ends_(std::move(ends)) {
  auto* const buffer = static_cast<unsigned char*>(av_malloc(kIoBuffer));
  if (buffer != nullptr) {
    io_ = avio_alloc_context(buffer, kIoBuffer, 0, this, &read_bytes, nullptr, &seek_bytes);
    if (io_ == nullptr) av_free(buffer);
  }
  context_ = io_ != nullptr ? avformat_alloc_context() : nullptr;
  if (context_ == nullptr) {
    close();
    throw std::bad_alloc();
  }
  context_->pb = io_;
  context_->io_open = &refuse_to_open;
  if (purpose == For::kBegin) context_->flags |= AVFMT_FLAG_IGNIDX;
  // Some demuxers are not named as their muxers are: without a name FFmpeg probes the file.
  const AVInputFormat* const demuxer =
      container.muxer ? av_find_input_format(container.muxer->name) : nullptr;
  Dictionary options;
  options.set("protocol_whitelist", "none");
  if (purpose == For::kTimes) options.set("use_mfra_for", "pts");
  const int error = avformat_open_input(&context_, "", demuxer, options.ptr());
  if (error >= 0) return;
  const int on_disk = io_->error;
  close();
  check(on_disk);
  throw IoError(IoFault::kDecode, "cannot be read: " + av_error_text(error));
}

RecordingFile::~RecordingFile() { close(); }

void RecordingFile::check(int on_disk) const {
  if (ends_()) throw IoError(IoFault::kTimeout, "nobody waits for it any more");
  if (on_disk < 0 && on_disk != AVERROR_EOF) {
    throw IoError(IoFault::kIo, "cannot be read: " + av_error_text(on_disk));
  }
}

void RecordingFile::close() {
  avformat_close_input(&context_);
  if (io_ != nullptr) av_freep(&io_->buffer);
  avio_context_free(&io_);
}

int RecordingFile::refuse_to_open(AVFormatContext*, AVIOContext**, const char*, int,
                                  AVDictionary**) {
  return AVERROR(EPERM);
}

int RecordingFile::read_bytes(void* self, std::uint8_t* buffer, int size) {
  auto& file = *static_cast<RecordingFile*>(self);
  if (file.ends_()) return AVERROR_EXIT;
  ssize_t got = 0;
  do {
    got = pread(file.file_.get(), buffer, static_cast<std::size_t>(size), file.position_);
  } while (got < 0 && errno == EINTR);
  if (got < 0) return AVERROR(errno);
  if (got == 0) return AVERROR_EOF;
  file.position_ += got;
  return static_cast<int>(got);
}

std::int64_t RecordingFile::seek_bytes(void* self, std::int64_t offset, int whence) {
  auto& file = *static_cast<RecordingFile*>(self);
  struct stat status {};
  if ((whence & AVSEEK_SIZE) != 0 || whence == SEEK_END) {
    if (fstat(file.file_.get(), &status) != 0) return AVERROR(errno);
    if ((whence & AVSEEK_SIZE) != 0) return status.st_size;
  }
  const std::int64_t base = whence == SEEK_END   ? status.st_size
                            : whence == SEEK_CUR ? file.position_
                                                 : 0;
  if (base + offset < 0) return AVERROR(EINVAL);
  return file.position_ = base + offset;
}

AVStream* RecordingFile::main_stream() const {
  const std::span streams(context_->streams, context_->nb_streams);
  const auto video = std::ranges::find_if(streams, [](const AVStream* stream) {
    return stream->codecpar->codec_type == AVMEDIA_TYPE_VIDEO;
  });
  return video != streams.end() ? *video : streams.empty() ? nullptr : streams.front();
}

void RecordingFile::find_streams() {
  context_->probesize = 2 << 20;
  context_->max_analyze_duration = 2 * AV_TIME_BASE;
  const int error = avformat_find_stream_info(context_, nullptr);
  check(io_->error);
  if (error < 0) throw IoError(IoFault::kDecode, "cannot be read: " + av_error_text(error));
}

bool RecordingFile::read(AVPacket& packet) {
  for (;;) {
    av_packet_unref(&packet);
    const int error = av_read_frame(context_, &packet);
    if (error < 0) check(io_->error);
    if (error < 0) return false;
    // Of a file that is still written, the last packet may be there in part.
    if ((packet.flags & AV_PKT_FLAG_CORRUPT) == 0 || avio_feof(io_) == 0) return true;
  }
}

bool RecordingFile::seek(std::int64_t time) {
  return av_seek_frame(context_, main_stream()->index, time, AVSEEK_FLAG_BACKWARD) >= 0;
}

bool RecordingFile::rewind(std::int64_t first) {
  // Pictures are decoded before they are shown, and MPEG-TS is sought by the former time.
  return seek(first - av_rescale_q(10, {1, 1}, main_stream()->time_base));
}

RecordingTimes RecordingFile::read_times(const std::string& path, const FilePattern& pattern,
                                         system_clock::time_point changed) {
  const PacketPtr packet = make_packet();
  const AVStream* stream = nullptr;
  for (int i = 0; i < kMostBefore && read(*packet); ++i) {
    // Some containers tell what streams there are with their first packets.
    stream = main_stream();
    if (packet->stream_index == stream->index) break;
    stream = nullptr;
  }
  if (stream == nullptr) throw IoError(IoFault::kDecode, "has no picture");
  RecordingTimes times;
  times.format = format_of(*packet);
  const std::int64_t first = packet->pts;
  std::optional<microseconds> length;
  if (first != AV_NOPTS_VALUE && purpose_ != For::kBegin) {
    length.emplace();
    // If the container cannot seek, all of it is read.
    avformat_seek_file(context_, -1, INT64_MIN, INT64_MAX / 2, INT64_MAX, 0);
    std::optional<std::int64_t> end = read_end(*packet);
    if (!end) {  // behind the last picture
      rewind(first);
      end = read_end(*packet);
    }
    if (end) {
      length = microseconds(
          std::max<std::int64_t>(0, av_rescale_q(*end - first, stream->time_base, AV_TIME_BASE_Q)));
    }
  }
  if (const auto told = told_begin()) {
    times.begin = *told;
    times.exact = true;
  } else {
    const auto near = changed - length.value_or(microseconds{});
    times.begin = pattern.time_of(path, near).value_or(near);
  }
  const auto last = std::max(times.begin, changed);
  times.end = length ? times.begin + *length : last;
  // What a damaged file says may be any time. A live one may be ahead of the clock by some
  // pictures.
  if (times.end > system_clock::now() + std::chrono::minutes(1)) times.end = last;
  return times;
}

std::optional<microseconds> RecordingFile::next_after(microseconds after) {
  const PacketPtr packet = make_packet();
  std::optional<std::int64_t> first;
  for (int i = 0; i < kMostInGroup && read(*packet); ++i) {
    const AVStream& stream = *main_stream();
    if (packet->stream_index != stream.index || packet->pts == AV_NOPTS_VALUE) continue;
    if (!first) first = packet->pts;
    const microseconds at(av_rescale_q(packet->pts - *first, stream.time_base, AV_TIME_BASE_Q));
    if (at > after) return at;
  }
  return std::nullopt;
}

std::optional<std::int64_t> RecordingFile::read_end(AVPacket& packet) {
  const AVStream& stream = *main_stream();
  // What FFmpeg says of durations is a guess where the container does not tell them (MPEG-TS).
  const bool guesses = (context_->iformat->flags & AVFMT_TS_DISCONT) != 0;
  std::optional<std::int64_t> last;
  std::int64_t before = 0;    // of the picture before the last one
  std::int64_t duration = 0;  // of the last one
  const auto read_rest = [&] {
    std::optional<std::int64_t> second;
    while (read(packet)) {
      if (packet.stream_index != stream.index || packet.pts == AV_NOPTS_VALUE) continue;
      if (!last || packet.pts > *last) {
        second = std::exchange(last, packet.pts);
        duration = guesses ? 0 : packet.duration;
      } else if (packet.pts < *last && (!second || packet.pts > *second)) {
        second = packet.pts;
      }
    }
    before = second.value_or(last.value_or(0));
  };
  read_rest();
  if (last && duration == 0) {
    // The last picture is shown for as long as the one before.
    constexpr std::int64_t kSeconds = 2;
    if (seek(*last - av_rescale_q(kSeconds, {1, 1}, stream.time_base))) read_rest();
    duration = *last - before;
  }
  return last ? std::optional(*last + duration) : std::nullopt;
}

std::optional<system_clock::time_point> RecordingFile::told_begin() const {
  const AVDictionaryEntry* const entry =
      av_dict_get(context_->metadata, "creation_time", nullptr, 0);
  const auto told = entry != nullptr ? parse_utc_time(entry->value) : std::nullopt;
  if (!told || !is_mov(*context_)) return told;
  // MP4's header has whole seconds.
  const auto exact = reference_time();
  return exact && std::chrono::abs(*exact - *told) < std::chrono::seconds(2) ? exact : told;
}

std::optional<system_clock::time_point> RecordingFile::reference_time() const {
  // ISO/IEC 14496-12: 4.2 (boxes), 8.16.5 (prft)
  constexpr std::int64_t kNtpEpoch = 2'208'988'800;  // 1900, in seconds before 1970
  constexpr int kMostBoxes = 8;
  std::int64_t at = 0;
  for (int i = 0; i < kMostBoxes; ++i) {
    std::array<std::uint8_t, 28> box;
    if (pread(file_.get(), box.data(), box.size(), at) != static_cast<ssize_t>(box.size())) break;
    const std::span bytes(box);
    const std::string_view type(reinterpret_cast<const char*>(box.data()) + 4, 4);
    if (type == "moof" || type == "mdat") break;
    if (type == "prft") {
      const auto seconds = static_cast<std::int64_t>(big_endian(bytes.subspan(16, 4))) - kNtpEpoch;
      const auto part =
          static_cast<std::int64_t>(big_endian(bytes.subspan(20, 4)) * 1'000'000 >> 32);
      return system_clock::time_point(std::chrono::seconds(seconds) + microseconds(part));
    }
    const auto size = static_cast<std::int64_t>(big_endian(bytes.first(4)));
    if (size < 8) break;
    at += size;
  }
  return std::nullopt;
}

std::uint64_t RecordingFile::format_of(const AVPacket& keyframe) const {
  Digest digest;
  const AVStream& main = *main_stream();
  for (const AVStream* const stream : std::span(context_->streams, context_->nb_streams)) {
    const AVCodecParameters& codec = *stream->codecpar;
    for (const int number :
         {static_cast<int>(codec.codec_id), codec.width, codec.height, codec.sample_rate}) {
      digest.add(std::int64_t{number});
    }
    if (codec.extradata_size > 0) {
      digest.add(std::span(codec.extradata, static_cast<std::size_t>(codec.extradata_size)));
    } else if (stream == &main) {
      add_headers_in_band(digest, main, keyframe);
    }
  }
  return digest.value();
}

}  // namespace framelane
