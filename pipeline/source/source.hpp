#pragma once

extern "C" {
#include <libavutil/rational.h>
}

#include <cstddef>
#include <memory>
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
  bool live = false;               ///< is_live says so, or what came shows it
  std::string decoder;             ///< "h264", "rawvideo", …; empty when nothing is decoded
  MediaFormatRef media;            ///< the undecoded streams, for `copy`; null for raw video
};

/// What one read brought.
struct SourceItem {
  enum class Kind { kPacket, kFrame } kind = Kind::kPacket;
  StreamKind stream = StreamKind::kVideo;
  AVPacket* packet = nullptr;  ///< the source's, until its next read; null with kFrame
  InputFrame frame;            ///< set with kFrame
  /// It came before the source fell silent or was lost, and was held back until then: by a parser
  /// or a decoder, which want to see what follows.
  bool held_back = false;
};

enum class ReadResult { kItem, kEnd, kStopped };

/// A source of packets and frames: opened by open_source, closed by its destructor. One thread, the
/// feed's source thread. Blocking calls end within the input's timeout, or at once on a stop.
class Source {
 public:
  virtual ~Source() = default;
  virtual const SourceInfo& info() const = 0;

  /// The next packet or frame. A packet comes before the frames that are decoded from it. kEnd: a
  /// file, pipe or test source ran out, or a growing playlist is finished, and all frames have been
  /// given; any other live source throws IoError(kEof) instead. Damaged data is counted, not
  /// thrown. Throws IoError when the source is lost, FeedError when the feed cannot go on.
  virtual ReadResult read(SourceItem& item) = 0;
};

/// A FIFO that stays open between one source and the next. If it were closed, SIGPIPE would end a
/// writer that has stalled, or one that comes before the next source does.
struct PersistentPipe {
  std::unique_ptr<FdReader> reader;  ///< null: there is no open FIFO
  std::size_t rest = 0;              ///< raw video: bytes still to come of an incomplete frame
};

/// What the log has said of a producer of shared memory, and need not say at every connection.
struct SaidOfProducer {
  bool size = false;
  bool untimed = false;
  bool few_slots = false;
  bool missed = false;
};

/// What a source gets from its feed. All of it outlives the source.
struct SourceContext {
  FramePool& pool;          ///< of decoded frames
  FeedStats& stats;         ///< counts decode faults, copies, bytes, decode time
  Timeline& timeline;       ///< stamps every packet and frame
  Interrupt& interrupt;     ///< armed during every call that may block
  bool decode = true;       ///< false: every encode copies, no frame is wanted
  bool want_audio = false;  ///< some encode copies audio
  /// Where the source leaves its FIFO for the next one. Null: the FIFO is closed.
  PersistentPipe* pipe = nullptr;
  /// Shared memory only. Null: every source says all anew.
  SaidOfProducer* said = nullptr;
  /// Converts the frames, and says whether a decoder may leave them on a GPU. Null: decoders put
  /// them into host memory.
  Stage* stage = nullptr;
  int ring = 0;  ///< the most frames that the feed's ring holds at once
};

/// Opens input.url: raw video (input.raw) with RawSource, or with ShmSource if it is "shm:SOCKET",
/// everything else with StreamSource. Blocks for up to input.timeout to connect and as long again
/// for the first data; raw video does not wait for a FIFO's writer. Throws IoError, which the
/// caller retries unless `once` (a stop throws it too: the caller knows from its token), or
/// FeedError(kConfiguration) for what no retry mends: an option that nothing consumes, an unknown
/// format, a file without a video stream.
std::unique_ptr<Source> open_source(const InputOptions& input, const SourceContext& context);

}  // namespace framelane
