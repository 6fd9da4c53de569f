#pragma once

extern "C" {
#include <libavcodec/avcodec.h>
#include <libavutil/audio_fifo.h>
#include <libswresample/swresample.h>
}

#include <cstdint>
#include <memory>
#include <optional>

#include "pipeline/av/av_ptr.hpp"
#include "pipeline/encode/audio_sync.hpp"

namespace framelane {

/// A queue of samples as an encoder takes them, without gaps, made of decoded frames of any format.
/// The samples are in step with the frames' timestamps (AudioSync). Positions are in samples of the
/// encoder, on the feed's line of time. One thread.
class AudioLine {
 public:
  /// `encoder` is open, and outlives this.
  explicit AudioLine(AVCodecContext& encoder);

  using Kind = AudioSync::Step::Kind;
  /// Converts the frame and queues it, after what the step of this kind asks for. Not taken is a
  /// frame that cannot be converted or whose place is not known (empty), and one that begins after
  /// a jump: all that is queued has to be read first, and the frame added again.
  std::optional<Kind> add(const AVFrame& frame, AVRational time_base);
  /// Queues what the resampler holds.
  void flush();

  /// True if something has been added.
  bool begun() const { return begun_; }
  int queued() const { return av_audio_fifo_size(queue_.get()); }
  /// Moves as many samples as are queued, but at most frame.nb_samples, into the frame, and sets
  /// its pts. Silence fills the rest. Returns their number.
  int read(AVFrame& frame);

  /// Where the sound ends that has been added.
  std::int64_t end() const { return position_ + held() - trim_; }
  /// True if all of the last frame is to be left out, because other sound lies in its place.
  bool leaves_out() const { return trim_ > held(); }

 private:
  struct Deleter {
    void operator()(SwrContext* context) const { swr_free(&context); }
    void operator()(AVAudioFifo* fifo) const { av_audio_fifo_free(fifo); }
  };
  /// Of decoded frames.
  struct SampleFormat {
    int format = AV_SAMPLE_FMT_NONE;
    int rate = 0;
    int channels = 0;
    bool operator==(const SampleFormat&) const = default;
  };

  bool use_resampler(const AVFrame& frame);
  void apply(const AudioSync::Step& step);
  /// Samples that the resampler holds.
  std::int64_t held() const;
  /// Converts the frame, or with null what the resampler holds, and queues the samples. False if
  /// that fails.
  bool convert(const AVFrame* frame);
  void queue_converted(int samples);
  void queue_silence(std::int64_t samples);

  AVCodecContext& encoder_;
  std::unique_ptr<SwrContext, Deleter> resampler_;
  SampleFormat resampler_input_;  // also if there is no resampler for it
  AudioSync sync_;
  std::int64_t position_ = 0;  // of the next sample to be queued
  std::int64_t trim_ = 0;      // samples that are still to be left out
  bool begun_ = false;         // position_ is valid
  FramePtr converted_;         // room for the resampler's output
  std::unique_ptr<AVAudioFifo, Deleter> queue_;
};

}  // namespace framelane
