#pragma once

#include <chrono>
#include <cstdint>
#include <exception>
#include <memory>
#include <optional>

#include "pipeline/av/av_ptr.hpp"
#include "pipeline/packets/media.hpp"
#include "pipeline/source/decoder.hpp"
#include "pipeline/source/demuxer.hpp"
#include "pipeline/source/frame_importer.hpp"
#include "pipeline/source/input_options.hpp"
#include "pipeline/source/keyframe_headers.hpp"
#include "pipeline/source/lead_in.hpp"
#include "pipeline/source/source.hpp"

namespace framelane {

/// A demuxer and, unless every encode copies, a decoder. Each packet is stamped, handed on, and
/// then decoded. When the packets end, with an error too, the frames that the decoder still holds
/// come first.
class StreamSource final : public Source {
 public:
  /// Opens. Throws as open_source does.
  StreamSource(const InputOptions& input, const SourceContext& context);
  ~StreamSource() override { close_decoder(); }

  const SourceInfo& info() const override { return info_; }
  ReadResult read(SourceItem& item) override;

 private:
  void open();
  void open_decoder();
  void flush_decoder();
  void close_decoder();
  void begin_segment();
  std::optional<std::chrono::microseconds> segment_start() const;
  MediaFormatRef make_media() const;
  void apply_format(const AVPacket& packet);
  bool take_packet(SourceItem& item);
  void finish_decoding();
  void decode(AVPacket* packet);
  Decoder::Flow receive(InputFrame& frame);
  bool begin_again();
  bool is_finished_playlist() const;
  bool past_end(std::int64_t timestamp, AVRational time_base) const;

  const InputOptions input_;
  const SourceContext context_;
  PacketPtr packet_;
  FrameImporter importer_;  // the same over all loops, so that it logs only changes
  std::unique_ptr<Demuxer> demuxer_;
  LeadIn lead_in_;
  std::unique_ptr<Decoder> decoder_;
  SourceInfo info_;
  CodecParametersPtr seen_;  // the demuxer's video parameters when `info_.media` was made
  std::unique_ptr<KeyframeHeaders> headers_;

  enum class Step { kRead, kDecode, kReceive, kFinish } step_ = Step::kRead;
  std::exception_ptr loss_;             // thrown once the decoder has given its last frames
  std::optional<std::int64_t> end_us_;  // where input.duration ends, on the timeline
  bool segment_begun_ = false;          // a packet of it has come
  bool productive_ = false;             // something has come of the file since it last began
  bool done_ = false;                   // input.duration has passed
};

}  // namespace framelane
