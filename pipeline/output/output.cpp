// Longer than 400 lines: the states of one thread, all in one class.
#include "pipeline/output/output.hpp"

#include <algorithm>
#include <cerrno>
#include <exception>
#include <filesystem>
#include <new>
#include <utility>

#include "pipeline/av/av_error.hpp"
#include "pipeline/base/clock_reading.hpp"
#include "pipeline/base/log.hpp"
#include "pipeline/base/redact.hpp"
#include "pipeline/base/url.hpp"
#include "pipeline/measure/busy_meter.hpp"
#include "pipeline/output/io_error.hpp"
#include "pipeline/output/picture_time.hpp"

namespace framelane {
namespace {

using std::chrono::milliseconds;

/// Packets of one stream wait for those of the other, to be written in the order of time. If no
/// packet comes for this long, a live feed's output writes those that wait.
constexpr milliseconds kIdle{500};
/// After a stop, queued packets are still written, for at most this long.
constexpr milliseconds kDrainAfterStop{500};
/// Calls that may take this long, even if the output's timeout is shorter: completing a file, which
/// waits until all of it is on the disk; and looking through a folder, which may hold many files.
constexpr std::chrono::seconds kLongCall{60};
/// Looking a peer's name up may take this long, and asks nobody for a deadline.
constexpr std::chrono::seconds kNameLookup{10};
/// Only a longer session counts as a recovery: the first packets may just have gone into a buffer.
constexpr std::chrono::seconds kProvenAfter{2};

PacketDrop drop_reason(const std::runtime_error& error) {
  return dynamic_cast<const DiskFull*>(&error) ? PacketDrop::kDiskFull : PacketDrop::kWriteFailed;
}

/// Never empty.
std::string_view code_of(const std::exception& error) {
  if (dynamic_cast<const DiskFull*>(&error)) {
    return kPacketDropNames[index_of(PacketDrop::kDiskFull)];
  }
  const std::string_view code = fault_code(error);
  return code.empty() ? fault_code(FeedFault::kInternal) : code;
}

}  // namespace

Output::Output(OutputOptions options, OutputStats& stats, FeedStats& feed,
               const LineClock& line_clock, bool blocks, Retention* retention,
               RenditionGroup* renditions, std::size_t rendition)
    : options_(std::move(options)),
      declared_(container_of(options_)),
      subject_("feed " + feed.feed() + ": output " + options_.name +
               (renditions == nullptr                 ? ""
                : options_.only == StreamKind::kAudio ? " (sound)"
                                                      : " (" + options_.from + ")")),
      stats_(stats),
      feed_(feed),
      line_clock_(line_clock),
      retention_(retention),
      inlet_(
          options_.queue, stats, blocks,
          [this](const MediaFormat& format) { return takes_audio(format); }, options_.only),
      backoff_(options_.reconnect),
      faults_(subject_),
      source_gap_(line_clock),
      recovery_(subject_, PartFileRecovery::kLook,
                [this](const std::string& path) { tell_of_file(path); }) {
  if (renditions == nullptr) return;
  rendition_.emplace(*renditions, rendition, options_.only == StreamKind::kAudio);
}

bool Output::takes_audio(const MediaFormat& format) {
  if (!format.audio || options_.only == StreamKind::kVideo) return false;
  if (declared_.kind == OutputKind::kNull) return true;
  const AVCodecID codec = format.audio->parameters->codec_id;
  if (holds_audio(declared_, codec)) return true;
  if (declared_.muxer && !audio_warned_.exchange(true)) {
    log::warn("{}: goes without audio: {}", subject_, why_no_audio(options_, declared_, codec));
  }
  return false;
}

milliseconds Output::long_call() const {
  return std::max<milliseconds>(options_.timeout, kLongCall);
}

void Output::abandon(const std::string& reason) {
  abandoned_.request_stop();
  inlet_.end(PacketDrop::kWriteFailed);
  set_state(FeedState::kFailed, reason, fault_code(IoFault::kTimeout));
}

void Output::recover_part_files(const std::stop_token& stop) {
  const CallScope call(calls_, long_call());
  recovery_.recover(options_, calls_, long_call(), stop);
}

void Output::run(const std::stop_token& stop, bool once, std::stop_token drain) {
  const std::stop_callback on_stop(stop, [this] { ending_.request_stop(); });
  run_ = stats_.begin_run();
  drain_ = std::move(drain);
  once_ = once;
  set_state(FeedState::kConnecting);
  stats_.leaves_parts = true;  // as long as it runs, and for good if it is abandoned
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
    if (container_.kind == OutputKind::kPlaylist) {
      playlist_.emplace(options_, container_.url, subject_,
                        rendition_ ? &rendition_->group() : nullptr,
                        rendition_ ? rendition_->index() : 0);
    }
    keep_files(segment);
    write_until_end();
    end(PacketDrop::kStop);
    leave_place();
    show_end();
  } catch (const std::exception& error) {
    const std::string reason = redact(error.what());
    leave_place();
    end(PacketDrop::kWriteFailed);
    set_state(FeedState::kFailed, reason, code_of(error));
    // The other outputs of the feed can do without this one, except where all are wanted or none.
    if (once_ || !dynamic_cast<const FeedError*>(&error)) throw;
    const log::FaultScope fault(fault_code(error), reason);
    log::error("{}: failed: {}", subject_, reason);
  }
  stats_.leaves_parts = recovery_.waits();
}

