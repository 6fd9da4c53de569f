#include "daemon/transcode_feed.hpp"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "config/feed_keys.hpp"
#include "config/keys.hpp"
#include "config/name_checks.hpp"
#include "config/problems.hpp"
#include "config/raw_formats.hpp"
#include "config/scalars.hpp"
#include "config/variables.hpp"
#include "daemon/cli.hpp"
#include "pipeline/base/redact.hpp"
#include "pipeline/base/url.hpp"
#include "pipeline/output/container.hpp"
#include "pipeline/overlay/clock_text.hpp"
#include "pipeline/overlay/text_painter.hpp"
#include "pipeline/packets/media.hpp"
#include "pipeline/source/fd_reader.hpp"

namespace framelane {
namespace {

/// Makes one feed, called "transcode", of the arguments. Stops at the first argument with a
/// problem.
class FeedBuilder {
 public:
  explicit FeedBuilder(const TranscodeArguments& arguments) : arguments_(arguments) {}

  std::variant<FeedOptions, TranscodeProblem> build() {
    if (input() && output() && encode()) {
      feed_.name = "transcode";
      feed_.ring = arguments_.ring;
      feed_.lanes = arguments_.lanes;
      feed_.slices = arguments_.slices;
      feed_.once = true;
      feed_.split_after.reset();  // one input, one output
      // Drops frames of live sources only; all others are converted completely.
      feed_.on_full = OnFull::kAuto;
      return std::move(feed_);
    }
    return std::move(problem_);
  }

 private:
  bool fail(std::vector<std::string> problems, int exit_code = kExitUsage) {
    problem_ = {std::move(problems), exit_code};
    return false;
  }
  bool fail(std::string problem, int exit_code = kExitUsage) {
    return fail(std::vector{std::move(problem)}, exit_code);
  }

  bool url(const std::string& text, const char* which, bool is_output, std::string& target) {
    std::string problem;
    const std::optional<std::string> expanded = expand_variables(text, {}, problem);
    if (!expanded) return fail(std::string(which) + " " + problem, kExitConfiguration);
    target = *expanded;
    register_url_secrets(target);
    const Shape text_shape = of(kText);
    if (!parse(target, text_shape)) {
      return fail(std::string(which) + " must be " + expectation(text_shape));
    }
    auto wrong = is_output ? unknown_scheme(target, true) : wrong_input_url(target, {});
    if (!wrong && is_output) wrong = wrong_address(target, {}, true);
    return !wrong || fail(std::string(which) + " " + *wrong);
  }

  /// Reads an option that the configuration has too, with the same limits.
  std::optional<Value> scalar(const char* option, const std::string& text, const Shape& shape) {
    std::optional<Value> value = parse(text, shape);
    if (!value) fail(std::string(option) + " " + text + ": not " + expectation(shape));
    return value;
  }

  /// Reports what a check of names has found wrong with the value of an option.
  bool known(const char* option, const std::string& value,
             const std::optional<std::string>& problem) {
    return !problem || fail(std::string(option) + " " + value + " " + *problem);
  }

  template <typename Enum>
  bool name(const std::string& text, const char* option, const char* choices,
            std::optional<Enum> (*parse)(std::string_view), std::optional<Enum>& target) {
    if (text.empty() || text == "auto") return true;
    target = parse(text);
    return target || fail(std::string(option) + " " + text + ": not one of " + choices);
  }

  bool input() {
    InputOptions& input = feed_.input;
    if (!url(arguments_.input, "INPUT", false, input.url)) return false;
    input.format = arguments_.input_format;
    if (!input.format.empty() &&
        !known("--input-format", input.format, unknown_demuxer(input.format))) {
      return false;
    }
    // The writer of stdin may be slow, and an interrupt ends the wait.
    if (input.url == "-" || input.url == "pipe:0") input.timeout = std::chrono::hours(24);
    if (!arguments_.duration.empty()) {
      const Shape more_than_none = range(kDuration, 1, std::numeric_limits<std::int64_t>::max());
      const auto duration = scalar("--duration", arguments_.duration, more_than_none);
      if (!duration) return false;
      input.duration = duration->microseconds();
    }
    const bool raw_given = !arguments_.input_pixel_format.empty() || !arguments_.input_size.empty();
    if (input.format.empty() && raw_given) input.format = "rawvideo";
    if (input.format == "rawvideo") return raw();
    if (shm_socket(input.url)) return fail("INPUT " + std::string(kNeedsRawVideo));
    if (raw_given) {
      return fail("--input-pixel-format and --input-size are for --input-format rawvideo");
    }
    if (arguments_.input_rate.empty()) {
      // A file comes through a pipe as fast as it can be read: the result must not depend on that.
      if (input.url == "-" || names_fifo(input.url)) {
        input.options.push_back({"framerate", "25", true});
      }
      return true;
    }
    const auto rate = scalar("--input-rate", arguments_.input_rate, of(kFrameRate));
    if (!rate) return false;
    const Rational ratio = rate->ratio;
    input.options.push_back(
        {"framerate", std::to_string(ratio.num) + '/' + std::to_string(ratio.den)});
    return true;
  }

