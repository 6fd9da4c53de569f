#pragma once

extern "C" {
#include <libavcodec/avcodec.h>
}

#include <cstdint>
#include <string>

#include "pipeline/av/av_ptr.hpp"
#include "pipeline/encode/encode_options.hpp"
#include "pipeline/packets/media.hpp"

namespace framelane {

/// The encoder for the sound of an encode, and the format in which it takes samples. It stays the
/// same while the feed runs, whatever becomes of the source's sound, so that outputs go on.
struct AudioTarget {
  const AVCodec* codec = nullptr;
  CodecCandidate candidate;
  AVSampleFormat sample_format = AV_SAMPLE_FMT_NONE;
  int rate = 0;
  int channels = 0;
  std::int64_t bitrate = 0;  ///< bit/s: as configured, or the most that it takes; 0: its own
};

/// Throws FeedError, whose text does not name the encode: kConfiguration for an option that the
/// encoder does not have or whose value it rejects, kMemory if memory is short, kEncoder if it does
/// not open for another reason. Its time base is one sample.
CodecContextPtr open_audio_encoder(const AudioTarget& target);

struct ChosenAudioEncoder {
  AudioTarget target;
  CodecContextPtr encoder;
  std::string passed_over;  ///< why the encoders before it are not used; empty: it is the first
};

/// Opens the first of the encoders that opens, for the rate and channels of the source or the
/// nearest that it takes. Throws as open_audio_encoder does, and FeedError(kConfiguration) if
/// FFmpeg has none of them.
ChosenAudioEncoder choose_audio_encoder(const EncodeOptions& options, int rate, int channels);

/// A frame with room for `samples` as the encoder takes them.
FramePtr make_audio_frame(const AVCodecContext& encoder, int samples);

/// The format of the encoder's packets.
StreamFormat audio_format_of(const AVCodecContext& encoder);

}  // namespace framelane
