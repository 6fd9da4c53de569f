#pragma once

extern "C" {
#include <libavcodec/avcodec.h>
}

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "pipeline/av/av_ptr.hpp"
#include "pipeline/av/interrupt.hpp"
#include "pipeline/base/backoff.hpp"
#include "pipeline/base/fault_log.hpp"
#include "pipeline/base/labels.hpp"
#include "pipeline/encode/audio_encoder.hpp"
#include "pipeline/encode/audio_line.hpp"
#include "pipeline/encode/close_failures.hpp"
#include "pipeline/encode/encode_options.hpp"
#include "pipeline/measure/feed_stats.hpp"
#include "pipeline/packets/media.hpp"

namespace framelane {

/// The restart domain of an encode's transcoded sound. Decodes the source's packets, brings the
/// samples in step with the packets' timestamps (AudioLine), and encodes them. Nothing that goes
/// wrong here ends a feed that goes on, except a configuration that cannot work: what cannot be
/// decoded is counted and becomes silence, and an encoder that fails is opened again with backoff.
/// A feed that runs once fails if the sound cannot be decoded or no encoder opens at first, or,
/// while its source is not live, if other sound cannot be decoded or the encoder fails again and
/// again.
///
/// Used like a codec: after each send(), or finish(), receive() until it returns null. Source
/// thread; the references outlive this object.
class AudioEncode {
 public:
  /// `once`: the feed runs once. `stats`: of the encode. `calls` is armed for `call_limit` during
  /// each call of this object: nothing interrupts a codec that hangs.
  AudioEncode(const EncodeOptions& options, bool once, AudioStats& stats, FeedStats& feed,
              Interrupt& calls, std::chrono::milliseconds call_limit);
  ~AudioEncode();
  AudioEncode(const AudioEncode&) = delete;
  AudioEncode& operator=(const AudioEncode&) = delete;

  /// The packets that follow belong to the audio of `media`. Null, or without audio: none follow.
  /// Throws FeedError if no encoder of the configuration can be used, or if this ends the feed.
  void set_source(const MediaFormatRef& media);
  /// Whether the source goes on while the encoder waits to be opened again; at first it does.
  void set_live(bool live) { live_ = live; }
  /// The format of the packets; null if the source has no sound, or before the encoder has opened.
  /// It does not change any more once it is known, but may be null again.
  const StreamFormat* format() const;

  /// Takes a packet of the source. Throws as set_source does.
  void send(const AVPacket& packet);
  /// The source has ended: receive() returns the rest of its sound. send() may follow then. Throws
  /// as set_source does.
  void finish();
  /// The next packet; valid until the next call. Null: nothing more until the next send(). Throws
  /// as set_source does.
  const AVPacket* receive();
  /// Drops and counts what has been sent and not received.
  void drop(AudioDrop reason);

 private:
  using Clock = std::chrono::steady_clock;

  void open_decoder(const StreamFormat& audio);
  /// False if there is no encoder and none can be opened now.
  bool has_encoder(int rate, int channels);
  void open_encoder(int rate, int channels);
  void close_encoder();
  void encoder_failed(const std::string& reason);
  Clock::time_point go_without(const std::string& reason);
  [[noreturn]] void fail(FeedFault fault, const std::string& reason) const;
  /// Decodes the packet, or with null what the decoder holds. Returns FFmpeg's last error.
  int decode(const AVPacket* packet);
  void take(const AVFrame& frame);
  /// Sends the encoder its next frame, or its end. False if the samples do not suffice yet.
  bool feed_encoder();
  void send_frame();
  /// The packets whose sound ends at `position` or before are out.
  void account_up_to(std::int64_t position);

  const EncodeOptions& options_;
  const bool once_;
  AudioStats& stats_;
  const std::uint32_t run_;
  FeedStats& feed_;
  Interrupt& calls_;
  const std::chrono::milliseconds call_limit_;
  FaultLog faults_;
  Backoff backoff_;
  Clock::time_point next_try_;
  bool live_ = true;
  CloseFailures failures_;

  MediaFormatRef source_;
  CodecContextPtr decoder_;
  std::optional<Clock::time_point> next_decoder_;  // it was short of threads or memory
  bool decode_warned_ = false;
  FramePtr decoded_;
  bool taken_ = false;    // something has been decoded of the packet in hand
  bool refused_ = false;  // something decoded of it could not be taken

  std::optional<AudioTarget> target_;
  std::optional<StreamFormat> format_;
  CodecContextPtr encoder_;
  std::optional<AudioLine> line_;  // not empty while there is an encoder
  FramePtr frame_;                 // the encoder's next
  PacketPtr packet_;
  bool ending_ = false;                  // finish() was called: the rest is sent
  std::int64_t last_pts_ = INT64_MIN;    // of the packets given out
  std::vector<std::int64_t> in_flight_;  // where the sound of each packet in flight ends
};

}  // namespace framelane
