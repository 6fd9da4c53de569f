#include <algorithm>
#include <optional>
#include <string>

#include "config/feed_checks.hpp"
#include "config/raw_formats.hpp"
#include "kernels/conversion.hpp"
#include "kernels/luma_histogram.hpp"
#include "pipeline/encode/picture_choice.hpp"
#include "pipeline/encode/target_choice.hpp"
#include "pipeline/feed/feed_options.hpp"

namespace framelane {
namespace {

/// Raw video is the one kind of source whose format is known before it is opened, so that an
/// impossible conversion of it is already a problem of the configuration.
void check_conversion(const ReadFeed& read, const EncodeOptions& encode, const Node& convert) {
  const InputOptions& input = read.feed.input;
  const RawVideoOptions& raw = *input.raw;
  const auto layout = raw_format_layout(raw.pixel_format);
  if (!layout || raw.width == 0) return;
  const auto add_problem = [&](const std::string& problem) {
    read.problems().add(convert,
                        "cannot be done for feed " + in_quotes(read.feed.name) + ": " + problem);
  };
  std::string problem;
  const auto picture = choose_picture(encode.picture, {raw.width, raw.height}, {1, 1}, problem);
  if (!picture) return add_problem(problem);
  if (!encode.format && !picture->scaling) return;
  // Without a format the part that is scaled can be checked all the same.
  const PixelFormatInfo& from = info(*layout);
  const bool transposed = picture->scaling && picture->scaling->orientation.transposed;
  const bool is_422 = from.chroma_half_width && !from.chroma_half_height;
  const PixelFormat same = from.rgb                              ? PixelFormat::kI444
                           : is_422 && transposed                ? PixelFormat::kI420
                           : from.plane_count == 1 && !from.gray ? PixelFormat::kI422
                                                                 : *layout;
  const PixelFormat format = encode.format.value_or(same);
  const auto yuv = [](const std::optional<Matrix>& matrix) {
    return matrix && *matrix != Matrix::kRgb ? *matrix : Matrix::kBt709;
  };
  Conversion conversion{raw.width, raw.height, *layout, {}, format, {}, picture->scaling};
  ColorSpec& source = conversion.source_color;
  source.matrix = info(*layout).rgb ? Matrix::kRgb : yuv(input.color.matrix);
  source.siting = input.color.siting.value_or(Siting::kLeft);
  ColorSpec& target = conversion.target_color;
  target.matrix = info(format).rgb ? Matrix::kRgb : yuv(encode.color.matrix);
  target.siting = encode.color.siting.value_or(source.siting);
  if (const auto reason = why_unsupported(conversion)) add_problem(*reason);
}

/// Reports keys that change nothing for want of another one. What comes from a layer below the last
/// one that speaks of `convert` is left alone: it may have its effect elsewhere.
void check_effects(const ReadFeed& read, const PictureOptions& picture, const Node& convert) {
  const auto report = [&](std::string_view key, const std::string& problem) {
    const Node* const node = convert.find(key);
    if (node == nullptr || node->path != convert.path + '.' + std::string(key)) return;
    read.problems().add(node->key_position, node->path, problem);
  };
  const auto gives = [&](std::string_view key) { return convert.find(key) != nullptr; };
  if (!gives("size")) {
    report("fit",
           "is how a picture gets into a size, and there is none; give size (100%: the picture's "
           "own), or remove it");
  }
  const Node* const fit = convert.find("fit");
  // A value that could not be read has a problem of its own.
  if (picture.fit == Fit::kCover || fit == nullptr || fit->text == "stretch") {
    report("background",
           "is the colour of bars, which only fit: contain makes; set that too, or remove it");
  }
  // A part and a turned picture may have their chroma brought to another place.
  const bool scales = gives("size") || gives("crop") || gives("rotate") || gives("flip") ||
                      picture.fit != Fit::kStretch;
  if (!scales) {
    report("filter", "has no effect, because the size stays; give size, or remove it");
  }
}

/// The layout that libx264 and libx265 get, or one with as few halved sides of chroma; nothing if
/// that depends on the source.
std::optional<PixelFormat> sure_format(const ReadFeed& read, const EncodeOptions& encode) {
  if (encode.format || !is_raw(read.feed)) return encode.format;
  const auto layout = raw_format_layout(read.feed.input.raw->pixel_format);
  if (!layout) return std::nullopt;
  const PixelFormatInfo& from = info(*layout);
  if (from.rgb) return PixelFormat::kI420;
  return from.chroma_half_width && !from.chroma_half_height ? PixelFormat::kI422 : *layout;
}

/// The size of the encode's pictures; a side is 0 if it is even, or depends on the source.
PictureSize sure_size(const ReadFeed& read, const PictureOptions& picture) {
  if (const auto& raw = read.feed.input.raw; raw && raw->width > 0) {
    std::string problem;  // which check_conversion() reports
    const auto choice = choose_picture(picture, {raw->width, raw->height}, {1, 1}, problem);
    return choice ? choice->size : PictureSize{};
  }
  if (picture.size) return {std::max(picture.size->width, 0), std::max(picture.size->height, 0)};
  if (!picture.crop) return {};
  const PictureSize crop = picture.crop->size();
  return picture.rotation % 180 == 0 ? crop : PictureSize{crop.height, crop.width};
}

/// Reports a size that none of the encoders takes, where that is sure without the source.
/// `convert`: null if the encode has none.
void check_size(const ReadFeed& read, const EncodeOptions& encode, const Node* convert) {
  const auto refuses = [](const CodecCandidate& codec) { return needs_whole_chroma(codec.name); };
  const Node* node =
      convert == nullptr ? nullptr : convert->find(encode.picture.size ? "size" : "crop");
  const bool is_of_source = node == nullptr;
  if (is_of_source && is_raw(read.feed)) node = read.node.find({"input", "size"});
  const auto format = sure_format(read, encode);
  if (node == nullptr || !format || !std::ranges::all_of(encode.codecs, refuses)) return;
  const PictureSize size = sure_size(read, encode.picture);
  const PictureSize larger = with_whole_chroma(size, *format);
  if (size == larger) return;
  const PictureSize smaller{size.width - (larger.width - size.width),
                            size.height - (larger.height - size.height)};
  const auto text = [](const PictureSize& of) {
    const auto side = [](int pixels) { return pixels == 0 ? "-2" : std::to_string(pixels); };
    return side(of.width) + 'x' + side(of.height);
  };
  const bool can_shrink =
      (size.width == 0 || smaller.width > 0) && (size.height == 0 || smaller.height > 0);
  read.problems().add(
      *node, "gives pictures of " + text(size) + ", and " + encode.codecs.front().name + " takes " +
                 std::string(info(*format).name) + " only with an even width" +
                 (info(*format).chroma_half_height ? " and height" : "") + ", such as " +
                 (can_shrink ? text(smaller) + " or " : "") + text(larger) +
                 (is_of_source ? ": give encode " + in_quotes(encode.name) + " of feed " +
                                     in_quotes(read.feed.name) + " a convert.size"
                               : std::string()));
}

void check_encode(const ReadFeed& read, const EncodeOptions& encode) {
  const Node* node = read.node.find({"encodes", encode.name});
  if (node == nullptr) return check_size(read, encode, nullptr);
  const bool raw = is_raw(read.feed);
  const Node* convert = node->find("convert");
  for (const Node* changes : {convert, node->find("overlay")}) {
    if (!encode.copy_video || changes == nullptr) continue;
    read.problems().add(changes->key_position, changes->path,
                        "has no effect with video: copy, which does not decode; remove one of the "
                        "two");
  }
  if (encode.copy_video && !read.feed.input.mask.empty()) {
    read.problems().add(*node->find("video"),
                        "is copy, and feed " + in_quotes(read.feed.name) +
                            " has a mask, which the camera's own stream would go around; give a "
                            "codec, or remove this encode from the feed with null");
  }
  if (encode.copy_video && raw) {
    read.problems().add(*node->find("video"),
                        "feed " + in_quotes(read.feed.name) +
                            " has raw video, which must be encoded; give a codec, "
                            "or remove this encode from the feed with null");
  }
  if (encode.copy_video) return;
  if (convert == nullptr) return check_size(read, encode, nullptr);
  if (!convert->is_map()) return;
  check_effects(read, encode.picture, *convert);
  check_size(read, encode, convert);
  if (raw) check_conversion(read, encode, *convert);
}

void check_analyse(const ReadFeed& read) {
  const Node* node = read.node.find("analyse");
  if (!read.feed.analyse || node == nullptr) return;
  const auto& encodes = read.feed.encodes;
  const auto first = std::ranges::find(encodes, false, &EncodeOptions::copy_video);
  const std::string feed = "feed " + in_quotes(read.feed.name);
  if (first == encodes.end()) {
    read.problems().add(*node, "needs frames, and every encode of " + feed +
                                   " copies packets, so that nothing is decoded; set analyse: "
                                   "false for it, or give an encode a codec");
  } else if (first->format && !has_luma(*first->format)) {
    read.problems().add(*node, "measures luma, and encode " + in_quotes(first->name) + " of " +
                                   feed + ", the first that decodes, has convert.format " +
                                   std::string(info(*first->format).name) +
                                   ", which has none; give it a YUV format, or set analyse: false");
  }
}

}  // namespace

void complete_encodes(const ReadFeed& read) {
  std::vector<EncodeOptions>& encodes = read.feed.encodes;
  if (encodes.empty()) {
    encodes.emplace_back();
    encodes.back().name = "main";
  }
  for (EncodeOptions& encode : encodes) {
    if (encode.copy_video || !encode.codecs.empty()) continue;
    encode.codecs.push_back({"libx264", {{"preset", "veryfast", false}}});
  }
  for (const EncodeOptions& encode : encodes) check_encode(read, encode);
  check_analyse(read);
}

}  // namespace framelane
