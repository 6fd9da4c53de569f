#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "pipeline/base/av_option.hpp"
#include "pipeline/output/container.hpp"
#include "pipeline/source/input_options.hpp"

namespace framelane {

// What the FFmpeg that is linked in knows by name, for checks that come before anything is opened.
// No file, device or codec is opened and no library loaded for it. Any thread.

/// The names live as long as the process; in no order.
using AvNames = std::vector<std::string_view>;

AvNames video_encoder_names();
/// The encoders there are for that video codec ("h264", "hevc", ...); empty when it is none.
AvNames encoder_names_for(const std::string& codec);
AvNames muxer_names();
/// With the capture devices, which are loaded only when one is asked for.
AvNames demuxer_names();
/// The schemes of URLs that can be read from, or with `output` written to.
AvNames scheme_names(bool output);

/// Whether FFmpeg has an encoder of this name when it is built with some library or for some
/// hardware: then its absence is a fact about this machine and no slip of the pen.
bool is_optional_encoder(std::string_view name);

AvNames encoder_option_names(const std::string& encoder);
/// Of the muxer and of what it may write through.
AvNames output_option_names(const Container& container);
/// Of everything that may come to read this input; empty when that cannot be told by name.
AvNames input_option_names(const InputOptions& input);

/// Why the encoder does not take the value of an option it has; nothing when it does, as far as
/// this shows before it is opened.
std::optional<std::string> why_value_refused(const std::string& encoder, const AvOption& option);

}  // namespace framelane