void Output::keep_files(const std::optional<SegmentOptions>& segment) {
  segment_ = segment;
  kept_.reset();
  if (retention_ == nullptr || !rotation_ || !segment || !segment->deletes()) return;
  const CallScope call(calls_, options_.timeout);
  kept_ = retention_->keep(rotation_->pattern(), *segment, subject_, stats_.retention);
}

void Output::change(const OutputOptions& options) {
  inlet_.set_capacity(options.queue);
  const std::lock_guard lock(changed_mutex_);
  changed_ = options;
  has_changed_ = true;
}

void Output::take_changes() {
  if (!has_changed_.exchange(false)) return;
  OutputOptions options;
  {
    const std::lock_guard lock(changed_mutex_);
    options = *changed_;
  }
  backoff_.set_options(options.reconnect);
  if (options.segment != segment_) keep_files(options.segment);
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
    take_changes();
    switch (inlet_.pop(packet, kIdle, stop_)) {
      case PacketQueue::Pop::kPacket:
        interleave(packet);
        drain(false);
        break;
      case PacketQueue::Pop::kTimeout:
        // Viewers of a live feed should not wait for the other stream any longer. If the feed is
        // not live, its encoder may just be slow: the order of packets matters more.
        drain(!inlet_.blocks());
        end_if_source_is_gone();
        show_if_encode_is_down();
        break;
      case PacketQueue::Pop::kEnd:
        drain(true);
        close_at_end();
        return fail_if_none_was_written();
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
    count_lost(current_, PacketDrop::kStop);
    faults_.failed(fault_code(error), redact(error.what()), "it was being stopped");
    drop_session(PacketDrop::kStop);
  }
  end(PacketDrop::kStop);
}

void Output::drain(bool flush) {
  try {
    while (!stop_.stop_requested() && interleaver_.next(current_, flush)) {
      try {
        deliver(current_);
      } catch (const std::runtime_error& error) {
        give_up_if_draining(error);
        count_lost(current_, stop_.stop_requested() ? PacketDrop::kStop : drop_reason(error));
        recover_from(error);
      }
    }
    const CallScope call(calls_, options_.timeout);
    if (session_) session_->flush_when_due();
  } catch (const IoError& error) {
    recover_from(error);
  }
}

void Output::deliver(MediaPacket& packet) try {
  if (encode_is_down_ && packet.stream == StreamKind::kVideo) show_if_encode_is_down();
  if (container_.kind == OutputKind::kNull) {
    if (!stats_.up && !encode_is_down_) set_state(FeedState::kRunning);
    stats_.bytes += static_cast<std::uint64_t>(packet.packet->size);
    return observe_written(packet);
  }
  // Audio from before the first picture would make a file begin with nothing to see.
  const bool fits = packet.stream == StreamKind::kVideo ? begin_session_if_due(packet)
                                                        : session_ && session_->takes(packet);
  if (fits) return write(packet);
  count_lost(packet, PacketDrop::kWaitKeyframe);
  waits_for_keyframe_ = true;
  if (packet.stream == StreamKind::kAudio) show_if_encode_is_down();  // sound may come alone
} catch (const std::bad_alloc&) {
  const std::string what = "cannot write to " + redact(container_.url) + ": ";
  throw IoError(IoFault::kIo, what + shortage_text(av_error_text(AVERROR(ENOMEM))));
}

void Output::give_up_if_draining(const std::runtime_error& error) {
  const bool peer = !container_.local || !watched_;  // or a FIFO's reader
  if (!std::exchange(opening_, false) || !peer || !drain_.stop_requested()) return;
  faults_.failed(fault_code(error), redact(error.what()), "it is being stopped");
  ending_.request_stop();
}

