#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>

#include "pipeline/av/interrupt.hpp"
#include "pipeline/frames/frame_pool.hpp"
#include "pipeline/frames/input_frame.hpp"
#include "pipeline/measure/feed_stats.hpp"
#include "pipeline/packets/media.hpp"
#include "pipeline/source/fd_reader.hpp"
#include "pipeline/source/input_options.hpp"
#include "pipeline/source/timeline.hpp"
#include "pipeline/stage/stage.hpp"

namespace framelane {

/// What a source turned out to be once opened.
struct SourceInfo {
  AVRational time_base{1, 90000};  ///< of video packets and frames
  AVRational frame_rate{0, 1};     ///< 0/1 when unknown
  bool live = false;               ///< as is_live says, or as what came over HTTP shows
  std::string decoder;             ///< "h264", "rawvideo", …; empty when nothing is decoded
  MediaFormatRef media;            ///< the streams as they come, for `copy`; null for raw video
};

/// What one read brought. `packet` is valid until the next read.
struct SourceItem {
  enum class Kind { kPacket, kFrame } kind = Kind::kPacket;
  StreamKind stream = StreamKind::kVideo;
  AVPacket* packet = nullptr;
  InputFrame frame;
};

enum class ReadResult { kItem, kEnd, kStopped };

/// A source of packets and frames: opened by open_source, read by one thread (the feed's source
/// thread), closed by its destructor. Blocking calls end within the input's timeout, or at once on
/// a stop.
class Source {
 public:
  virtual ~Source() = default;
  virtual const SourceInfo& info() const = 0;

  /// The next packet or frame. kEnd: a file, pipe or test source ran out (the decoder is drained by
  /// then); a live source never ends, it throws IoError(kEof). A packet comes before the frames
  /// that are decoded from it. Damaged data is counted, not thrown. Throws IoError when the source
  /// is lost, FeedError when the feed must go.
  virtual ReadResult read(SourceItem& item) = 0;
};

/// A FIFO that stays open between one source and the next: a writer that stalled lives on, and so
/// does one that has come in the meantime, for writing to a pipe that nobody has open is fatal.
struct KeptPipe {
  std::unique_ptr<FdReader> reader;  ///< null: none
  std::size_t rest = 0;              ///< raw video: bytes of a broken-off frame still to come
};

struct SourceContext {
  FramePool& pool;          ///< decoded frames live here; outlives every frame
  FeedStats& stats;         ///< counts decode faults, copies, bytes, decode time
  Timeline& timeline;       ///< stamps every packet
  Interrupt& interrupt;     ///< of every call that may block; outlives the source
  bool decode = true;       ///< false: every encode copies
  bool want_audio = false;  ///< some encode copies audio
  /// Where a source leaves its FIFO to the next one; outlives both. Null: it is closed.
  KeptPipe* kept = nullptr;
  /// Converts the frames; says whether a decoder may leave them on a GPU. Outlives the source.
  /// Null: they go to host memory.
  Stage* stage = nullptr;
  int ring = 0;  ///< how many frames the feed holds at once, at most
};

/// Opens input.url. Raw video (input.raw) is read by our own poll-based reader, everything else by
/// libavformat. Blocks up to input.timeout for the connection and as long for the first data; a
/// FIFO is opened without waiting for its writer where it holds raw video. Throws IoError (which
/// the caller retries, unless `once`; a stop is one too, and the caller knows from its token), or
/// FeedError(kConfiguration) for what no retry mends: an option that nothing consumes, an unknown
/// format, no video stream in a file.
std::unique_ptr<Source> open_source(const InputOptions& input, const SourceContext& context);

}  // namespace framelane
