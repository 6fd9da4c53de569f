#include "daemon/tune_feeds.hpp"

#include <fmt/core.h>

extern "C" {
#include <libavutil/pixdesc.h>
}

#include <algorithm>
#include <functional>
#include <nlohmann/json.hpp>
#include <optional>

#include "kernels/scale_filter_names.hpp"
#include "pipeline/av/av_color.hpp"
#include "pipeline/av/av_rational.hpp"
#include "pipeline/base/failure.hpp"
#include "pipeline/encode/encode_plan.hpp"
#include "pipeline/feed/smaller_source.hpp"

namespace framelane {
namespace {

using Json = nlohmann::ordered_json;

FrameFormat raw_format(const InputOptions& input, const StreamShape& streams, TunedFeed& feed) {
  const RawVideoOptions& raw = *input.raw;
  const AVPixelFormat format = av_get_pix_fmt(raw.pixel_format.c_str());
  FrameFormat result;
  result.layout = layout_of(format).value();
  result.width = raw.width;
  result.height = raw.height;
  feed.rate = raw.rate;
  // Variables may have no value here.
  const bool no_size = raw.width == 0 || raw.height == 0;
  const bool no_rate = raw.rate.num == 0;
  if (no_size) {
    result.width = streams.width;
    result.height = streams.height;
  }
  if (no_rate) feed.rate = streams.rate;
  if (no_size && no_rate) {
    feed.assumed = "its size and rate are not known here and taken for --size and --rate";
  } else if (no_size || no_rate) {
    feed.assumed =
        fmt::format("its {0} is not known here and taken for --{0}", no_size ? "size" : "rate");
  }
  result.color = resolve_color(format, result.height, {}, input.color);
  return result;
}

FrameFormat stream_format(const InputOptions& input, const StreamShape& streams,
                          AVColorRange range) {
  FrameFormat result;
  result.layout = PixelFormat::kI420;
  result.width = streams.width;
  result.height = streams.height;
  result.color = resolve_color(AV_PIX_FMT_YUV420P, streams.height, {.range = range}, input.color);
  return result;
}

/// What is made of frames of that format for the encodes that decode, bypasses included.
std::vector<Conversion> conversions_of(const FeedOptions& options, FrameFormat format,
                                       const Rational& rate) {
  format.time_base = {rate.den, rate.num};
  format.frame_rate = to_av(rate);
  std::vector<Conversion> conversions;
  for (const EncodeOptions& encode : options.encodes) {
    if (encode.copy_video) continue;
    // The encoder is opened to learn what it takes, which its threads do not change. As for a live
    // source, it gets few of them; whether the source is live may show only when it is opened.
    const auto plan =
        make_encode_plan({.options = encode, .source = format, .feed = options.name, .live = true});
    conversions.push_back(conversion_between(format, plan->target, plan->scaling));
    conversions.back().overlaid = !encode.overlays.empty();
  }
  return conversions;
}

/// The same for a stream, in the range in which more of them convert.
std::vector<Conversion> stream_conversions(const FeedOptions& options, const StreamShape& streams) {
  const auto in_range = [&](AVColorRange range) {
    return conversions_of(options, stream_format(options.input, streams, range), streams.rate);
  };
  const auto converting = [](const std::vector<Conversion>& conversions) {
    return std::ranges::count_if(conversions, std::not_fn(is_identity));
  };
  std::vector<Conversion> limited = in_range(AVCOL_RANGE_MPEG);
  std::vector<Conversion> full = in_range(AVCOL_RANGE_JPEG);
  return converting(full) > converting(limited) ? full : limited;
}

/// Whether the shares of the picture that encodes show are those that they will show.
bool are_shares_known(const FeedOptions& options, const StreamShape& streams) {
  if (streams.size_is_stated || (options.input.raw && options.input.raw->width > 0)) return true;
  return std::ranges::all_of(options.encodes, [](const EncodeOptions& encode) {
    return encode.copy_video || (encode.picture.size && encode.picture.size->percent > 0);
  });
}

Json color_of(const ColorSpec& color) {
  return {to_string(color.matrix), to_string(color.range), to_string(color.siting)};
}

Json rect_of(const Rect& rect) { return {rect.x, rect.y, rect.width, rect.height}; }

Json scaling_of(const std::optional<Scaling>& scaling) {
  if (!scaling) return nullptr;
  const auto& [crop, target, place, filter, background, orientation] = *scaling;
  return {{"crop", rect_of(crop)},
          {"target", {target.width, target.height}},
          {"place", rect_of(place)},
          {"filter", kScaleFilterNames[static_cast<std::size_t>(filter)]},
          {"background", background},
          {"transposed", orientation.transposed},
          {"mirrored", orientation.mirrored},
          {"upside_down", orientation.upside_down}};
}

Json made_of(const std::vector<Conversion>& conversions) {
  Json list = Json::array();
  for (const Conversion& conversion : conversions) {
    list.push_back({{"target", info(conversion.target).name},
                    {"target_color", color_of(conversion.target_color)},
                    {"scaling", scaling_of(conversion.scaling)},
                    {"overlaid", conversion.overlaid}});
  }
  return list;
}

std::string name_of(const DeviceChoice& device) {
  switch (device.kind) {
    case DeviceChoice::Kind::kAuto:
      return "auto";
    case DeviceChoice::Kind::kCpu:
      return "cpu";
    case DeviceChoice::Kind::kCuda:
      break;
  }
  return device.gpu ? gpu_name(*device.gpu) : "cuda";
}

}  // namespace

TunedFeed tuned_feed(const FeedOptions& options, const StreamShape& streams) {
  TunedFeed feed;
  feed.name = options.name;
  try {
    if (options.input.raw && !layout_of(av_get_pix_fmt(options.input.raw->pixel_format.c_str()))) {
      feed.left_out = "its pixel format is not known here";
      return feed;
    }
    if (options.input.raw) {
      const FrameFormat format = raw_format(options.input, streams, feed);
      feed.conversions = conversions_of(options, format, feed.rate);
    } else {
      feed.conversions = stream_conversions(options, streams);
      feed.rate = streams.rate;
    }
    if (is_live(options.input) && are_shares_known(options, streams)) {
      feed.advice = smaller_source_advice(options, feed.conversions);
    }
    std::erase_if(feed.conversions, is_bypass);
    if (feed.conversions.empty()) {
      feed.left_out = "converts nothing, as far as the configuration tells";
    } else if (!options.input.raw) {
      feed.assumed = fmt::format(
          "its size, rate and colour show when it runs; taken for {}x{}, {} range", streams.width,
          streams.height, to_string(feed.conversions.front().source_color.range));
    }
  } catch (const FeedError& error) {
    feed.left_out = error.what();
  }
  return feed;
}

std::vector<std::string> own_settings(const Node& root, const std::string& feed) {
  std::vector<const Node*> layers{root.find({"feeds", feed})};
  if (layers[0] == nullptr) return {};
  if (const Node* profile = layers[0]->find("profile")) {
    layers.push_back(root.find({"profiles", profile->text}));
  }
  std::vector<std::string> result;
  for (const char* key : {"lanes", "ring", "slices"}) {
    for (const Node* layer : layers) {
      if (layer == nullptr || layer->find(key) == nullptr) continue;
      result.emplace_back(key);
      break;
    }
  }
  return result;
}

std::string tuned_feeds_json(const Config& config, const Node& root, const StreamShape& streams) {
  Json json{
      {"device", name_of(config.device)}, {"feeds", Json::array()}, {"left_out", Json::array()}};
  for (const FeedOptions& options : config.feeds) {
    const TunedFeed feed = tuned_feed(options, streams);
    if (!feed.left_out.empty()) {
      json["left_out"].push_back(feed.name + ": " + feed.left_out);
      continue;
    }
    const Conversion& any = feed.conversions.front();
    json["feeds"].push_back({{"name", feed.name},
                             {"width", any.width},
                             {"height", any.height},
                             {"source", info(any.source).name},
                             {"source_color", color_of(any.source_color)},
                             {"conversions", made_of(feed.conversions)},
                             {"rate", static_cast<double>(feed.rate.num) / feed.rate.den},
                             {"assumed", feed.assumed},
                             {"advice", feed.advice},
                             {"lanes", options.lanes},
                             {"ring", options.ring},
                             {"slices", options.slices.value_or(0)},
                             {"own", own_settings(root, feed.name)}});
  }
  return json.dump();
}

}  // namespace framelane
