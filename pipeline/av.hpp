#pragma once

extern "C" {
#include <libavcodec/avcodec.h>
#include <libavformat/avformat.h>
#include <libavutil/buffer.h>
#include <libavutil/dict.h>
#include <libavutil/frame.h>
}

#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "kernels/color_spec.hpp"
#include "kernels/pixel_format.hpp"
#include "pipeline/options.hpp"

namespace framelane {

struct AvDeleter {
  void operator()(AVFrame* frame) const { av_frame_free(&frame); }
  void operator()(AVPacket* packet) const { av_packet_free(&packet); }
  void operator()(AVCodecContext* context) const { avcodec_free_context(&context); }
  void operator()(AVCodecParameters* parameters) const { avcodec_parameters_free(&parameters); }
};
using FramePtr = std::unique_ptr<AVFrame, AvDeleter>;
using PacketPtr = std::unique_ptr<AVPacket, AvDeleter>;
using CodecContextPtr = std::unique_ptr<AVCodecContext, AvDeleter>;
using CodecParametersPtr = std::unique_ptr<AVCodecParameters, AvDeleter>;

/// Throw std::bad_alloc instead of returning null.
FramePtr make_frame();
PacketPtr make_packet();
CodecParametersPtr copy_parameters(const AVCodecParameters& from);

/// One reference to an AVBufferRef; copying takes another reference.
class BufferRef {
 public:
  BufferRef() = default;
  /// Takes over `ref`.
  static BufferRef adopt(AVBufferRef* ref) { return BufferRef(ref); }
  BufferRef(const BufferRef& other);
  BufferRef(BufferRef&& other) noexcept : ref_(std::exchange(other.ref_, nullptr)) {}
  BufferRef& operator=(BufferRef other) noexcept {
    std::swap(ref_, other.ref_);
    return *this;
  }
  ~BufferRef() { av_buffer_unref(&ref_); }

  explicit operator bool() const { return ref_ != nullptr; }
  AVBufferRef* get() const { return ref_; }
  /// Gives the reference away, for FFmpeg to own.
  AVBufferRef* release() { return std::exchange(ref_, nullptr); }

 private:
  explicit BufferRef(AVBufferRef* ref) : ref_(ref) {}
  AVBufferRef* ref_ = nullptr;
};

/// An AVDictionary filled from AvOptions.
class Dictionary {
 public:
  Dictionary() = default;
  explicit Dictionary(const AvOptions& options);
  Dictionary(Dictionary&& other) noexcept : dict_(std::exchange(other.dict_, nullptr)) {}
  Dictionary& operator=(Dictionary other) noexcept {
    std::swap(dict_, other.dict_);
    return *this;
  }
  ~Dictionary() { av_dict_free(&dict_); }

  Dictionary copy() const;
  void set(const std::string& key, const std::string& value);
  void set_default(const std::string& key, const std::string& value);
  /// For FFmpeg calls that take and replace a dictionary: what they leave was not consumed.
  AVDictionary** ptr() { return &dict_; }
  const AVDictionary* get() const { return dict_; }
  /// The first of `options` that is still here and not inherited: nothing consumed it.
  std::optional<std::string> unconsumed(const AvOptions& options) const;

 private:
  AVDictionary* dict_ = nullptr;
};

/// FFmpeg's text for an error code.
std::string av_error_text(int error);

/// Our layout of an FFmpeg format (yuvj420p gives kI420, bgr0 gives kBgra), or nothing when
/// swscale has to bring it to one of ours first.
std::optional<PixelFormat> layout_of(AVPixelFormat format);
/// True for FFmpeg's yuvj formats, which say "full range" by their name.
bool is_full_range_format(AVPixelFormat format);
/// FFmpeg's format of a layout, never a yuvj one.
AVPixelFormat av_format(PixelFormat format);

/// Tags of a frame or stream as FFmpeg has them.
struct AvColorTags {
  AVColorSpace space = AVCOL_SPC_UNSPECIFIED;
  AVColorRange range = AVCOL_RANGE_UNSPECIFIED;
  AVChromaLocation location = AVCHROMA_LOC_UNSPECIFIED;
  AVColorPrimaries primaries = AVCOL_PRI_UNSPECIFIED;
  AVColorTransferCharacteristic transfer = AVCOL_TRC_UNSPECIFIED;
};

/// Resolves tags into a complete ColorSpec (design: untagged YUV is BT.601 below 720 lines and
/// BT.709 from there, limited unless the format is a J one; untagged siting is left; RGB is rgb,
/// full). `override` wins over tags. Throws FeedError(kConfiguration), naming input.color.matrix,
/// when a tag names a matrix framelane does not know (YCgCo, say) and nothing overrides it.
ColorSpec resolve_color(AVPixelFormat format, int height, const AvColorTags& tags,
                        const ColorOverride& override);
/// The tags to write for a ColorSpec.
AvColorTags tags_of(const ColorSpec& color);

inline AVRational to_av(Rational value) { return {value.num, value.den}; }

}  // namespace framelane
