#pragma once

#include <optional>
#include <string>

#include "config/av_names.hpp"

namespace framelane {

// Whether FFmpeg here knows what a configuration or a command line names. Each returns what is
// wrong, to stand behind the key or option ("is no muxer of this FFmpeg; did you mean ...?"), or
// nothing. Values are not shown.

/// `others`: whether another encoder may be taken instead, so that this one need not be here.
std::optional<std::string> unknown_encoder(const std::string& name, bool others);
std::optional<std::string> unknown_muxer(const std::string& name);
std::optional<std::string> unknown_demuxer(const std::string& name);
/// The scheme of a URL.
std::optional<std::string> unknown_scheme(const std::string& url, bool output);

/// By its name, and by its value where it is known by heart.
std::optional<std::string> wrong_encoder_option(const std::string& encoder, const AvOption& option);
/// `known` as output_option_names() or input_option_names() tell.
std::optional<std::string> unknown_option(const std::string& name, const AvNames& known,
                                          const std::string& owner);

}  // namespace framelane
