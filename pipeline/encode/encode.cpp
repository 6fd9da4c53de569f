// Longer than 400 lines: one thread takes a frame through one encoder, whose state all steps share.
#include "pipeline/encode/encode.hpp"

extern "C" {
#include <libavcodec/avcodec.h>
#include <libavutil/frame.h>
#include <libavutil/mathematics.h>
}

#include <algorithm>
#include <cassert>
#include <exception>
#include <limits>
#include <new>
#include <string>
#include <thread>
#include <utility>

#include "kernels/luma_histogram.hpp"

#include "pipeline/av/av_error.hpp"
#include "pipeline/base/failure.hpp"
#include "pipeline/base/log.hpp"
#include "pipeline/encode/encoder_frame.hpp"
#include "pipeline/stage/lost_gpus.hpp"

namespace framelane {
namespace {

using Clock = std::chrono::steady_clock;

/// A source that seems gone is looked at again after this long.
constexpr std::chrono::milliseconds kSecondLook{100};
/// How far the encoder's clock may run ahead of the source's, in ticks of the encoder's.
constexpr std::int64_t kMaxTicksAhead = 2;

}  // namespace

Encode::Encode(const EncodeOptions& options, int index, EncodeStats& encode_stats,
               FeedStats& feed_stats, const LineClock& line_clock, PacketFanout& fanout,
               std::chrono::milliseconds call_limit, SnapshotTap* tap)
    : name_(options.name),
      index_(static_cast<std::size_t>(index)),
      encode_stats_(encode_stats),
      feed_stats_(feed_stats),
      line_clock_(line_clock),
      fanout_(fanout),
      call_limit_(call_limit),
      tap_(tap),
      frame_(make_frame()),
      packet_(make_packet()),
      keyframes_(options.gop) {
  pending_.reserve(256);
}

Encode::~Encode() { drop_pending(DropReason::kFeedFailed); }

void Encode::run(FrameRing& ring, Stage& stage, std::stop_token cancel,
                 std::atomic<DropReason>& cancel_reason) {
  cancel_ = cancel;
  stage_ = &stage;
  // On this thread, however it ends: the one that destroys this must not wait.
  const FreeAtEnd free_at_end{*this};
  std::exception_ptr failure;
  const auto fail = [&](FrameTicket* ticket, DropReason reason) {
    // The loop goes on until the ring is empty, dropping the jobs. No more jobs come: the ring is
    // closed here, and the feed is cancelled by whoever catches what this thread throws.
    failure = std::current_exception();
    drop_pending(reason);
    if (ticket != nullptr && *ticket) ticket->drop(reason);
    if (!cancel.stop_requested()) cancel_reason = DropReason::kFeedFailed;
    ring.close();
  };
  const auto attempt = [&](FrameTicket* ticket, const auto& work) {
    try {
      if (failure == nullptr && !cancel.stop_requested()) work();
    } catch (const FeedError& error) {
      const bool device = error.code() == FeedFault::kDevice;
      fail(ticket, device ? DropReason::kDeviceLost : DropReason::kEncoder);
    } catch (...) {
      fail(ticket, DropReason::kEncoder);
    }
  };
  for (;;) {
    attempt(nullptr, [&] { await_job(ring); });
    auto job = ring.next(static_cast<int>(index_));
    if (!job) break;
    FrameTicket& ticket = (*job)->outputs[index_].ticket;
    attempt(&ticket, [&] { take(**job, stage); });
    if (ticket) ticket.drop(failure ? DropReason::kFeedFailed : cancel_reason.load());
    if ((*job)->outputs[index_].converts) {
      // A conversion whose frame was dropped may still be running, and its buffers must stay until
      // it ends. If it never ends, this thread stays here and is abandoned with all that it holds.
      while (stage.wait(**job, {}, Clock::now() + kConversionDeadline) == Stage::Wait::kLate) {
      }
    }
    (*job)->outputs[index_].encode_plan.reset();
    // May give a surface back to NVDEC, or free memory on a GPU.
    const CallScope call(calls_, kOpenLimit);
    releases_ = true;
    job.reset();
    releases_ = false;
  }
  if (failure == nullptr && !cancel.stop_requested()) flush();
  drop_pending(cancel.stop_requested() ? cancel_reason.load() : DropReason::kEncoder);
  if (failure != nullptr) std::rethrow_exception(failure);
  if (given_up_ == DropReason::kEncoder && !plan_->live && !cancel.stop_requested()) {
    throw FeedError(FeedFault::kMemory, "encode " + name_ + ": its last frames are lost: " +
                                            plan_->codec.name + " found no session to open again");
  }
}

/// Waits for the next job. If the source is gone meanwhile, the encoder gives out what it holds.
void Encode::await_job(FrameRing& ring) {
  const int consumer = static_cast<int>(index_);
  while (encoder_ != nullptr) {
    const auto gone_at = line_clock_.gone_at();
    if (!gone_at || ring.wait_until(consumer, *gone_at)) return;
    // After the process was stopped for a while, the source thread has yet to see what has come.
    if (ring.wait_until(consumer, Clock::now() + kSecondLook)) return;
    if (gone_at == line_clock_.gone_at()) {
      if (plan_->lacked_session) plan_->outdated = true;
      flush();
    }
  }
}

void Encode::take(FrameJob& job, Stage& stage) {
  JobOutput& output = job.outputs[index_];
  if (output.encode_plan != plan_) use_plan(output.encode_plan);
  if (!job.input.buffer) return;  // a job without a frame, which only brings plans
  if (plan_ == nullptr) {         // no encoder can be opened for this frame: its ticket is closed
    if (index_ == 0) analyse(job);
    return;
  }
  if (!output.ticket) return;  // a frame that this encode does not take
  if (encoder_ == nullptr && !gives_up()) reopen();
  if (gives_up()) return output.ticket.drop(*given_up_);
  if (output.converts) {
    switch (wait_converted(job, stage)) {
      case Stage::Wait::kReady:
        if (output.target.buffer) break;
        if (output.memory == FrameMemory::kHost && job.masks) {
          output.ticket.drop(DropReason::kFeedFailed);
          throw FeedError(FeedFault::kMemory, "encode " + name_ + ": a frame cannot be masked: " +
                                                  shortage_text("no memory for a copy of it"));
        }
        [[fallthrough]];  // a GPU is lost, and with it the target or the memory for another
      case Stage::Wait::kDeviceLost:
        output.ticket.drop(DropReason::kDeviceLost);
        return;
      case Stage::Wait::kStopped:
        return;
      case Stage::Wait::kLate:
        throw FeedError(FeedFault::kDevice,
                        "encode " + name_ + ": a conversion does not come to an end");
    }
  }
  if (!output.converts && job.masks) {
    throw FeedError(FeedFault::kInternal,
                    "encode " + name_ + ": a frame has come that is not masked");
  }
  require_unspoiled(job.input);
  if (index_ == 0) analyse(job);
  encode(job);
  // The encoder has read the producer's memory itself. Its packet is not out yet.
  if (!output.converts) require_unspoiled(job.input);
  receive_packets();
}

// The stage has counted the luma of frames that it converted. A frame that bypassed the stage is
// counted here.
void Encode::analyse(FrameJob& job) {
  const bool counted = job.outputs[index_].converts;
  if (!job.analyse || (!counted && job.input.memory != FrameMemory::kHost)) {
    feed_stats_.luma_mean = std::numeric_limits<double>::quiet_NaN();
    return;
  }
  if (!counted) {
    const BusyMeter::Scope busy(encode_stats_.busy, encode_stats_.trace, TraceKind::kEncode,
                                job.input.time_us);
    job.luma = {};
    count_luma(job.input.image, 0, job.input.image.height, job.luma);
  }
  feed_stats_.luma_mean = job.luma.mean();
}

Stage::Wait Encode::wait_converted(FrameJob& job, Stage& stage) {
  const Stage::Wait result = stage.wait(job, cancel_, Clock::now() + kConversionDeadline);
  // After the process was stopped for a while, the deadline has passed though nothing hangs. Only a
  // second wait that is late as well means that the conversion hangs.
  if (result != Stage::Wait::kLate) return result;
  return stage.wait(job, cancel_, Clock::now() + kConversionDeadline);
}

void Encode::use_plan(const std::shared_ptr<EncodePlan>& plan) {
  flush();
  let_go();
  given_up_.reset();
  {
    const CallScope call(calls_, kOpenLimit);  // may free the old plan's frames on a GPU
    plan_ = plan;
  }
  if (plan == nullptr) return;
  keyframes_.set_gop(plan->options.gop);
  encoder_ = std::move(plan->opened);
  last_pts_ = INT64_MIN;
  encode_stats_.set_encoder(plan->codec.name, plan->target.width, plan->target.height);
  on_gpu_ = plan->on_feeds_gpu;
}

void Encode::encode(FrameJob& job) {
  JobOutput& output = job.outputs[index_];
  // An encoder that counts time in frames has a coarser clock: two frames may fall on one tick, and
  // the second is moved to the next. If more frames come than there are ticks, some are dropped, or
  // the picture would fall behind the sound.
  std::int64_t pts = av_rescale_q(job.input.pts, plan_->source_time_base, encoder_->time_base);
  if (last_pts_ != INT64_MIN && pts <= last_pts_) {
    if (last_pts_ - pts >= kMaxTicksAhead) {
      output.ticket.drop(DropReason::kEncoder);
      if (!std::exchange(said_too_many_, true)) {
        log::warn(
            "feed {}: encode {}: more frames come than {} can number, which counts time in steps "
            "of {}/{} s: some are dropped; set input.rate to what the source sends, or name "
            "another codec",
            feed_stats_.feed(), name_, plan_->codec.name, encoder_->time_base.num,
            encoder_->time_base.den);
      }
      return;
    }
    pts = last_pts_ + 1;
  }
  last_pts_ = pts;
  assert(output.converts || job.input.memory == FrameMemory::kHost);
  AVFrame& frame = *frame_;
  refer_to(frame, job, output, *encoder_, plan_->frames);
  if (tap_ != nullptr && tap_->wanted() && !plan_->frames) tap_->give(frame, job.input.time_us);
  frame.pts = pts;
  if (keyframes_.due(job.input.pts, plan_->source_time_base)) frame.pict_type = AV_PICTURE_TYPE_I;

  std::int64_t duration =
      av_rescale_q(job.input.duration, plan_->source_time_base, encoder_->time_base);
  if (const auto& rate = plan_->options.rate) {
    duration =
        std::max(duration, av_rescale_q(1, AVRational{rate->den, rate->num}, encoder_->time_base));
  }
  pending_.push_back({pts, duration, job.input.time_us, std::move(output.ticket),
                      job.input.decoded_at, Clock::now()});
  send(&frame, job.input.time_us);
  av_frame_unref(&frame);
}

void Encode::send(const AVFrame* frame, std::int64_t time_us) {
  int result = AVERROR(EAGAIN);
  for (;;) {
    {
      const BusyMeter::Scope busy(encode_stats_.busy, encode_stats_.trace, TraceKind::kEncode,
                                  time_us);
      const CallScope call(calls_, call_limit());
      result = avcodec_send_frame(encoder_.get(), frame);
    }
    if (result != AVERROR(EAGAIN)) break;
    // After the encoder was opened again this frame's ticket is dropped with the others.
    if (!receive_packets() || cancel_.stop_requested()) return;
  }
  if (result < 0 && result != AVERROR_EOF) recover("does not take a frame", result);
}

bool Encode::receive_packets() {
  while (!cancel_.stop_requested()) {
    if (encoder_ == nullptr || given_up_) return false;
    int result = 0;
    {
      BusyMeter::Scope busy(encode_stats_.busy, encode_stats_.trace, TraceKind::kEncode);
      const CallScope call(calls_, call_limit());
      result = avcodec_receive_packet(encoder_.get(), packet_.get());
      const auto frame = result == 0 ? pending_of(*packet_) : pending_.end();
      if (frame != pending_.end()) {
        busy.set_frame(frame->time_us);
        set_frame(*packet_, frame->time_us);
      }
    }
    if (result == AVERROR(EAGAIN) || result == AVERROR_EOF) return true;
    if (result < 0) {
      recover("fails", result);
      return false;
    }
    deliver();
    av_packet_unref(packet_.get());
  }
  return true;
}

std::vector<Encode::Pending>::iterator Encode::pending_of(const AVPacket& packet) {
  return std::ranges::find(pending_, packet.pts, &Pending::pts);
}

void Encode::deliver() {
  failures_.worked();
  packet_->time_base = encoder_->time_base;
  const auto found = pending_of(*packet_);
  // Most encoders set no duration, and the last frame of a file would have none.
  if (found != pending_.end() && packet_->duration == 0) packet_->duration = found->duration;
  fanout_.publish(*packet_, StreamKind::kVideo, plan_->media, cancel_);
  const auto now = Clock::now();
  if (found != pending_.end()) {  // else a second packet of a frame that is already out
    feed_stats_.observe(StageStep::kEncode, now - found->sent_at);
    encode_stats_.latency.observe(now - found->decoded_at);
    found->ticket.out();
    pending_.erase(found);
  }
  if (packet_->dts == AV_NOPTS_VALUE) return;
  // dts only grows, and no packet's pts is below its dts. So a frame whose pts is below this dts
  // can no longer come out: the encoder has skipped it.
  std::erase_if(pending_, [this](Pending& pending) {
    if (pending.pts >= packet_->dts) return false;
    pending.ticket.drop(DropReason::kEncoder);
    return true;
  });
}

void Encode::flush() {
  if (encoder_ == nullptr || gives_up()) return;
  send(nullptr);
  receive_packets();
  if (given_up_) return;  // meanwhile
  if (!cancel_.stop_requested()) drop_pending(DropReason::kEncoder);
  close_encoder();
  fanout_.end_group();
}

/// True if this plan's encoder gives out nothing more, because it is on a GPU that is lost, where
/// a call may never return, or because it has no session. `failure`: what has just failed, and may
/// be the first sign of a loss.
bool Encode::gives_up(const std::string& failure) {
  if (given_up_ || !plan_) return given_up_.has_value();
  if (!failure.empty() && plan_->frames) stage_->still_takes_device_frames(failure);
  if (has_left_gpu(*plan_, *stage_)) give_up(DropReason::kDeviceLost);
  return given_up_.has_value();
}

void Encode::give_up(DropReason reason) {
  given_up_ = reason;
  drop_pending(reason);
}

/// Closes an encoder that has given up, if it is still open.
void Encode::let_go() {
  if (!gives_up()) return;
  if (is_lost_gpu(plan_->gpu)) return leave_gpu();
  if (encoder_ == nullptr) return;
  close_encoder();
  fanout_.end_group();
}

/// Lets go of an encoder on a GPU that is lost. If the GPU hangs, closing it and freeing its frames
/// waits for as long.
void Encode::leave_gpu() noexcept {
  if (encoder_ != nullptr) fanout_.end_group();
  struct Left {
    EncoderPtr encoder;
    std::shared_ptr<EncodePlan> plan;
  };
  // Without memory or a thread for it the encoder stays, as the GPU's other memory may.
  auto* const left = new (std::nothrow) Left{std::move(encoder_), std::move(plan_)};
  if (left == nullptr) {
    static_cast<void>(encoder_.release());
    return;
  }
  try {
    std::thread([left] { delete left; }).detach();
  } catch (...) {  // NOLINT(bugprone-empty-catch): see above
  }
}

void Encode::close_encoder() {
  const CallScope call(calls_, kOpenLimit);
  encoder_.reset();
}

// A call that threw has left its frame or packet in hand.
Encode::FreeAtEnd::~FreeAtEnd() {
  encode.let_go();
  if (encode.plan_ && !is_lost_gpu(encode.plan_->gpu)) {
    encode.close_encoder();
    const CallScope call(encode.calls_, kOpenLimit);
    encode.plan_.reset();  // the last owner of the frames on a GPU
  }
  av_frame_unref(encode.frame_.get());
  av_packet_unref(encode.packet_.get());
}

std::chrono::milliseconds Encode::call_limit() const {
  return plan_->live ? call_limit_
                     : std::max<std::chrono::milliseconds>(call_limit_, kPatientCallLimit);
}

void Encode::recover(const char* what, int error) {
  const std::string cause = "encode " + name_ + ": " + plan_->codec.name + ' ' + what + ": " +
                            shortage_of(error).value_or(av_error_text(error));
  if (gives_up(cause)) return;
  drop_pending(DropReason::kEncoder);
  if (failures_.failed()) throw FeedError(FeedFault::kEncoder, cause + ", " + failures_.text());
  log::warn("feed {}: {}; reopening it", feed_stats_.feed(), cause);
  close_encoder();
  reopen();
}

void Encode::reopen() {
  const CallScope call(calls_, kOpenLimit);
  try {
    encoder_ = reopen_encoder(*plan_);
    if (encoder_ != nullptr) return;
    log::warn(
        "feed {}: encode {}: {} cannot be opened again: the driver allows no further session on {}",
        feed_stats_.feed(), name_, plan_->codec.name, plan_->gpu);
    plan_->outdated = true;
    give_up(DropReason::kEncoder);
    fanout_.end_group();
  } catch (const FeedError& error) {
    if (!gives_up(error.what())) throw;
  }
}

void Encode::drop_pending(DropReason reason) {
  for (Pending& pending : pending_) pending.ticket.drop(reason);
  pending_.clear();
}

}  // namespace framelane