bool Output::begin_session_if_due(const MediaPacket& video) {
  const bool keyframe = is_keyframe(*video.packet, StreamKind::kVideo);
  if (video.format != format_) {
    // Only video decides: audio comes from another thread and may change earlier or later.
    const bool same = format_ && same_format(*video.format, *format_);
    // A new encoder's first pictures may be decoded before the last ones of the old one were.
    if (keyframe && !(same && (!session_ || session_->goes_on_with(video)))) close(false);
    if (keyframe || same) format_ = video.format;
    // A new format object means that the source or the encoder has started again.
    needs_keyframe_ = true;
  }
  if (!has_its_stream(video) || (needs_keyframe_ && !keyframe)) return false;
  if (session_ && splits()) source_gap_.note(video, session_->age_at(video) - session_->length());
  const bool full = session_ && rotation_ && rotation_->cuts_at(session_->age_at(video));
  if (keyframe && (full || source_gap_.seen())) close(false);
  if (session_ && session_->leaves_slots(video)) close(false);
  if (session_ && session_->waits_for_slot(video)) {
    needs_keyframe_ = true;
    return false;
  }
  if (!session_) {
    if (!can_begin(video)) {
      needs_keyframe_ = true;
      return false;
    }
    open(video);
    retry_recovery();  // a file can be made again: perhaps an older one can be renamed as well
  }
  needs_keyframe_ = false;
  has_lost_ = false;
  return true;
}

bool Output::has_its_stream(const MediaPacket& video) {
  if (options_.only != StreamKind::kAudio || takes_audio(*video.format)) return true;
  needs_keyframe_ = true;
  if (!rendition_->leave_out()) return false;
  set_state(FeedState::kRunning);
  close(false);
  return false;
}

bool Output::can_begin(const MediaPacket& video) {
  if (!rendition_) return true;
  const CallScope call(calls_, options_.timeout);
  return rendition_->begins(video, *playlist_);
}

void Output::end_if_source_is_gone() {
  if (!session_ || !splits() || !source_gap_.gone(Clock::now())) return;
  // What the encoder still has belongs to what ends here.
  if (feed_.in_flight(options_.from) > 0 || !inlet_.empty()) return;
  drain(true);
  if (!session_) return;
  source_gap_.end(session_->length());
  // If the source goes on in the middle of a group, the next file begins with that group, before
  // the gap. A playlist does not go back: its viewers have seen that.
  if (rotation_) inlet_.request_resume();
  try {
    close(false);
  } catch (const IoError& error) {
    recover_from(error);
  }
  needs_keyframe_ = true;
}

void Output::show_if_encode_is_down() {
  const auto [state, shown] = stats_.state();
  if (state != FeedState::kConnecting && state != FeedState::kRunning) return;
  std::string reason = feed_.encode_reason(options_.from);
  encode_is_down_ = !reason.empty();
  if (encode_is_down_) reason = "waits for encode " + options_.from + ": " + reason;
  if (reason != shown) set_state(state, reason);
}

void Output::open(const MediaPacket& keyframe) {
  if (options_.only != StreamKind::kAudio) {
    check_video(options_, container_, keyframe.format->video.parameters->codec_id);
  }
  const CallScope call(calls_, container_.local
                                   ? options_.timeout
                                   : std::max<milliseconds>(options_.timeout, kNameLookup));
  std::optional<PartFile> file;
  std::string url = container_.url;
  if (container_.kind == OutputKind::kFile) {
    const auto start = taken_at(keyframe, line_clock_);
    file.emplace(rotation_->begin_file(start, options_.existing));
    url = "file:" + file->path();  // so that a ':' in the path is not taken for a protocol's
  } else if (container_.kind == OutputKind::kPlaylist) {
    playlist_->begin_stretch();
    if (rendition_) rendition_->describe(keyframe);
    url = "file:" + (container_.fmp4_segments ? playlist_->init_path() : playlist_->segment_path());
  }
  const log::Level level = file ? log::Level::kDebug : log::Level::kInfo;
  opening_ = true;
  session_ = std::make_unique<OutputSession>(
      options_, container_, std::move(file), recovery_, playlist_ ? &*playlist_ : nullptr, url,
      keyframe, line_clock_, MuxerStops{drain_, stop_, abandoned_.get_token()});
  opening_ = false;
  source_gap_.begin(keyframe);
  opened_at_ = Clock::now();
  inlet_.opened();
  set_state(FeedState::kRunning);
  const std::string shown = redact(playlist_ ? container_.url : url);
  log::write(level, "{}: writing {}", fmt::make_format_args(subject_, shown));
}

