#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <numeric>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "config/feed_checks.hpp"
#include "config/name_checks.hpp"
#include "config/output_places.hpp"
#include "pipeline/encode/codec_options.hpp"
#include "pipeline/feed/feed_options.hpp"
#include "pipeline/output/container.hpp"
#include "pipeline/output/hls_options.hpp"
#include "pipeline/output/rendition_group.hpp"

namespace framelane {
namespace {

using std::chrono::microseconds;

/// "2" or "1/3".
std::string text_of(std::int64_t num, std::int64_t den) {
  const std::int64_t divisor = std::gcd(num, den);
  const std::string whole = std::to_string(num / divisor);
  return divisor == den ? whole : whole + '/' + std::to_string(den / divisor);
}

/// Checks an output with several encodes, and makes an output of each of them. `node` is the map it
/// was read from.
class Renditions {
 public:
  Renditions(const ReadFeed& read, const Node& node, const OutputOptions& output,
             OutputPlaces& places)
      : read_(read),
        node_(node),
        from_(*node.find("from")),
        output_(output),
        problems_(read.problems()),
        places_(places) {}

  std::vector<OutputOptions> make() {
    const bool named = find_encodes();
    const bool placed = check_url();
    const bool optioned = check_options();
    if (!named || !placed || !optioned) return {};
    check_keyframes();
    // Sound is written once, for all.
    const auto sound = std::ranges::find_if(encodes_, &EncodeOptions::wants_audio);
    const auto only = sound == encodes_.end() ? std::nullopt : std::optional(StreamKind::kVideo);
    std::vector<OutputOptions> outputs;
    for (std::size_t i = 0; i < encodes_.size(); ++i) {
      const std::string& name = encodes_[i]->name;
      if (only && name == kSoundFolder) {
        problems_.add(*items_[i], "takes encode " + in_quotes(name) +
                                      ", and the renditions' sound has the folder of that name; "
                                      "give the encode another name");
        continue;
      }
      outputs.push_back(rendition(name, name, only));
    }
    if (only) outputs.push_back(rendition((*sound)->name, kSoundFolder, StreamKind::kAudio));
    for (OutputOptions& output : outputs) check_output(read_, node_, output, places_);
    return outputs;
  }

 private:
  static constexpr std::string_view kSoundFolder = "audio";

  OutputOptions rendition(const std::string& encode, std::string_view folder,
                          std::optional<StreamKind> only) const {
    OutputOptions rendition = output_;
    rendition.from = encode;
    rendition.only = only;
    rendition.master = master_;
    const std::filesystem::path parent = std::filesystem::path(master_).parent_path();
    rendition.url = (parent / folder / "index.m3u8").string();
    return rendition;
  }

  /// False if it is not known which encodes are meant.
  bool find_encodes() {
    std::vector<std::string_view> names;
    for (const EncodeOptions& encode : read_.feed.encodes) names.emplace_back(encode.name);
    bool found = true;
    for (const Node& item : from_.items) {
      const auto value = read_.reader.scalar(item, of(kIdentifier));
      const auto encode =
          value ? std::ranges::find(read_.feed.encodes, value->text, &EncodeOptions::name)
                : read_.feed.encodes.end();
      found = found && encode != read_.feed.encodes.end();
      if (!value) continue;
      if (encode == read_.feed.encodes.end()) {
        problems_.add(item, "feed " + in_quotes(read_.feed.name) + " has no encode " +
                                in_quotes(item.text) + "; it has: " + join(names));
      } else if (std::ranges::find(encodes_, &*encode) != encodes_.end()) {
        problems_.add(item,
                      "names encode " + in_quotes(item.text) + " again; remove one of the two");
        found = false;
      } else {
        encodes_.push_back(&*encode);
        items_.push_back(&item);
      }
    }
    if (from_.items.size() < 2) {
      problems_.add(
          from_,
          "is a list, for renditions of one master playlist, with fewer than two encodes; "
          "add another one, or write from: " +
              (encodes_.empty() ? std::string(names.front()) : encodes_.front()->name));
    }
    return found && from_.items.size() >= 2;
  }

  /// False if the place of the master playlist is not known.
  bool check_url() {
    const Node* url = node_.find("url");
    if (url == nullptr) {
      problems_.add_missing(node_, "url", "say where to write the master playlist, ending .m3u8");
      return false;
    }
    if (output_.url.empty() || !read_.reader.is_certain(*url)) return false;
    const Container container = container_of(output_);
    if (container.kind != OutputKind::kPlaylist || !container.local) {
      problems_.add(
          *url,
          "takes several encodes, which only an HLS playlist in a folder can: write a path that "
          "ends with .m3u8, such as /srv/hls/${feed}/master.m3u8, or let from name one encode");
      return false;
    }
    if (const auto problem = time_in_playlist_path(container.url)) {
      problems_.add(*url, *problem);
      return false;
    }
    master_ = container.url;
    const std::string self =
        "output " + in_quotes(output_.name) + " of feed " + in_quotes(read_.feed.name);
    const std::string& owner = places_.take(full_path(master_), self);
    if (owner != self) {
      problems_.add(*url, self + " would write to the same place as " + owner +
                              "; put ${feed} or ${output} into the url");
    }
    return true;
  }

