#include "pipeline/output.hpp"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <optional>
#include <string>
#include <utility>

#include "pipeline/backoff.hpp"
#include "pipeline/container.hpp"
#include "pipeline/failure.hpp"
#include "pipeline/fault_log.hpp"
#include "pipeline/interleaver.hpp"
#include "pipeline/interrupt.hpp"
#include "pipeline/log.hpp"
#include "pipeline/output_session.hpp"
#include "pipeline/playlist.hpp"
#include "pipeline/redact.hpp"

namespace framelane {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

/// How long an output waits for packets before it lets go of those that wait for another stream.
constexpr milliseconds kIdle{500};
/// Timestamps are rounded to the time base: a segment may be this much short of its length.
constexpr milliseconds kCutTolerance{20};
/// What is queued when the feed is cancelled is still written, for so long at most.
constexpr milliseconds kCancelledDrain{500};
/// How often files that nothing follows are looked at for their age.
constexpr std::chrono::seconds kRetainEvery{60};
/// Completing a file waits until all of it is on the disk; folders may hold many files.
constexpr std::chrono::seconds kLongCall{60};
/// A session that lasts this long works: its first packets may only have gone into a buffer.
constexpr std::chrono::seconds kSettled{2};

bool is_keyframe(const AVPacket& packet, StreamKind stream) {
  return stream == StreamKind::kVideo && (packet.flags & AV_PKT_FLAG_KEY);
}

PacketDrop drop_reason(const IoError& error) {
  return dynamic_cast<const DiskFull*>(&error) ? PacketDrop::kDiskFull : PacketDrop::kWriteFailed;
}

}  // namespace

class Output::Impl {
 public:
  Impl(OutputOptions options, OutputStats& stats, FeedStats& feed, bool blocks)
      : options_(std::move(options)),
        declared_(container_of(options_)),
        subject_("feed " + feed.feed() + ": output " + options_.name),
        stats_(stats),
        run_(stats.begin_run()),
        feed_(feed),
        queue_(static_cast<std::size_t>(std::max(options_.queue, 1))),
        blocks_(blocks),
        backoff_(options_.reconnect),
        faults_(subject_),
        retention_faults_(subject_ + ": deleting old files") {}

  const OutputOptions& options() const { return options_; }
  void set_blocks(bool blocks) { blocks_ = blocks; }
  void push(const AVPacket& packet, StreamKind stream, const MediaFormatRef& format,
            const std::stop_token& stop);
  bool take_resume_request() { return resume_wanted_.exchange(false); }
  void finish() { queue_.close(); }
  void recover(const std::stop_token& stop);
  void run(std::stop_token stop, bool once);
  bool overdue() const { return watched_ && calls_.overdue(); }
  void give_up(const std::string& reason) {
    given_up_.request_stop();
    set_state(FeedState::kFailed, reason);
  }

 private:
  bool takes_audio(const MediaFormat& format);
  void write_until_end();
  void take(MediaPacket& packet);
  void write_rest();
  PacketQueue::Pop pop(MediaPacket& packet, milliseconds timeout);
  void drain(bool flush);
  void deliver(MediaPacket& packet);
  /// False when this video packet has to be left out, since decoding cannot start at it.
  bool begin_session_if_due(const MediaPacket& video);
  void open(const MediaPacket& keyframe);
  void write(MediaPacket& packet);
  void observe_written(const MediaPacket& packet);
  /// Completes the session, if there is one: trailer, final name, retention.
  void close(bool at_end);
  void complete(bool at_end);
  void close_at_end();
  /// Lets go of the session; what can be played of its file is kept.
  void drop_session();
  /// Deletes what `keep` does not allow any more.
  void retain();
  /// The same now and then: files grow old while nothing is written, too.
  void retain_when_due();
  /// From inside a catch: waits until it is time to try again, or rethrows when run once.
  void recover_from(const IoError& error);
  void wait_before_retry(milliseconds time, PacketDrop reason);
  void end(PacketDrop reason);

  milliseconds long_call() const { return std::max<milliseconds>(options_.timeout, kLongCall); }

  void set_state(FeedState state, const std::string& reason = {}) {
    stats_.set_state(run_, state, reason);
  }

  const OutputOptions options_;
  const Container declared_;  // as the options alone tell it
  const std::string subject_;
  OutputStats& stats_;
  const std::uint64_t run_;
  FeedStats& feed_;

