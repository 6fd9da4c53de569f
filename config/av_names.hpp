#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace framelane {

struct AvOption;
struct Container;
struct InputOptions;
enum class StreamKind;

// The names that this program's FFmpeg knows, for checks before anything is opened. These functions
// open no file, device or codec and load no library. Any thread.

/// In no order. The texts live as long as the process.
using AvNames = std::vector<std::string_view>;

AvNames encoder_names(StreamKind kind);
/// The encoders of a codec of that kind ("h264", "opus", ...); empty if there is no such codec.
AvNames encoder_names_for(const std::string& codec, StreamKind kind);
/// Of every kind of stream.
AvNames decoder_names();
AvNames muxer_names();
/// Includes the capture devices, whose library is loaded only when a feed uses one.
AvNames demuxer_names();
/// The URL schemes that can be read from, or with `output` those that can be written to.
AvNames scheme_names(bool output);

/// Whom a URL names, as FFmpeg reads it.
struct PeerAddress {
  std::string host;  ///< may be empty
  int port;          ///< negative: none; 0 also for text that is no number
};
PeerAddress peer_address(const std::string& url);

/// True if FFmpeg has an encoder of this name when it is built with a certain library or for
/// certain hardware. If such an encoder is missing here, its name is not a typing mistake.
bool is_optional_encoder(std::string_view name, StreamKind kind);

/// True if the container holds this encoder's sound, or if there is no such encoder here.
bool holds_audio_of(const std::string& encoder, const Container& container);

/// Why the container does not hold this encoder's video, as a sentence: see why_no_video(). Nothing
/// if it does, or if there is no such encoder here.
std::optional<std::string> why_no_video_of(const std::string& encoder, const Container& container);

/// Both FFmpeg's general ones and those of this encoder.
AvNames encoder_option_names(const std::string& encoder);
/// Of the muxer and of the protocols that it may write through.
AvNames output_option_names(const Container& container);
/// Of every protocol, demuxer and decoder that may read this input; empty if its options cannot be
/// known by name (capture devices, lavfi).
AvNames input_option_names(const InputOptions& input);

/// Why the encoder refuses the value of an option that it has. Nothing if it accepts the value, as
/// far as that can be known before the encoder is opened.
std::optional<std::string> why_value_refused(const std::string& encoder, const AvOption& option);

}  // namespace framelane