  /// False if an option would give several playlists the same names, or has no effect on them.
  bool check_options() {
    constexpr std::array<std::string_view, 3> kOfOnePlaylist{"hls_segment_filename", "hls_base_url",
                                                             "hls_playlist_type"};
    const Node* options = node_.find("options");
    if (options == nullptr) return true;
    bool right = true;
    for (const std::string_view key : kOfOnePlaylist) {
      const Node* option = options->find(key);
      if (option == nullptr) continue;
      right = false;
      problems_.add(option->key_position, option->path,
                    "is for a single playlist, and from has several encodes, each with a folder "
                    "of its own; remove it");
    }
    const Node* flags = options->find("hls_flags");
    if (flags == nullptr || flags->kind != Node::Kind::kScalar || !read_.reader.is_certain(*flags))
      return right;
    for (const std::string_view flag : {"independent_segments", "program_date_time"}) {
      if (flags->text.find('-' + std::string(flag)) == std::string::npos) continue;
      right = false;
      problems_.add(*flags, "takes away the flag " + std::string(flag) +
                                ", which renditions always have, so that players can go from one "
                                "to another; remove it");
    }
    return right;
  }

  /// Segments are cut at the same times in all renditions.
  void check_keyframes() {
    const Node* gop = nullptr;
    for (std::size_t i = 0; i < encodes_.size(); ++i) {
      const EncodeOptions& encode = *encodes_[i];
      const std::string name = "encode " + in_quotes(encode.name);
      gop = read_.node.find({"encodes", encode.name, "video", "gop"});
      if (gop != nullptr && !read_.reader.is_certain(*gop)) continue;
      if (encode.copy_video) {
        problems_.add(*items_[i], "takes " + name +
                                      ", which copies: its keyframes are where the camera has "
                                      "them, and renditions need them at the same times; take one "
                                      "that encodes");
      } else if (!encode.gop) {
        problems_.add(*items_[i], "takes " + name +
                                      ", which does not say when keyframes come; give it a gop, "
                                      "such as gop: 2s");
      } else if (encodes_.front()->gop && encode.gop != encodes_.front()->gop) {
        problems_.add(*items_[i], "takes " + name + " with another gop than encode " +
                                      in_quotes(encodes_.front()->name) +
                                      "; renditions need keyframes at the same times: give both "
                                      "the same gop");
      } else if (const auto no_video = video_not_held(encode, container_of(output_))) {
        problems_.add(*items_[i], "takes " + name + ", " + *no_video);
      } else if (const auto codec = codec_that_counts_frames(encode)) {
        problems_.add(*items_[i], "takes " + name + ", whose codec " + *codec + ' ' +
                                      std::string(kNoRendition));
      } else {
        check_rate(i);
      }
    }
  }

  /// Every segment has to begin with a frame of every rendition. They do if each gop has a frame.
  /// With a lower rate, a frame comes near each multiple of 1 / rate (RateLimit): then a segment
  /// has to be a multiple of that. Requires a gop.
  void check_rate(std::size_t i) {
    constexpr std::int64_t kSecond = std::micro::den;
    constexpr std::int64_t kLongestTime = 3600 * kSecond;  // that hls_time takes
    const EncodeOptions& encode = *encodes_[i];
    const Node* rate = read_.node.find({"encodes", encode.name, "convert", "rate"});
    const auto hls_time = hls_time_of();
    if (!encode.rate || !hls_time || (rate != nullptr && !read_.reader.is_certain(*rate))) return;
    const std::int64_t gop = encode.gop->count();
    const std::int64_t segment = RenditionGroup::slot_length(*hls_time, *encode.gop).count();
    const std::int64_t den = encode.rate->den * kSecond;
    if (gop * encode.rate->num >= den || segment * encode.rate->num % den == 0) return;
    const std::int64_t frames = segment * encode.rate->num / den + 1;
    std::string remedy = "give it a rate of " + text_of(frames * kSecond, segment);
    // The next time that is both a multiple of 1 / rate and whole seconds.
    const std::int64_t groups = den / std::gcd(gop * encode.rate->num, den);
    if (groups <= kLongestTime / gop) {
      const std::int64_t step = std::lcm(groups * gop, kSecond);
      const std::int64_t time = (segment + step - 1) / step * step;
      if (time <= kLongestTime) {
        remedy += ", or the output options: {hls_time: " + std::to_string(time / kSecond) + "}";
      }
    }
    problems_.add(*items_[i], "takes encode " + in_quotes(encode.name) + " with a rate of " +
                                  text_of(encode.rate->num, encode.rate->den) +
                                  ", and not every segment of " + kDuration.format(segment) +
                                  " would begin with one of its frames; " + remedy);
  }

  /// Nothing if it is not known, or wrong and reported elsewhere.
  std::optional<microseconds> hls_time_of() const {
    const auto option = std::ranges::find(output_.options, "hls_time", &AvOption::key);
    if (option == output_.options.end()) return HlsOptions().time;
    const Node& node = *node_.find("options")->find(option->key);
    if (!read_.reader.is_certain(node) || wrong_hls_value(*option)) return {};
    return read_hls_options(output_.name, {*option}).time;
  }

  /// The first of the encode's codecs that cannot be asked for keyframes. One that can would not
  /// help: without it, as on a machine without its GPU, the encode would be down.
  static std::optional<std::string> codec_that_counts_frames(const EncodeOptions& encode) {
    const auto counts_frames = [](const CodecCandidate& candidate) {
      return !takes_keyframe_requests(candidate.name);
    };
    const auto found = std::ranges::find_if(encode.codecs, counts_frames);
    return found == encode.codecs.end() ? std::nullopt : std::optional(found->name);
  }

  const ReadFeed& read_;
  const Node& node_;
  const Node& from_;
  const OutputOptions& output_;
  Problems& problems_;
  OutputPlaces& places_;
  std::string master_;
  std::vector<const EncodeOptions*> encodes_;
  std::vector<const Node*> items_;  // that name them
};

}  // namespace

std::vector<OutputOptions> make_renditions(const ReadFeed& read, const Node& node,
                                           const OutputOptions& output, OutputPlaces& places) {
  return Renditions(read, node, output, places).make();
}

}  // namespace framelane