  bool raw() {
    RawVideoOptions raw;
    if (!is_place_of_raw_video(feed_.input.url)) {
      return fail("INPUT " + redact(arguments_.input) + ' ' + std::string(kNoPlaceOfRawVideo));
    }
    if (arguments_.input_pixel_format.empty() || arguments_.input_size.empty()) {
      return fail(
          "raw video has no header: give --input-pixel-format and --input-size, and "
          "--input-rate unless it is 25");
    }
    raw.pixel_format = arguments_.input_pixel_format;
    const std::vector<std::string_view> formats = raw_format_names();
    if (std::ranges::find(formats, raw.pixel_format) == formats.end()) {
      return fail("--input-pixel-format " + raw.pixel_format + ": not one of " + join(formats));
    }
    const auto size = scalar("--input-size", arguments_.input_size, of(kImageSize));
    if (!size) return false;
    raw.width = size->width;
    raw.height = size->height;
    if (!arguments_.input_rate.empty()) {
      const auto rate = scalar("--input-rate", arguments_.input_rate, of(kFrameRate));
      if (!rate) return false;
      raw.rate = rate->ratio;
    }
    feed_.input.raw = raw;
    return true;
  }

  bool encode() {
    EncodeOptions encode;
    encode.name = "main";
    if (!audio(encode)) return false;
    encode.copy_video = arguments_.codecs == std::vector<std::string>{"copy"};
    if (encode.copy_video ? !copy() : !codecs(encode)) return false;
    if (!arguments_.bitrate.empty()) {
      const auto bitrate = scalar("--bitrate", arguments_.bitrate, bitrate_shape());
      if (!bitrate) return false;
      encode.bitrate = bitrate->number;
    }
    if (!arguments_.gop.empty()) {
      const auto gop = scalar("--gop", arguments_.gop, gop_shape());
      if (!gop) return false;
      encode.gop = gop->microseconds();
    }
    if (!pixel_format(encode.format) || !picture(encode.picture)) return false;
    if (!overlay(encode.overlays)) return false;
    ColorOverride& color = encode.color;
    if (!name(arguments_.matrix, "--matrix", "bt601, bt709, bt2020", matrix_from_name,
              color.matrix) ||
        !name(arguments_.range, "--range", "limited, full", range_from_name, color.range) ||
        !name(arguments_.siting, "--siting", "left, center, topleft", siting_from_name,
              color.siting)) {
      return false;
    }
    feed_.encodes.push_back(std::move(encode));
    return true;
  }

  bool picture(PictureOptions& picture) {
    if (!arguments_.crop.empty()) {
      const auto crop = scalar("--crop", arguments_.crop, of(kImagePart));
      if (!crop) return false;
      picture.crop = image_part(*crop);
    }
    if (!arguments_.size.empty()) {
      const auto size = scalar("--size", arguments_.size, of(kSizeOrShape));
      if (!size) return false;
      picture.size = size_option(*size);
    }
    return true;
  }

  bool overlay(std::vector<OverlayOptions>& overlays) {
    if (arguments_.overlay_text.empty()) return true;
    const auto text = scalar("--overlay-text", arguments_.overlay_text, of(kLines));
    if (!text) return false;
    if (const auto why = ClockText::why_not(text->text)) return fail("--overlay-text " + *why);
    if (!is_utf8(text->text)) return fail("--overlay-text is not UTF-8");
    overlays.emplace_back().text = text->text;
    return true;
  }

  bool pixel_format(std::optional<PixelFormat>& target) {
    const std::string& text = arguments_.pixel_format;
    if (text.empty() || text == "auto") return true;
    const std::vector<std::string_view> formats = target_format_names();
    if (std::ranges::find(formats, text) == formats.end()) {
      return fail("--pixel-format " + text + ": not one of " + join(formats));
    }
    target = pixel_format_from_name(text);
    return true;
  }

  bool audio(EncodeOptions& encode) {
    const std::vector<std::string>& names = arguments_.audio;
    encode.copy_audio = names == std::vector<std::string>{"copy"};
    if (encode.copy_audio || names == std::vector<std::string>{"none"}) return true;
    if (!encoders("--audio", names, StreamKind::kAudio)) return false;
    for (const std::string& name : names) encode.audio_codecs.push_back({name});
    const auto problem = audio_not_held(encode, container_of(feed_.outputs.front()));
    const std::vector<std::string_view> shown(names.begin(), names.end());
    return known("--audio", join(shown), problem);
  }

