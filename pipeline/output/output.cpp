#include "pipeline/output/output.hpp"

#include <algorithm>
#include <exception>
#include <utility>

#include "pipeline/base/clock_reading.hpp"
#include "pipeline/base/log.hpp"
#include "pipeline/base/redact.hpp"
#include "pipeline/base/url.hpp"
#include "pipeline/measure/busy_meter.hpp"
#include "pipeline/output/io_error.hpp"
#include "pipeline/output/playlist.hpp"

namespace framelane {
namespace {

using std::chrono::milliseconds;

/// Packets of one stream wait for those of the other, to be written in the order of time. If no
/// packet comes for this long, a live feed's output writes those that wait.
constexpr milliseconds kIdle{500};
/// After a stop, queued packets are still written, for at most this long.
constexpr milliseconds kDrainAfterStop{500};
/// Two kinds of calls may take at least this long, even if the output's timeout is shorter:
/// completing a file, which waits until all of it is on the disk; and looking through a folder,
/// which may hold many files.
constexpr std::chrono::seconds kLongCall{60};
/// Looking a peer's name up may take this long, and asks nobody for a deadline.
constexpr std::chrono::seconds kNameLookup{10};
/// Only a session that lasts longer counts as a recovery: the first packets may merely have gone
/// into a buffer.
constexpr std::chrono::seconds kProvenAfter{2};

PacketDrop drop_reason(const std::runtime_error& error) {
  return dynamic_cast<const DiskFull*>(&error) ? PacketDrop::kDiskFull : PacketDrop::kWriteFailed;
}

}  // namespace

Output::Output(OutputOptions options, OutputStats& stats, FeedStats& feed, bool blocks)
    : options_(std::move(options)),
      declared_(container_of(options_)),
      subject_("feed " + feed.feed() + ": output " + options_.name),
      stats_(stats),
      run_(stats.begin_run()),
      feed_(feed),
      inlet_(options_.queue, stats, blocks,
             [this](const MediaFormat& format) { return takes_audio(format); }),
      backoff_(options_.reconnect),
      faults_(subject_),
      recovery_(subject_) {}

Output::~Output() = default;

bool Output::takes_audio(const MediaFormat& format) {
  if (!format.audio) return false;
  if (declared_.kind == OutputKind::kNull) return true;
  const AVCodecID codec = format.audio->parameters->codec_id;
  if (holds_audio(declared_, codec)) return true;
  if (declared_.muxer && !audio_warned_.exchange(true)) {
    log::warn("{}: goes without audio: {} is nothing players can read in {}", subject_,
              avcodec_get_name(codec), declared_.muxer->name);
  }
  return false;
}

milliseconds Output::long_call() const {
  return std::max<milliseconds>(options_.timeout, kLongCall);
}

void Output::abandon(const std::string& reason) {
  abandoned_.request_stop();
  set_state(FeedState::kFailed, reason);
}

void Output::recover_part_files(const std::stop_token& stop) {
  const CallScope call(calls_, long_call());
  recovery_.recover(options_, stop);
}

void Output::run(std::stop_token stop, bool once) {
  stop_ = std::move(stop);
  once_ = once;
  set_state(FeedState::kConnecting);
  try {
    {
      const CallScope call(calls_, options_.timeout);
      container_ = container_on_disk(options_);
      // A peer's calls ask for their deadline, except where they hang (a name server, a driver).
      // Devices, terminals, FIFOs and standard output may take any time.
      watched_ = container_.local ? container_.kind == declared_.kind
                                  : url_scheme(container_.url) != "pipe";
    }
    check_container(options_, container_);
    const std::optional<SegmentOptions>& segment = options_.segment;
    if (container_.kind == OutputKind::kFile) {
      rotation_.emplace(container_.url, segment ? std::optional(segment->length) : std::nullopt);
    }
    if (segment) retention_.emplace(rotation_->pattern(), *segment, subject_);
    retain();
    write_until_end();
    end(PacketDrop::kStop);
    show_end();
  } catch (const std::exception& error) {
    const std::string reason = redact(error.what());
    drop_session();
    end(PacketDrop::kWriteFailed);
    set_state(FeedState::kFailed, reason);
    // The other outputs of the feed can do without this one, except where all are wanted or none.
    if (once_ || !dynamic_cast<const FeedError*>(&error)) throw;
    log::error("{}: failed: {}", subject_, reason);
  }
}

void Output::show_end() {
  auto [state, reason] = stats_.state();
  // What came last could not be written: the reason has to stay visible.
  const bool in_trouble = state == FeedState::kBackoff && !stop_.stop_requested();
  if (in_trouble) return set_state(FeedState::kFailed, reason);
  set_state(FeedState::kEnded);
}

void Output::write_until_end() {
  MediaPacket packet{.packet = make_packet()};
  for (;;) {
    switch (inlet_.pop(packet, kIdle, stop_)) {
      case PacketQueue::Pop::kPacket:
        interleave(packet);
        drain(false);
        break;
      case PacketQueue::Pop::kTimeout:
        // Viewers of a live feed should not wait for the other stream any longer. If the feed is
        // not live, its encoder may just be slow: the order of packets matters more.
        drain(!inlet_.blocks());
        retain_when_due();
        break;
      case PacketQueue::Pop::kEnd:
        drain(true);
        return close_at_end();
      case PacketQueue::Pop::kStopped:
        write_rest();
        return close_at_end();
    }
  }
}

void Output::interleave(MediaPacket& packet) {
  // Packets that are discarded need no order.
  const bool has_audio = container_.kind != OutputKind::kNull && takes_audio(*packet.format);
  interleaver_.add(packet, has_audio);
}

void Output::write_rest() {
  const auto until = Clock::now() + kDrainAfterStop;
  inlet_.finish();
  MediaPacket packet{.packet = make_packet()};
  const bool open = session_ || container_.kind == OutputKind::kNull;
  try {
    while (open && Clock::now() < until) {
      const bool more = inlet_.pop(packet, milliseconds::zero(), {}) == PacketQueue::Pop::kPacket;
      if (more) interleave(packet);
      if (interleaver_.next(current_, !more)) {
        deliver(current_);
      } else if (!more) {
        break;
      }
    }
  } catch (const std::runtime_error& error) {
    stats_.drop(PacketDrop::kStop);
    faults_.failed(redact(error.what()), "it was being stopped");
    drop_session();
  }
  end(PacketDrop::kStop);
}

void Output::drain(bool flush) {
  try {
    while (!stop_.stop_requested() && interleaver_.next(current_, flush)) {
      try {
        deliver(current_);
      } catch (const std::runtime_error& error) {
        stats_.drop(stop_.stop_requested() ? PacketDrop::kStop : drop_reason(error));
        recover_from(error);
      }
    }
    const CallScope call(calls_, options_.timeout);
    if (session_) session_->flush_when_due();
  } catch (const IoError& error) {
    recover_from(error);
  }
}

void Output::deliver(MediaPacket& packet) {
  if (container_.kind == OutputKind::kNull) {
    if (!stats_.up) set_state(FeedState::kRunning);
    stats_.bytes += static_cast<std::uint64_t>(packet.packet->size);
    return observe_written(packet);
  }
  // Audio from before the first picture would make a file begin with nothing to see.
  const bool fits = packet.stream == StreamKind::kVideo ? begin_session_if_due(packet)
                                                        : session_ && session_->takes(packet);
  if (!fits) return stats_.drop(PacketDrop::kWaitKeyframe);
  write(packet);
}

bool Output::begin_session_if_due(const MediaPacket& video) {
  const bool keyframe = is_keyframe(*video.packet, StreamKind::kVideo);
  if (video.format != format_) {
    // Only video decides: audio comes from another thread and may change earlier or later.
    const bool same = format_ && same_format(*video.format, *format_);
    if (keyframe && !same) close(false);
    if (keyframe || same) format_ = video.format;
    // A new format object means that the source or the encoder has started again.
    needs_keyframe_ = true;
  }
  if (needs_keyframe_ && !keyframe) return false;
  if (keyframe && session_ && rotation_ && rotation_->cuts_at(session_->age_at(video))) {
    close(false);
  }
  if (!session_) {
    open(video);
    retry_recovery();  // a file can be made again: perhaps an older one can be renamed as well
  }
  needs_keyframe_ = false;
  return true;
}

void Output::open(const MediaPacket& keyframe) {
  check_video(options_, container_, keyframe.format->video.parameters->codec_id);
  const CallScope call(calls_, container_.local
                                   ? options_.timeout
                                   : std::max<milliseconds>(options_.timeout, kNameLookup));
  std::optional<PartFile> file;
  MuxerTarget target{.url = container_.url};
  if (container_.kind == OutputKind::kFile) {
    const auto start = ClockReading::now().wall_at(keyframe.queued_at);
    file.emplace(rotation_->begin_file(start, options_.existing));
    target.url = "file:" + file->path();  // so that a ':' in the path is not taken for a protocol's
  } else if (container_.kind == OutputKind::kPlaylist) {
    const bool anew = options_.existing != Existing::kNumber && !playlist_begun_;
    target = prepare_playlist(options_, container_, anew);
    playlist_begun_ = true;
  }
  const log::Level level = file ? log::Level::kDebug : log::Level::kInfo;
  session_ = std::make_unique<OutputSession>(options_, container_, std::move(file), recovery_,
                                             target, keyframe, stop_, abandoned_.get_token());
  opened_at_ = Clock::now();
  inlet_.opened();
  set_state(FeedState::kRunning);
  const std::string url = redact(target.url);
  log::write(level, "{}: writing {}", fmt::make_format_args(subject_, url));
}

void Output::write(MediaPacket& packet) {
  bool written = false;
  {
    const BusyMeter::Scope busy(stats_.busy);
    const CallScope call(calls_, options_.timeout);
    written = session_->write(packet);
  }
  stats_.bytes += session_->take_bytes();
  if (!written) return stats_.drop(PacketDrop::kWriteFailed);
  observe_written(packet);
}

void Output::observe_written(const MediaPacket& packet) {
  const auto now = Clock::now();
  feed_.observe(StageStep::kMux, now - packet.queued_at);
  backoff_.succeeded(now);
  if (now - opened_at_ > kProvenAfter) faults_.recovered();
}

void Output::close(bool at_end) {
  if (!session_) return;
  complete(at_end);
  retain();
}

void Output::complete(bool at_end) {
  const CallScope call(calls_, long_call());
  // The session ends here in any case; if finish() fails, its destructor saves the file.
  const std::unique_ptr<OutputSession> session = std::move(session_);
  std::string name;
  {
    const BusyMeter::Scope busy(stats_.busy);
    // A playlist has an end only if run once, because a daemon continues it after a restart. Only a
    // daemon waits for the disk, because its recordings have to survive a power cut.
    name = session->finish(at_end && once_ && !stop_.stop_requested(), !once_);
  }
  stats_.bytes += session->take_bytes();
  log::info("{}: completed {} ({:.1f} s)", subject_, redact(name.empty() ? options_.url : name),
            std::chrono::duration<double>(session->length()).count());
}

void Output::close_at_end() {
  try {
    close(true);
  } catch (const IoError& error) {
    if (once_) throw;
    log::warn("{}: {}", subject_, redact(error.what()));
  }
  retry_recovery();
}

void Output::drop_session() {
  const CallScope call(calls_, long_call());
  session_.reset();
}

void Output::retry_recovery() {
  const CallScope call(calls_, long_call());
  recovery_.retry(container_);
}

void Output::retain() {
  if (!retention_) return;
  const CallScope call(calls_, long_call());
  retention_->enforce(ClockReading::now(), [this] { calls_.arm(long_call()); });
}

void Output::retain_when_due() {
  if (retention_ && retention_->due(Clock::now())) retain();
}

void Output::recover_from(const std::runtime_error& error) {
  drop_session();
  needs_keyframe_ = true;
  if (stop_.stop_requested()) return;
  if (once_) throw;

  inlet_.interrupted();
  const auto* io = dynamic_cast<const IoError*>(&error);
  if (io) stats_.reconnects[index_of(io->code())].fetch_add(1, std::memory_order_relaxed);
  set_state(FeedState::kBackoff, redact(error.what()));
  const milliseconds wait = backoff_.next();
  faults_.failed(redact(error.what()), fmt::format("dropping packets, trying again in {:.1f} s",
                                                   std::chrono::duration<double>(wait).count()));
  const bool format_changed = wait_before_retry(wait, drop_reason(error), io ? nullptr : format_);
  if (drop_reason(error) == PacketDrop::kDiskFull) {
    retain();  // this may free some space
  } else {
    retain_when_due();
  }
  if (format_changed) return interleave(current_);
  inlet_.request_resume();
}

bool Output::wait_before_retry(milliseconds time, PacketDrop reason,
                               const MediaFormatRef& refused) {
  stats_.drop(reason, interleaver_.clear());
  const auto until = Clock::now() + time;
  for (auto left = time; left > milliseconds::zero();
       left = std::chrono::ceil<milliseconds>(until - Clock::now())) {
    const PacketQueue::Pop popped = inlet_.pop(current_, left, stop_);
    if (popped == PacketQueue::Pop::kPacket) {
      if (refused && is_keyframe(*current_.packet, current_.stream) &&
          !same_format(*current_.format, *refused)) {
        return true;
      }
      stats_.drop(reason);
    } else if (popped != PacketQueue::Pop::kTimeout) {
      return false;
    }
  }
  return false;
}

void Output::end(PacketDrop reason) {
  inlet_.end(reason);
  stats_.drop(reason, interleaver_.clear());
}

bool needs_global_header(const OutputOptions& options) {
  const Container container = container_of(options);
  return container.muxer && (container.muxer->flags & AVFMT_GLOBALHEADER);
}

}  // namespace framelane
