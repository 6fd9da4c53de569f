#pragma once

extern "C" {
#include <libavcodec/avcodec.h>
}

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "pipeline/av/av_ptr.hpp"

namespace framelane {

/// Notices from the keyframes of an undecoded stream that its pictures have changed size, which
/// containers such as MPEG-TS say nowhere else, or have another one than was announced or none was
/// (a long group of pictures may outlast the probing). One thread.
class KeyframeHeaders {
 public:
  explicit KeyframeHeaders(const AVCodecParameters& parameters);
  ~KeyframeHeaders();
  KeyframeHeaders(const KeyframeHeaders&) = delete;
  KeyframeHeaders& operator=(const KeyframeHeaders&) = delete;

  struct Change {
    int width = 0;
    int height = 0;
    std::vector<std::uint8_t> extradata;  ///< empty when the keyframe carries no headers
  };
  /// What has changed since the keyframe before, or since the parameters; nothing when nothing has,
  /// for packets that are no keyframes, and for codecs whose every frame is one (those are cheap to
  /// decode and seldom copied) or that FFmpeg has no parser for.
  std::optional<Change> read(const AVPacket& packet);

 private:
  std::vector<std::uint8_t> extradata_of(const AVPacket& packet) const;

  CodecContextPtr context_;
  AVCodecParserContext* parser_ = nullptr;
  int width_ = 0;  // 0: unknown
  int height_ = 0;
};

}  // namespace framelane
