#pragma once

extern "C" {
#include <libavutil/channel_layout.h>
#include <libavutil/samplefmt.h>
}

#include <gtest/gtest.h>
#include <spdlog/spdlog.h>

#include <chrono>
#include <cmath>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "pipeline/base/failure.hpp"
#include "pipeline/encode/audio_encode.hpp"

namespace framelane::testing {

/// A source with such sound, and with video of an unknown kind.
inline MediaFormatRef sound(int rate, int channels = 1, AVCodecID codec = AV_CODEC_ID_PCM_S16LE) {
  auto media = std::make_shared<MediaFormat>();
  media->video.parameters.reset(avcodec_parameters_alloc());
  CodecParametersPtr parameters(avcodec_parameters_alloc());
  parameters->codec_type = AVMEDIA_TYPE_AUDIO;
  parameters->codec_id = codec;
  parameters->sample_rate = rate;
  av_channel_layout_default(&parameters->ch_layout, channels);
  media->audio = StreamFormat{.parameters = std::move(parameters), .time_base = {1, 90'000}};
  return media;
}

/// A camera that beeps, in the middle of a second, at times that only the test knows. Its packets
/// go through an AudioEncode, and what comes out is decoded; each beep must be at its time still.
class AudioEncodeTest : public ::testing::Test {
 protected:
  AudioEncodeTest() {
    spdlog::set_level(spdlog::level::off);
    options_.name = "live";
  }

  AudioEncode& use(const std::string& encoder, const MediaFormatRef& source,
                   AvOptions encoder_options = {}) {
    audio_.reset();
    decoder_.reset();
    heard_.clear();
    loud_until_ = -1;
    last_dts_ = INT64_MIN;
    options_.audio_codecs = {{encoder, std::move(encoder_options)}};
    audio_ = std::make_unique<AudioEncode>(options_, once_, feed_.encode(0).audio, feed_, calls_,
                                           std::chrono::seconds(10));
    change_source(source);
    return *audio_;
  }
  void change_source(const MediaFormatRef& source) {
    source_ = source;
    audio_->set_source(source);
  }

  /// Sends the sound from `begin` to `end` seconds of the camera's own clock, in packets of
  /// `length`. `stamp`: the true time at such a time.
  void play(
      double begin, double end, double length = 0.02,
      const std::function<double(double)>& stamp = [](double time) { return time; }) {
    const AVCodecParameters& format = *source_->audio->parameters;
    const int channels = format.ch_layout.nb_channels;
    const auto per_packet = static_cast<std::int64_t>(std::llround(length * format.sample_rate));
    const std::int64_t last = std::llround(end * format.sample_rate);
    for (std::int64_t at = std::llround(begin * format.sample_rate); at < last; at += per_packet) {
      const PacketPtr packet = make_packet();
      ASSERT_GE(av_new_packet(packet.get(), static_cast<int>(per_packet * channels * 2)), 0);
      auto* samples = reinterpret_cast<std::int16_t*>(packet->data);
      for (std::int64_t i = 0; i < per_packet; ++i) {
        const double true_time = stamp(static_cast<double>(at + i) / format.sample_rate);
        const double beep_at = std::round(true_time / every_) * every_;
        const bool beeps = std::abs(true_time - beep_at) < beep_ / 2;
        for (int c = 0; c < channels; ++c) *samples++ = beeps ? 20'000 : 0;
      }
      packet->pts = packet->dts =
          std::llround(stamp(static_cast<double>(at) / format.sample_rate) * 90'000);
      packet->duration = std::llround(length * 90'000);
      send(*packet);
    }
  }
  /// Sends so many packets of silence, at 16 kHz.
  void send_mp2(int packets) {
    EncodeOptions mp2;
    mp2.audio_codecs = {{"mp2"}};
    const ChosenAudioEncoder chosen = choose_audio_encoder(mp2, 16'000, 1);
    AVCodecContext* encoder = chosen.encoder.get();
    const FramePtr frame = make_audio_frame(*encoder, encoder->frame_size);
    av_samples_set_silence(frame->extended_data, 0, frame->nb_samples, 1, encoder->sample_fmt);
    const PacketPtr packet = make_packet();
    for (int i = 0; i < packets; ++i) {
      frame->pts = std::int64_t{i} * frame->nb_samples;
      ASSERT_GE(avcodec_send_frame(encoder, frame.get()), 0);
      ASSERT_GE(avcodec_receive_packet(encoder, packet.get()), 0);
      av_packet_rescale_ts(packet.get(), encoder->time_base, source_->audio->time_base);
      send(*packet);
    }
  }
  void send(const AVPacket& packet) {
    audio_->send(packet);
    receive();
  }
  void finish() {
    audio_->finish();
    receive();
  }

  void receive() {
    while (const AVPacket* packet = audio_->receive()) {
      EXPECT_GT(packet->dts, last_dts_);
      last_dts_ = packet->dts;
      ++packets_;
      listen(*packet);
    }
    const AudioCounts now = counts();
    const auto ended = std::accumulate(now.dropped.begin(), now.dropped.end(), now.out);
    ASSERT_EQ(now.in, ended + static_cast<std::uint64_t>(now.in_flight));
  }
  /// Notes where beeps begin and end.
  void listen(const AVPacket& packet) {
    if (!decoder_) {
      const AVCodecParameters& format = *audio_->format()->parameters;
      decoder_.reset(avcodec_alloc_context3(avcodec_find_decoder(format.codec_id)));
      avcodec_parameters_to_context(decoder_.get(), &format);
      decoder_->pkt_timebase = audio_->format()->time_base;
      ASSERT_GE(avcodec_open2(decoder_.get(), nullptr, nullptr), 0);
    }
    const FramePtr frame = make_frame();
    ASSERT_GE(avcodec_send_packet(decoder_.get(), &packet), 0);
    while (avcodec_receive_frame(decoder_.get(), frame.get()) >= 0) {
      for (int i = 0; i < frame->nb_samples; ++i) {
        const double level =
            av_get_packed_sample_fmt(static_cast<AVSampleFormat>(frame->format)) ==
                    AV_SAMPLE_FMT_S16
                ? reinterpret_cast<const std::int16_t*>(frame->data[0])[i] / 32768.0
                : double{reinterpret_cast<const float*>(frame->data[0])[i]};
        const bool loud = level > 0.3;
        const double time = static_cast<double>(packet.pts + i) / frame->sample_rate;
        if (loud && time > loud_until_ + 0.2) {
          heard_.push_back({time, time});
        }
        if (loud) heard_.back().end = loud_until_ = time;
      }
    }
  }

  /// Every beep that was heard was at its time, within this.
  void expect_in_step(std::size_t beeps, double within) const {
    EXPECT_EQ(heard_.size(), beeps);
    for (const Beep& beep : heard_) {
      const double middle = (beep.begin + beep.end) / 2;
      EXPECT_NEAR(middle, std::round(middle / every_) * every_, within);
    }
  }
  static FeedError error_of(const std::function<void()>& call) {
    try {
      call();
    } catch (const FeedError& error) {
      return error;
    }
    return {FeedFault::kInternal, "nothing was thrown"};
  }
  AudioCounts counts() const { return feed_.encode(0).audio.counts(); }
  std::uint64_t dropped(AudioDrop reason) const { return counts().dropped[index_of(reason)]; }
  std::uint64_t repairs(AudioRepair repair) const {
    return feed_.encode(0).audio.repairs[index_of(repair)];
  }

  struct Beep {
    double begin;
    double end;
  };
  double every_ = 1;    // seconds from one beep to the next
  double beep_ = 0.05;  // seconds
  bool once_ = false;
  EncodeOptions options_;
  FeedStats feed_{"gate", {{"live", false, true}}, {}, 1};
  Interrupt calls_{std::stop_token()};
  std::unique_ptr<AudioEncode> audio_;
  MediaFormatRef source_;
  CodecContextPtr decoder_;
  std::vector<Beep> heard_;
  double loud_until_ = -1;
  std::int64_t last_dts_ = INT64_MIN;
  int packets_ = 0;
};

}  // namespace framelane::testing
