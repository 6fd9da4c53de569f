#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "config/av_names.hpp"
#include "pipeline/base/av_option.hpp"

namespace framelane {

struct EncodeOptions;

// Whether this program's FFmpeg knows a name in a configuration or on a command line. Each function
// returns nothing, or what is wrong, for a message that begins with the key or option: "is not
// a container of this FFmpeg; did you mean ...?" Values of options are not shown.

/// With `others`, another encoder may be used instead, so that an optional one may be missing here.
std::optional<std::string> unknown_encoder(const std::string& name, StreamKind kind, bool others);
std::optional<std::string> unknown_muxer(const std::string& name);
std::optional<std::string> unknown_demuxer(const std::string& name);
std::optional<std::string> unknown_decoder(const std::string& name);
/// A protocol that inputs are read through.
std::optional<std::string> unknown_protocol(const std::string& name);
/// Why the container holds the sound of none of the encode's audio codecs. Nothing if it holds no
/// sound at all: outputs without sound are no mistake.
std::optional<std::string> audio_not_held(const EncodeOptions& encode, const Container& container);
/// Which of the encode's codecs makes video that the playlist cannot hold. Each may be the one that
/// is used. Nothing for other containers: an output that cannot begin is down alone.
std::optional<std::string> video_not_held(const EncodeOptions& encode, const Container& container);
/// The scheme of a URL.
std::optional<std::string> unknown_scheme(const std::string& url, bool output);
/// A peer's URL that FFmpeg can never connect to, or listen at: no host, or no possible port.
/// `options` are those that FFmpeg gets with it.
std::optional<std::string> wrong_address(const std::string& url, const AvOptions& options,
                                         bool output);
/// An input's URL: its scheme, its peer, or the path of the socket in shm:PATH.
std::optional<std::string> wrong_input_url(const std::string& url, const AvOptions& options);
/// The path of a file to write, with the time in place of its fields. Does not look at the disk.
std::optional<std::string> wrong_file_path(std::string_view path);

/// Checks the option's name, and its value as far as that is possible before the encoder is opened.
std::optional<std::string> wrong_encoder_option(const std::string& encoder, const AvOption& option);
/// `known` comes from output_option_names() or input_option_names(). `owner` is for the message.
std::optional<std::string> unknown_option(const std::string& name, const AvNames& known,
                                          const std::string& owner);

}  // namespace framelane