void Output::write(MediaPacket& packet) {
  bool written = false;
  {
    const BusyMeter::Scope busy(stats_.busy, stats_.trace, TraceKind::kMux,
                                frame_of(*packet.packet));
    const CallScope call(calls_, options_.timeout);
    written = session_->write(packet);
  }
  stats_.bytes += session_->take_bytes();
  if (rendition_ && rendition_->only_cuts(packet)) return;
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
  const CallScope call(calls_, long_call());
  // The session ends here in any case; if finish() fails, its destructor saves the file.
  const std::unique_ptr<OutputSession> session = std::move(session_);
  std::string name;
  {
    const BusyMeter::Scope busy(stats_.busy, stats_.trace, TraceKind::kMux);
    // A playlist has an end only if run once, because a daemon continues it after a restart. Only a
    // daemon waits for the disk, because its recordings have to survive a power cut.
    try {
      name = session->finish(at_end && once_ && !stop_.stop_requested(), !once_);
    } catch (const std::runtime_error& error) {
      stats_.drop(drop_reason(error), session->give_up());
      throw;
    }
  }
  stats_.bytes += session->take_bytes();
  if (kept_) kept_->completed(name);
  if (!name.empty()) tell_of_file(name, session.get());
  log::info("{}: completed {} ({:.1f} s)", subject_, redact(name.empty() ? options_.url : name),
            std::chrono::duration<double>(session->length()).count());
}

void Output::tell_of_file(const std::string& path, const OutputSession* session) const try {
  std::error_code error;
  CompletedFile file{.feed = feed_.feed(),
                     .output = options_.name,
                     .path = std::filesystem::absolute(path, error),
                     .begin = {},
                     .end = {}};
  const std::uintmax_t bytes = std::filesystem::file_size(path, error);
  if (!error) file.bytes = bytes;
  if (session != nullptr) {
    file.begin = session->taken_from();
    file.end = *file.begin + session->length();
  }
  feed_.completed(file);
} catch (const std::exception& error) {  // memory is short
  log::error("{}: nobody is told that {} is complete: {}", subject_, redact(path), error.what());
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

void Output::fail_if_none_was_written() const {
  if (!once_ || opened_at_ != Clock::time_point() || !waits_for_keyframe_) return;
  throw IoError(IoFault::kDecode,
                "nothing was written: the video has no keyframe to begin with; encode it");
}

void Output::drop_session(PacketDrop reason) {
  const CallScope call(calls_, long_call());
  if (session_) stats_.drop(reason, session_->give_up());
  session_.reset();
}

void Output::leave_place() {
  drop_session(PacketDrop::kWriteFailed);
  const CallScope call(calls_, long_call());
  playlist_.reset();
}

void Output::retry_recovery() {
  const CallScope call(calls_, long_call());
  recovery_.retry(container_, stop_);
}

void Output::recover_from(const std::runtime_error& error) {
  drop_session(drop_reason(error));
  // Room may be made before the next try.
  if (kept_) kept_->look_again(drop_reason(error) == PacketDrop::kDiskFull);
  needs_keyframe_ = true;
  has_lost_ = true;
  if (stop_.stop_requested()) return;
  if (once_) throw;

  inlet_.interrupted();
  const auto* io = dynamic_cast<const IoError*>(&error);
  if (io) stats_.reconnects[index_of(io->code())].fetch_add(1, std::memory_order_relaxed);
  set_state(FeedState::kBackoff, redact(error.what()), code_of(error));
  const milliseconds wait = backoff_.next();
  faults_.failed(fault_code(error), redact(error.what()),
                 fmt::format("dropping packets, trying again in {:.1f} s",
                             std::chrono::duration<double>(wait).count()));
  const bool format_changed = wait_before_retry(wait, drop_reason(error), io ? nullptr : format_);
  if (format_changed) return interleave(current_);
  inlet_.request_resume();
}

bool Output::wait_before_retry(milliseconds time, PacketDrop reason,
                               const MediaFormatRef& refused) {
  stats_.drop(reason, interleaver_.clear(options_.only));
  const auto until = Clock::now() + time;
  for (auto left = time; left > milliseconds::zero();
       left = std::chrono::ceil<milliseconds>(until - Clock::now())) {
    const PacketQueue::Pop popped = inlet_.pop(current_, left, stop_);
    if (popped == PacketQueue::Pop::kPacket) {
      if (refused && is_keyframe(*current_.packet, current_.stream) &&
          !same_format(*current_.format, *refused)) {
        return true;
      }
      count_lost(current_, reason);
    } else if (popped != PacketQueue::Pop::kTimeout) {
      return false;
    }
  }
  return false;
}

void Output::end(PacketDrop reason) {
  inlet_.end(reason);
  stats_.drop(reason, interleaver_.clear(options_.only));
}

}  // namespace framelane
