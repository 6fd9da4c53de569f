#include "pipeline/encode/audio_encode.hpp"

extern "C" {
#include <libavutil/channel_layout.h>
}

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <new>
#include <utility>

#include "pipeline/av/av_error.hpp"
#include "pipeline/base/failure.hpp"
#include "pipeline/base/log.hpp"

namespace framelane {
namespace {

/// For an encoder that takes frames of any size.
constexpr int kFramesPerSecond = 25;
constexpr BackoffOptions kReopen{std::chrono::seconds(1), std::chrono::seconds(60)};
/// The place of a packet's end until it is known.
constexpr std::int64_t kUnknown = INT64_MAX;

std::string layout_text(const AVChannelLayout& layout) {
  std::array<char, 128> text{};
  av_channel_layout_describe(&layout, text.data(), text.size());
  return text.data();
}

}  // namespace

AudioEncode::AudioEncode(const EncodeOptions& options, bool once, AudioStats& stats,
                         FeedStats& feed, Interrupt& calls, std::chrono::milliseconds call_limit)
    : options_(options),
      once_(once),
      stats_(stats),
      run_(stats.run()),
      feed_(feed),
      calls_(calls),
      call_limit_(call_limit),
      faults_("feed " + feed.feed() + ": encode " + options.name + ": sound"),
      backoff_(kReopen),
      decoded_(make_frame()),
      packet_(make_packet()) {
  in_flight_.reserve(256);
}

AudioEncode::~AudioEncode() { drop(AudioDrop::kFeedFailed); }

const StreamFormat* AudioEncode::format() const {
  return decoder_ && format_ ? &*format_ : nullptr;
}

void AudioEncode::set_source(const MediaFormatRef& media) {
  if (media == source_) return;
  const StreamFormat* audio = audio_of(media.get());
  const bool same = same_audio(audio, audio_of(source_.get()));
  const CallScope call(calls_, call_limit_);
  if (!same && decoder_) decode(nullptr);
  source_ = media;
  if (same) return;
  decoder_.reset();
  next_decoder_.reset();
  if (audio == nullptr) return;
  open_decoder(*audio);
  next_try_ = {};
  // Outputs begin with the sound if its format is known before the first of it is decoded.
  const AVCodecParameters& known = *audio->parameters;
  if (decoder_ && known.sample_rate > 0 && known.ch_layout.nb_channels > 0) {
    has_encoder(known.sample_rate, known.ch_layout.nb_channels);
  }
}

void AudioEncode::open_decoder(const StreamFormat& audio) {
  decode_warned_ = false;
  next_decoder_.reset();
  const AVCodec* codec =
      audio.decode_refusal.empty() ? avcodec_find_decoder(audio.parameters->codec_id) : nullptr;
  int error = AVERROR_DECODER_NOT_FOUND;
  if (codec != nullptr) {
    decoder_.reset(avcodec_alloc_context3(codec));
    if (!decoder_ || avcodec_parameters_to_context(decoder_.get(), audio.parameters.get()) < 0) {
      throw std::bad_alloc();
    }
    decoder_->pkt_timebase = audio.time_base;
    decoder_->thread_count = 1;
    decoder_->log_level_offset = AV_LOG_INFO - AV_LOG_ERROR;  // damage is counted
    error = avcodec_open2(decoder_.get(), codec, nullptr);
  }
  if (error >= 0) return;
  decoder_.reset();
  const AVCodecID id = audio.parameters->codec_id;
  const bool shortage = is_shortage(error);
  std::string cause = shortage ? shortage_text(av_error_text(error)) : av_error_text(error);
  if (!audio.decode_refusal.empty()) cause = "it " + audio.decode_refusal;
  const std::string reason =
      fmt::format("{} cannot be decoded ({})",
                  id == AV_CODEC_ID_NONE ? "an unknown codec" : avcodec_get_name(id), cause);
  if (shortage) {
    if (!live_) fail(FeedFault::kMemory, reason);  // much of a file would pass meanwhile
    next_decoder_ = go_without(reason);
    return;
  }
  if (once_ && (!format_ || !live_)) {
    fail(FeedFault::kSource, reason + "; leave the sound out, or copy it");
  }
  log::warn("feed {}: encode {}: goes without sound: {}", feed_.feed(), options_.name, reason);
}

bool AudioEncode::has_encoder(int rate, int channels) {
  if (encoder_) return true;
  if (Clock::now() < next_try_) return false;
  try {
    open_encoder(rate, channels);
  } catch (const FeedError& error) {
    const bool final = error.code() == FeedFault::kConfiguration || (once_ && !format_);
    if (final) fail(error.code(), error.what());
    encoder_failed(error.what());
  }
  return encoder_ != nullptr;
}

void AudioEncode::open_encoder(int rate, int channels) {
  if (target_) {
    encoder_ = open_audio_encoder(*target_);
  } else {
    ChosenAudioEncoder chosen = choose_audio_encoder(options_, rate, channels);
    encoder_ = std::move(chosen.encoder);
    target_ = std::move(chosen.target);
    if (!chosen.passed_over.empty()) {
      log::warn("feed {}: encode {}: sound: using {}, because {}", feed_.feed(), options_.name,
                target_->candidate.name, chosen.passed_over);
    }
    if (target_->bitrate < options_.audio_bitrate.value_or(0)) {
      log::info(
          "feed {}: encode {}: sound: {} takes at most {} bit/s at {} Hz with {} channel{}, not "
          "the configured {}",
          feed_.feed(), options_.name, target_->candidate.name, target_->bitrate, target_->rate,
          target_->channels, target_->channels == 1 ? "" : "s", *options_.audio_bitrate);
    }
  }
  line_.emplace(*encoder_);
  const bool any_size = encoder_->frame_size == 0;
  frame_ = make_audio_frame(
      *encoder_, any_size ? std::max(target_->rate / kFramesPerSecond, 1) : encoder_->frame_size);
  ending_ = false;
  if (format_) return;
  format_ = audio_format_of(*encoder_);
  stats_.set_codec(target_->candidate.name);
  log::info("feed {}: encode {}: sound: {} at {} Hz, {} channel{}", feed_.feed(), options_.name,
            target_->candidate.name, target_->rate, target_->channels,
            target_->channels == 1 ? "" : "s");
}

void AudioEncode::close_encoder() {
  line_.reset();
  encoder_.reset();
}

void AudioEncode::encoder_failed(const std::string& reason) {
  drop(AudioDrop::kEncoder);
  close_encoder();
  const bool again_and_again = failures_.failed();
  // A file may pass at a hundred times its own rate, and all of its sound within a wait.
  if (!live_ && !again_and_again)
    return faults_.failed(fault_code(FeedFault::kEncoder), reason, "reopening it");
  if (!live_ && once_) fail(FeedFault::kEncoder, reason + ", " + failures_.text());
  next_try_ = go_without(reason);
}

/// Returns when to try again.
AudioEncode::Clock::time_point AudioEncode::go_without(const std::string& reason) {
  const std::chrono::milliseconds wait = backoff_.next();
  faults_.failed(fault_code(FeedFault::kEncoder), reason,
                 fmt::format("going without, trying again in {:.1f} s",
                             std::chrono::duration<double>(wait).count()));
  return Clock::now() + wait;
}

void AudioEncode::fail(FeedFault fault, const std::string& reason) const {
  throw FeedError(fault, "encode " + options_.name + ": sound: " + reason);
}

void AudioEncode::send(const AVPacket& packet) {
  const CallScope call(calls_, call_limit_);
  stats_.in(run_);
  in_flight_.push_back(kUnknown);
  taken_ = refused_ = false;
  if (next_decoder_ && Clock::now() >= *next_decoder_) open_decoder(*source_->audio);
  const int error = decode(&packet);
  if (in_flight_.empty()) return;  // dropped with the encoder that failed
  const auto end_as = [this](AudioDrop reason) {
    in_flight_.pop_back();
    stats_.drop(run_, reason);
  };
  if (error != AVERROR(EAGAIN) && error != AVERROR_EOF) {
    if (decoder_ && !std::exchange(decode_warned_, true)) {
      log::info("feed {}: encode {}: not all of the sound can be decoded ({})", feed_.feed(),
                options_.name, av_error_text(error));
    }
    if (!taken_) return end_as(AudioDrop::kDecode);
  }
  if (!encoder_) return end_as(AudioDrop::kEncoder);
  if (refused_ && !taken_) return end_as(AudioDrop::kDecode);
  if (taken_ && line_->leaves_out()) return end_as(AudioDrop::kOverlap);
  in_flight_.back() = line_->end();
}

int AudioEncode::decode(const AVPacket* packet) {
  if (!decoder_) return AVERROR_DECODER_NOT_FOUND;
  const BusyMeter::Scope busy(feed_.decode_busy, feed_.trace(), TraceKind::kDecode);
  int error = avcodec_send_packet(decoder_.get(), packet);
  while (error >= 0) {
    error = avcodec_receive_frame(decoder_.get(), decoded_.get());
    if (error < 0) break;
    take(*decoded_);
    av_frame_unref(decoded_.get());
  }
  return error;
}

void AudioEncode::take(const AVFrame& frame) {
  using Kind = AudioLine::Kind;
  if (frame.nb_samples <= 0 || !has_encoder(frame.sample_rate, frame.ch_layout.nb_channels)) return;
  std::optional<Kind> step = line_->add(frame, source_->audio->time_base);
  if (step == Kind::kJump) {
    stats_.count(AudioRepair::kJump);
    // No more than two frames, which an encoder takes before a packet has to be received: less than
    // one was left of the last packet, and the resampler holds little.
    while (encoder_ && line_->queued() > 0) send_frame();
    if (!encoder_) return;
    step = line_->add(frame, source_->audio->time_base);
  }
  if (step == Kind::kSilence) stats_.count(AudioRepair::kSilence);
  if (step == Kind::kTrim) stats_.count(AudioRepair::kTrim);
  (step ? taken_ : refused_) = true;
  if (step || std::exchange(decode_warned_, true)) return;
  log::info(
      "feed {}: encode {}: leaves out sound that cannot be converted ({}) or has no timestamp",
      feed_.feed(), options_.name, layout_text(frame.ch_layout));
}

void AudioEncode::finish() {
  const CallScope call(calls_, call_limit_);
  if (decoder_) {
    decode(nullptr);
    avcodec_flush_buffers(decoder_.get());
  }
  // No sound came of these packets.
  if (!encoder_ || !line_->begun()) return drop(AudioDrop::kDecode);
  line_->flush();
  ending_ = true;
}

const AVPacket* AudioEncode::receive() {
  const CallScope call(calls_, call_limit_);
  const BusyMeter::Scope busy(feed_.decode_busy, feed_.trace(), TraceKind::kDecode);
  while (encoder_) {
    av_packet_unref(packet_.get());
    const int error = avcodec_receive_packet(encoder_.get(), packet_.get());
    if (error == AVERROR(EAGAIN)) {
      if (!feed_encoder()) return nullptr;
    } else if (error == AVERROR_EOF) {
      account_up_to(kUnknown);
      close_encoder();  // the next source's sound needs one that begins anew
    } else if (error < 0) {
      encoder_failed(target_->candidate.name + " fails: " + av_error_text(error));
    } else {
      failures_.worked();
      backoff_.succeeded(Clock::now());
      faults_.recovered();
      account_up_to(packet_->pts + packet_->duration);
      // An encoder that begins anew gives a packet from before its first sample. Where other sound
      // was before it, there is no place for it.
      if (packet_->pts <= last_pts_) continue;
      last_pts_ = packet_->pts;
      return packet_.get();
    }
  }
  return nullptr;
}

bool AudioEncode::feed_encoder() {
  const int queued = line_->queued();
  if (queued < frame_->nb_samples && !ending_) return false;
  if (queued > 0) {
    send_frame();
  } else {
    avcodec_send_frame(encoder_.get(), nullptr);
  }
  return true;
}

void AudioEncode::send_frame() {
  constexpr int kTakesFewer = AV_CODEC_CAP_SMALL_LAST_FRAME | AV_CODEC_CAP_VARIABLE_FRAME_SIZE;
  if (av_frame_make_writable(frame_.get()) < 0) throw std::bad_alloc();
  const int samples = line_->read(*frame_);
  if (ending_ && (target_->codec->capabilities & kTakesFewer) != 0) frame_->nb_samples = samples;
  const int error = avcodec_send_frame(encoder_.get(), frame_.get());
  if (error < 0) {
    encoder_failed(target_->candidate.name + " does not take a frame: " + av_error_text(error));
  }
}

void AudioEncode::account_up_to(std::int64_t position) {
  auto end = in_flight_.begin();
  while (end != in_flight_.end() && *end <= position) {
    stats_.out(run_);
    ++end;
  }
  in_flight_.erase(in_flight_.begin(), end);
}

void AudioEncode::drop(AudioDrop reason) {
  for (std::size_t i = 0; i < in_flight_.size(); ++i) stats_.drop(run_, reason);
  in_flight_.clear();
}

}  // namespace framelane