  // Producers and the output's thread.
  PacketQueue queue_;
  std::atomic<bool> blocks_;
  std::atomic<bool> resume_wanted_{false};
  std::atomic<bool> overflowed_{false};  // packets were lost: nothing is of use before a keyframe
  std::atomic<bool> audio_warned_{false};
  std::atomic<PacketDrop> closed_as_{PacketDrop::kStop};

  // The output's thread and who watches it.
  Interrupt calls_{std::stop_token()};  // on files: watched alone, nothing asks it
  std::atomic<bool> watched_{false};    // peers and FIFOs have the muxer's deadlines
  std::stop_source given_up_;

  // The output's thread alone.
  std::stop_token stop_;
  bool once_ = false;
  Container container_;  // as it turned out on the disk
  Backoff backoff_;
  FaultLog faults_;
  FaultLog retention_faults_;
  Interleaver interleaver_;
  MediaPacket current_{.packet = make_packet()};
  std::optional<FilePattern> pattern_;
  std::unique_ptr<OutputSession> session_;
  Clock::time_point opened_at_;
  Clock::time_point retained_at_;
  MediaFormatRef format_;
  bool needs_keyframe_ = true;
  std::string last_name_;  // of a file, before it was numbered
  int last_number_ = 0;
  bool playlist_begun_ = false;
};

// Producers.

void Output::Impl::push(const AVPacket& packet, StreamKind stream, const MediaFormatRef& format,
                        const std::stop_token& stop) {
  if (stream == StreamKind::kAudio && !takes_audio(*format)) return;
  const bool keyframe = is_keyframe(packet, stream);
  if (overflowed_ && !keyframe) return stats_.drop(PacketDrop::kWaitKeyframe);
  switch (blocks_ ? queue_.push(packet, stream, format, stop)
                  : queue_.try_push(packet, stream, format)) {
    case PacketQueue::Push::kQueued:
      if (keyframe) overflowed_ = false;
      break;
    case PacketQueue::Push::kFull:
      overflowed_ = true;
      stats_.drop(PacketDrop::kQueueFull);
      break;
    case PacketQueue::Push::kClosed:
      stats_.drop(closed_as_);
      break;
  }
  stats_.queue_packets = static_cast<std::uint32_t>(queue_.size());
}

