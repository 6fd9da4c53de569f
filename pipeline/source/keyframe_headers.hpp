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

/// Finds the picture size in the keyframes of a stream that is not decoded. Containers such as
/// MPEG-TS say nowhere else that the size changes, and the size they announce may be wrong or
/// missing (when a group of pictures is longer than the probing). One thread.
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
  /// The size, if this packet is a keyframe and has another one than the keyframe before it (the
  /// first: than the parameters). Always nothing for codecs that FFmpeg has no parser for, and for
  /// codecs with keyframes alone, which are cheap to decode and seldom copied.
  std::optional<Change> read(const AVPacket& packet);

 private:
  std::vector<std::uint8_t> extradata_of(const AVPacket& packet) const;

  CodecContextPtr context_;
  AVCodecParserContext* parser_ = nullptr;
  int width_ = 0;  // 0: unknown
  int height_ = 0;
};

}  // namespace framelane
