#include "pipeline/encode/audio_line.hpp"

extern "C" {
#include <libavutil/channel_layout.h>
#include <libavutil/mathematics.h>
#include <libavutil/opt.h>
#include <libavutil/samplefmt.h>
}

#include <algorithm>
#include <new>
#include <utility>

#include "pipeline/encode/audio_encoder.hpp"

namespace framelane {
namespace {

/// Samples that are converted at a time.
constexpr int kRoom = 4096;

void** planes_of(const AVFrame& frame) { return reinterpret_cast<void**>(frame.extended_data); }

}  // namespace

AudioLine::AudioLine(AVCodecContext& encoder)
    : encoder_(encoder),
      sync_(encoder.sample_rate),
      converted_(make_audio_frame(encoder, kRoom)),
      queue_(av_audio_fifo_alloc(encoder.sample_fmt, encoder.ch_layout.nb_channels, 2 * kRoom)) {
  if (!queue_) throw std::bad_alloc();
}

std::optional<AudioLine::Kind> AudioLine::add(const AVFrame& frame, AVRational time_base) {
  if (!use_resampler(frame)) return std::nullopt;
  AudioSync::Step step;
  if (frame.best_effort_timestamp != AV_NOPTS_VALUE) {
    const std::int64_t start =
        av_rescale_q(frame.best_effort_timestamp, time_base, {1, encoder_.sample_rate});
    if (!std::exchange(begun_, true)) position_ = start;
    const std::int64_t samples =
        av_rescale(frame.nb_samples, encoder_.sample_rate, frame.sample_rate);
    step = sync_.step(start, samples, end());
  }
  if (!begun_) return std::nullopt;
  apply(step);
  if (step.kind == Kind::kJump) {
    begun_ = false;
  } else if (!resampler_ || !convert(&frame)) {
    return std::nullopt;
  }
  return step.kind;
}

bool AudioLine::use_resampler(const AVFrame& frame) {
  const SampleFormat now{frame.format, frame.sample_rate, frame.ch_layout.nb_channels};
  if (now == resampler_input_) return resampler_ != nullptr;
  flush();
  AVChannelLayout layout{};
  if (frame.ch_layout.order == AV_CHANNEL_ORDER_UNSPEC) {
    av_channel_layout_default(&layout, now.channels);
  } else if (av_channel_layout_copy(&layout, &frame.ch_layout) < 0) {
    throw std::bad_alloc();
  }
  SwrContext* context = nullptr;
  int error =
      swr_alloc_set_opts2(&context, &encoder_.ch_layout, encoder_.sample_fmt, encoder_.sample_rate,
                          &layout, static_cast<AVSampleFormat>(now.format), now.rate, 0, nullptr);
  av_channel_layout_uninit(&layout);
  resampler_.reset(context);
  // Also between equal rates, because the sound has to be made longer or shorter.
  if (error >= 0) error = av_opt_set_int(context, "flags", SWR_FLAG_RESAMPLE, 0);
  if (error >= 0) error = swr_init(context);
  resampler_input_ = now;
  if (error < 0) resampler_.reset();
  return error >= 0;
}

void AudioLine::apply(const AudioSync::Step& step) {
  switch (step.kind) {
    case Kind::kSteady:
      swr_set_compensation(resampler_.get(), step.stretch,
                           step.stretch == 0 ? 0 : sync_.stretch_span());
      break;
    case Kind::kSilence: {
      const std::int64_t kept = std::min(trim_, step.samples);  // samples that are not left out now
      trim_ -= kept;
      if (kept == step.samples) break;
      const std::int64_t start = end() + step.samples - kept;
      flush();  // the sound before the hole
      queue_silence(start - position_);
      break;
    }
    case Kind::kTrim:
      trim_ += step.samples;
      break;
    case Kind::kJump:
      trim_ = 0;
      flush();
      break;
  }
}

std::int64_t AudioLine::held() const {
  return resampler_ ? swr_get_delay(resampler_.get(), encoder_.sample_rate) : 0;
}

bool AudioLine::convert(const AVFrame* frame) {
  auto** data = frame != nullptr ? const_cast<const std::uint8_t**>(frame->extended_data) : nullptr;
  int count = frame != nullptr ? frame->nb_samples : 0;
  for (;;) {
    const auto room = static_cast<int>(trim_ > 0 ? std::min<std::int64_t>(trim_, kRoom) : kRoom);
    const int samples = swr_convert(resampler_.get(), converted_->extended_data, room, data, count);
    if (samples <= 0) return samples == 0;
    count = 0;  // the resampler has taken the whole frame, and gives the rest of its samples
    if (trim_ > 0) {
      trim_ -= samples;
    } else {
      queue_converted(samples);
    }
  }
}

void AudioLine::flush() {
  if (!resampler_) return;
  convert(nullptr);
  if (swr_init(resampler_.get()) >= 0) return;
  resampler_.reset();
  resampler_input_ = {};
}

void AudioLine::queue_converted(int samples) {
  if (av_audio_fifo_write(queue_.get(), planes_of(*converted_), samples) < samples) {
    throw std::bad_alloc();
  }
  position_ += samples;
}

void AudioLine::queue_silence(std::int64_t samples) {
  for (; samples > 0; samples -= kRoom) {
    const auto now = static_cast<int>(std::min<std::int64_t>(samples, kRoom));
    av_samples_set_silence(converted_->extended_data, 0, now, encoder_.ch_layout.nb_channels,
                           encoder_.sample_fmt);
    queue_converted(now);
  }
}

int AudioLine::read(AVFrame& frame) {
  frame.pts = position_ - queued();
  const int samples = av_audio_fifo_read(queue_.get(), planes_of(frame), frame.nb_samples);
  if (samples < frame.nb_samples) {
    av_samples_set_silence(frame.extended_data, samples, frame.nb_samples - samples,
                           encoder_.ch_layout.nb_channels, encoder_.sample_fmt);
  }
  return samples;
}

}  // namespace framelane