bool Output::Impl::takes_audio(const MediaFormat& format) {
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

// The output's thread.

void Output::Impl::recover(const std::stop_token& stop) {
  watched_ = declared_.local;
  const CallScope call(calls_, long_call());
  recover_leftovers(options_, feed_.feed(), stop);
}

void Output::Impl::run(std::stop_token stop, bool once) {
  stop_ = std::move(stop);
  once_ = once;
  set_state(FeedState::kConnecting);
  try {
    watched_ = declared_.local;
    {
      const CallScope call(calls_, options_.timeout);
      container_ = container_on_disk(options_);
      // A device, a terminal or a FIFO may be slow for as long as it likes.
      watched_ = container_.local && container_.kind == declared_.kind;
    }
    check_container(options_, container_);
    if (container_.kind == OutputKind::kFile) pattern_.emplace(container_.url);
    retain();
    write_until_end();
    end(PacketDrop::kStop);
    set_state(FeedState::kEnded);
  } catch (const std::exception& error) {
    drop_session();
    end(PacketDrop::kWriteFailed);
    set_state(FeedState::kFailed, redact(error.what()));
    throw;
  }
}

void Output::Impl::write_until_end() {
  MediaPacket packet{.packet = make_packet()};
  for (;;) {
    switch (pop(packet, kIdle)) {
      case PacketQueue::Pop::kPacket:
        take(packet);
        drain(false);
        break;
      case PacketQueue::Pop::kTimeout:
        // A viewer waits, and nothing more comes for now. Files of a slow encoder keep their order.
        drain(!blocks_);
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

void Output::Impl::take(MediaPacket& packet) {
  // Whatever is thrown away needs no order.
  const bool accompanied = container_.kind != OutputKind::kNull && takes_audio(*packet.format);
  interleaver_.add(packet, accompanied);
}

void Output::Impl::write_rest() {
  const auto until = Clock::now() + kCancelledDrain;
  queue_.close();
  MediaPacket packet{.packet = make_packet()};
  const bool open = session_ || container_.kind == OutputKind::kNull;
  try {
    while (open && Clock::now() < until) {
      const bool more = queue_.pop(packet, milliseconds::zero(), {}) == PacketQueue::Pop::kPacket;
      if (more) take(packet);
      if (interleaver_.next(current_, !more)) {
        deliver(current_);
      } else if (!more) {
        break;
      }
    }
  } catch (const IoError& error) {
    stats_.drop(PacketDrop::kStop);
    faults_.failed(redact(error.what()), "it was being stopped");
    drop_session();
  }
  stats_.drop(PacketDrop::kStop, queue_.clear() + interleaver_.clear());
}

PacketQueue::Pop Output::Impl::pop(MediaPacket& packet, milliseconds timeout) {
  const PacketQueue::Pop popped = queue_.pop(packet, timeout, stop_);
  stats_.queue_packets = static_cast<std::uint32_t>(queue_.size());
  return popped;
}

void Output::Impl::drain(bool flush) {
  try {
    while (!stop_.stop_requested() && interleaver_.next(current_, flush)) {
      try {
        deliver(current_);
      } catch (const IoError& error) {
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

void Output::Impl::deliver(MediaPacket& packet) {
  if (container_.kind == OutputKind::kNull) {
    if (!stats_.up) set_state(FeedState::kRunning);
    stats_.bytes += static_cast<std::uint64_t>(packet.packet->size);
    return observe_written(packet);
  }
  // Sound from before the first picture would make a file begin with nothing to see.
  const bool fits = packet.stream == StreamKind::kVideo ? begin_session_if_due(packet)
                                                        : session_ && session_->takes(packet);
  if (!fits) return stats_.drop(PacketDrop::kWaitKeyframe);
  write(packet);
}

bool Output::Impl::begin_session_if_due(const MediaPacket& video) {
  const bool keyframe = is_keyframe(*video.packet, StreamKind::kVideo);
  if (video.format != format_) {
    // Video alone decides: audio comes from another thread, before or after the change.
    const bool same = format_ && same_format(*video.format, *format_);
    if (keyframe && !same) close(false);
    if (keyframe || same) format_ = video.format;
    // A new format object means a source or an encoder that began anew.
    needs_keyframe_ = true;
  }
  if (needs_keyframe_ && !keyframe) return false;
  if (keyframe && session_ && options_.segment &&
      session_->age_at(video) + kCutTolerance >= options_.segment->length) {
    close(false);
  }
  if (!session_) open(video);
  needs_keyframe_ = false;
  return true;
}

void Output::Impl::open(const MediaPacket& keyframe) {
  const CallScope call(calls_, options_.timeout);
  std::optional<PartFile> file;
  MuxerTarget target{.url = container_.url};
  if (container_.kind == OutputKind::kFile) {
    const auto age = std::chrono::duration_cast<std::chrono::system_clock::duration>(
        Clock::now() - keyframe.queued_at);
    const std::string name = pattern_->name_at(std::chrono::system_clock::now() - age);
    const int first_number = name == last_name_ ? last_number_ + 1 : 1;
    file.emplace(PartFile::create(name, first_number, options_.existing));
    last_name_ = name;
    last_number_ = file->number();
    target.url = "file:" + file->path();  // a ':' in the path makes no protocol
  } else if (container_.kind == OutputKind::kPlaylist) {
    const bool anew = options_.existing != Existing::kNumber && !playlist_begun_;
    target = prepare_playlist(options_, container_, anew);
    playlist_begun_ = true;
  }
  const log::Level level = file ? log::Level::kDebug : log::Level::kInfo;
  session_ = std::make_unique<OutputSession>(options_, container_, std::move(file), target,
                                             keyframe, stop_, given_up_.get_token());
  resume_wanted_ = false;
  opened_at_ = Clock::now();
  queue_.set_patient(true);
  set_state(FeedState::kRunning);
  const std::string url = redact(target.url);
  log::write(level, "{}: writing {}", fmt::make_format_args(subject_, url));
}

void Output::Impl::write(MediaPacket& packet) {
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

void Output::Impl::observe_written(const MediaPacket& packet) {
  const auto now = Clock::now();
  feed_.observe(StageStep::kMux, now - packet.queued_at);
  backoff_.succeeded(now);
  if (now - opened_at_ > kSettled) faults_.recovered();
}

void Output::Impl::close(bool at_end) {
  if (!session_) return;
  complete(at_end);
  retain();
}

void Output::Impl::complete(bool at_end) {
  const CallScope call(calls_, long_call());
  // Whatever happens, this session is over; its destructor saves what finish() could not.
  const std::unique_ptr<OutputSession> session = std::move(session_);
  std::string name;
  {
    const BusyMeter::Scope busy(stats_.busy);
    // Only who runs once knows that nothing will follow, and need not wait for the disk: a daemon
    // goes on after its restart, and its recordings have to survive a power cut.
    name = session->finish(at_end && once_ && !stop_.stop_requested(), !once_);
  }
  stats_.bytes += session->take_bytes();
  log::info("{}: completed {} ({:.1f} s)", subject_, redact(name.empty() ? options_.url : name),
            std::chrono::duration<double>(session->length()).count());
}

void Output::Impl::close_at_end() {
  try {
    close(true);
  } catch (const IoError& error) {
    if (once_) throw;
    log::warn("{}: {}", subject_, redact(error.what()));
  }
}

void Output::Impl::drop_session() {
  const CallScope call(calls_, long_call());
  session_.reset();
}

void Output::Impl::retain() {
  if (!options_.segment) return;
  retained_at_ = Clock::now();
  const CallScope call(calls_, long_call());
  const Undeletable left =
      enforce_retention(*pattern_, *options_.segment, [this] { calls_.arm(long_call()); });
  if (left.files == 0) {
    retention_faults_.recovered();
    return;
  }
  retention_faults_.failed("cannot delete " + left.first,
                           fmt::format("files that keep no longer allows, and are still there: {}; "
                                       "delete them, or let this user write to their folder",
                                       left.files));
}

void Output::Impl::retain_when_due() {
  if (!options_.segment) return;
  const auto age = options_.segment->keep_age.value_or(kRetainEvery);
  if (Clock::now() - retained_at_ >= std::min(age, kRetainEvery)) retain();
}

void Output::Impl::recover_from(const IoError& error) {
  drop_session();
  needs_keyframe_ = true;
  if (stop_.stop_requested()) return;
  if (once_) throw;

  // Until it is open again nobody waits for this output: the encode's others go on.
  queue_.set_patient(false);
  stats_.reconnects[index_of(error.code())].fetch_add(1, std::memory_order_relaxed);
  set_state(FeedState::kBackoff, redact(error.what()));
  const milliseconds wait = backoff_.next();
  faults_.failed(redact(error.what()), fmt::format("dropping packets, trying again in {:.1f} s",
                                                   std::chrono::duration<double>(wait).count()));
  wait_before_retry(wait, drop_reason(error));
  if (drop_reason(error) == PacketDrop::kDiskFull) {
    retain();  // it may make the room
  } else {
    retain_when_due();
  }
  resume_wanted_ = true;
}

void Output::Impl::wait_before_retry(milliseconds time, PacketDrop reason) {
  stats_.drop(reason, interleaver_.clear());
  const auto until = Clock::now() + time;
  for (auto left = time; left > milliseconds::zero();
       left = std::chrono::ceil<milliseconds>(until - Clock::now())) {
    const PacketQueue::Pop popped = pop(current_, left);
    if (popped == PacketQueue::Pop::kPacket) {
      stats_.drop(reason);
    } else if (popped != PacketQueue::Pop::kTimeout) {
      return;
    }
  }
}

void Output::Impl::end(PacketDrop reason) {
  closed_as_ = reason;
  queue_.close();
  stats_.drop(reason, queue_.clear() + interleaver_.clear());
  stats_.queue_packets = 0;
}

Output::Output(OutputOptions options, OutputStats& stats, FeedStats& feed, bool blocks)
    : impl_(std::make_unique<Impl>(std::move(options), stats, feed, blocks)) {}
Output::~Output() = default;

const OutputOptions& Output::options() const { return impl_->options(); }
void Output::set_blocks(bool blocks) { impl_->set_blocks(blocks); }
void Output::push(const AVPacket& packet, StreamKind stream, const MediaFormatRef& format,
                  const std::stop_token& stop) {
  impl_->push(packet, stream, format, stop);
}
bool Output::take_resume_request() { return impl_->take_resume_request(); }
void Output::finish() { impl_->finish(); }
void Output::recover(const std::stop_token& stop) { impl_->recover(stop); }
void Output::run(std::stop_token stop, bool once) { impl_->run(std::move(stop), once); }
bool Output::overdue() const { return impl_->overdue(); }
void Output::give_up(const std::string& reason) { impl_->give_up(reason); }

bool needs_global_header(const OutputOptions& options) {
  const Container container = container_of(options);
  return container.muxer && (container.muxer->flags & AVFMT_GLOBALHEADER);
}

}  // namespace framelane
