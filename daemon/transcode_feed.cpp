extern "C" {
#include <libavformat/avformat.h>
}

#include <charconv>

#include "daemon/commands.hpp"
#include "pipeline/redact.hpp"

namespace framelane {
namespace {

/// One feed called "transcode", built up from the arguments; the first problem ends it.
class FeedBuilder {
 public:
  explicit FeedBuilder(const TranscodeArguments& arguments) : arguments_(arguments) {}

  std::optional<FeedOptions> build(std::string& problem) {
    if (input() && encode() && output()) {
      feed_.name = "transcode";
      feed_.ring = arguments_.ring;
      feed_.lanes = arguments_.lanes;
      feed_.once = true;
      // A live source cannot wait; everything else is converted whole.
      feed_.on_full = OnFull::kAuto;
      return std::move(feed_);
    }
    problem = problem_;
    return std::nullopt;
  }

 private:
  bool fail(std::string problem) {
    problem_ = std::move(problem);
    return false;
  }

  bool url(const std::string& text, std::string& target) {
    const std::optional<std::string> expanded = expand_variables(text, {}, problem_);
    if (!expanded) return false;
    target = *expanded;
    register_url_secrets(target);
    return true;
  }

  bool duration(const std::string& text, const char* option,
                std::optional<std::chrono::microseconds>& target) {
    if (text.empty()) return true;
    target = parse_duration(text);
    return target || fail(std::string(option) + " " + text + ": not a duration like 500ms or 10s");
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
    if (!url(arguments_.input, input.url)) return false;
    input.format = arguments_.input_format;
    // Whoever writes to stdin may take its time; an interrupt ends the wait.
    if (input.url == "-" || input.url == "pipe:0") input.timeout = std::chrono::hours(24);
    if (!duration(arguments_.duration, "--duration", input.duration)) return false;
    const bool raw_given = !arguments_.input_pixel_format.empty() ||
                           !arguments_.input_size.empty() || !arguments_.input_rate.empty();
    if (input.format.empty() && raw_given) input.format = "rawvideo";
    if (input.format == "rawvideo") return raw();
    return !raw_given || fail(
                             "--input-pixel-format, --input-size and --input-rate are for "
                             "--input-format rawvideo");
  }

  bool raw() {
    RawVideoOptions raw;
    if (arguments_.input_pixel_format.empty() || arguments_.input_size.empty()) {
      return fail(
          "raw video has no header: give --input-pixel-format and --input-size, and "
          "--input-rate unless it is 25");
    }
    raw.pixel_format = arguments_.input_pixel_format;
    const std::string& size = arguments_.input_size;
    const std::size_t cross = size.find('x');
    const char* end = size.data() + size.size();
    if (cross == std::string::npos ||
        std::from_chars(size.data(), size.data() + cross, raw.width).ptr != size.data() + cross ||
        std::from_chars(size.data() + cross + 1, end, raw.height).ptr != end || raw.width < 1 ||
        raw.height < 1) {
      return fail("--input-size " + size + ": not a size like 1920x1080");
    }
    if (!arguments_.input_rate.empty()) {
      const std::optional<Rational> rate = parse_frame_rate(arguments_.input_rate);
      if (!rate) {
        return fail("--input-rate " + arguments_.input_rate +
                    ": not a frame rate like 30 or 30000/1001");
      }
      raw.rate = *rate;
    }
    feed_.input.raw = raw;
    return true;
  }

  bool encode() {
    EncodeOptions encode;
    encode.name = "main";
    encode.copy_audio = arguments_.copy_audio;
    encode.copy_video = arguments_.codecs == std::vector<std::string>{"copy"};
    if (encode.copy_video && feed_.input.raw) {
      return fail("--codec copy: raw video is not compressed; name an encoder, rawvideo say");
    }
    if (!encode.copy_video && !codecs(encode)) return false;
    if (!arguments_.bitrate.empty()) {
      encode.bitrate = parse_bitrate(arguments_.bitrate);
      if (!encode.bitrate) {
        return fail("--bitrate " + arguments_.bitrate + ": not a rate like 2M or 800k");
      }
    }
    if (!duration(arguments_.gop, "--gop", encode.gop)) return false;
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

  bool codecs(EncodeOptions& encode) {
    AvOptions options;
    for (const std::string& option : arguments_.options) {
      const std::size_t equals = option.find('=');
      if (equals == 0 || equals == std::string::npos) {
        return fail("--option " + option + ": not K=V");
      }
      options.push_back({option.substr(0, equals), option.substr(equals + 1)});
    }
    for (const std::string& codec : arguments_.codecs) {
      if (codec == "copy") return fail("--codec copy stands alone");
      encode.codecs.push_back({codec, options});
    }
    if (encode.codecs.empty()) {
      // A raw file wants raw frames; everything else plays H.264.
      const AVOutputFormat* muxer =
          av_guess_format(arguments_.format.empty() ? nullptr : arguments_.format.c_str(),
                          arguments_.output.c_str(), nullptr);
      const bool raw = muxer != nullptr && muxer->video_codec == AV_CODEC_ID_RAWVIDEO;
      if (!raw) options.insert(options.begin(), {"preset", "veryfast"});
      encode.codecs.push_back({raw ? "rawvideo" : "libx264", options});
    }
    return true;
  }

  bool output() {
    OutputOptions output;
    output.name = "output";
    output.from = "main";
    if (!url(arguments_.output, output.url)) return false;
    if (arguments_.json && arguments_.output == "-") {
      return fail("--json and an OUTPUT of - both want stdout");
    }
    output.format = arguments_.format;
    feed_.outputs.push_back(std::move(output));
    return true;
  }

  const TranscodeArguments& arguments_;
  FeedOptions feed_;
  std::string problem_;
};

}  // namespace

std::optional<FeedOptions> transcode_feed(const TranscodeArguments& arguments,
                                          std::string& problem) {
  return FeedBuilder(arguments).build(problem);
}

}  // namespace framelane