  /// Fails unless at least one of the encoders is here, and the others might be.
  bool encoders(const char* option, const std::vector<std::string>& names, StreamKind kind) {
    const bool usable = std::ranges::any_of(
        names, [kind](const std::string& name) { return !unknown_encoder(name, kind, false); });
    return std::ranges::all_of(names, [&](const std::string& name) {
      return known(option, name, unknown_encoder(name, kind, usable));
    });
  }

  /// With --codec copy nothing is encoded, so every option for an encoder is a mistake.
  bool copy() {
    if (feed_.input.raw) {
      return fail("--codec copy: raw video is not compressed; name an encoder, such as rawvideo");
    }
    for (const auto& [option, given] :
         {std::pair{"--option", !arguments_.options.empty()},
          std::pair{"--bitrate", !arguments_.bitrate.empty()},
          std::pair{"--gop", !arguments_.gop.empty()},
          std::pair{"--pixel-format", !arguments_.pixel_format.empty()},
          std::pair{"--matrix", !arguments_.matrix.empty()},
          std::pair{"--range", !arguments_.range.empty()},
          std::pair{"--siting", !arguments_.siting.empty()},
          std::pair{"--crop", !arguments_.crop.empty()},
          std::pair{"--size", !arguments_.size.empty()},
          std::pair{"--overlay-text", !arguments_.overlay_text.empty()}}) {
      if (given) {
        return fail(std::string(option) +
                    " has no effect with --codec copy, which encodes nothing; leave one of the "
                    "two out");
      }
    }
    return true;
  }

  bool codecs(EncodeOptions& encode) {
    AvOptions options;
    for (const std::string& option : arguments_.options) {
      const std::size_t equals = option.find('=');
      if (equals == 0 || equals == std::string::npos) {
        return fail("--option " + option + ": not K=V");
      }
      options.push_back({option.substr(0, equals), option.substr(equals + 1)});
      register_option_secrets(options.back().key, options.back().value);
    }
    std::vector<std::string> names = arguments_.codecs;
    if (names.empty()) {
      // Raw frames for a container of raw frames, H.264 for every other.
      const AVOutputFormat* muxer = container_of(feed_.outputs.front()).muxer;
      const bool raw = muxer != nullptr && muxer->video_codec == AV_CODEC_ID_RAWVIDEO;
      if (!raw) options.insert(options.begin(), {"preset", "veryfast"});
      names.emplace_back(raw ? "rawvideo" : "libx264");
    }
    std::vector<std::string> here;
    for (const std::string& name : names) {
      if (name == "copy") return fail("--codec copy cannot be combined with an encoder");
      if (!unknown_encoder(name, StreamKind::kVideo, false)) here.push_back(name);
      encode.codecs.push_back({name, options});
    }
    if (!encoders("--codec", names, StreamKind::kVideo)) return false;
    std::vector<std::string> refusals;
    for (const AvOption& option : options) {
      if (auto refusal = refused_by_all(here, option)) refusals.push_back(*std::move(refusal));
    }
    return refusals.empty() || fail(std::move(refusals));
  }

  /// Why none of the encoders takes an option, which may be for one of them only.
  static std::optional<std::string> refused_by_all(const std::vector<std::string>& encoders,
                                                   const AvOption& option) {
    std::string refusals;
    for (const std::string& encoder : encoders) {
      const auto refusal = wrong_encoder_option(encoder, option);
      if (!refusal) return std::nullopt;
      refusals += (refusals.empty() ? " " : "; ") + *refusal;
    }
    return "--option " + option.key + refusals;
  }

  bool output() {
    OutputOptions output;
    output.name = "output";
    output.from = "main";
    if (!url(arguments_.output, "OUTPUT", true, output.url)) return false;
    if (arguments_.json && arguments_.output == "-") {
      return fail("--json and an OUTPUT of - both write to stdout; leave one of the two out");
    }
    output.format = arguments_.format;
    if (!output.format.empty() && !known("--format", output.format, unknown_muxer(output.format))) {
      return false;
    }
    const Container container = container_of(output);
    if (container.kind != OutputKind::kNull && container.muxer == nullptr) {
      return fail("OUTPUT " + redact(arguments_.output) +
                  " has no ending that names a container; use .mp4, .mkv, .ts or another known "
                  "one, or give --format");
    }
    const bool writes_files =
        container.kind == OutputKind::kFile || container.kind == OutputKind::kPlaylist;
    if (writes_files && container.local &&
        !known("OUTPUT", redact(arguments_.output), wrong_file_path(container.url))) {
      return false;
    }
    feed_.outputs.push_back(std::move(output));
    return true;
  }

  const TranscodeArguments& arguments_;
  FeedOptions feed_;
  TranscodeProblem problem_;
};

}  // namespace

std::variant<FeedOptions, TranscodeProblem> transcode_feed(const TranscodeArguments& arguments) {
  return FeedBuilder(arguments).build();
}

}  // namespace framelane
