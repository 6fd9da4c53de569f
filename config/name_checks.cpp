#include "config/name_checks.hpp"

#include <sys/un.h>

#include <algorithm>
#include <array>

#include "config/problems.hpp"
#include "pipeline/base/av_option.hpp"
#include "pipeline/base/redact.hpp"
#include "pipeline/base/url.hpp"
#include "pipeline/encode/encode_options.hpp"
#include "pipeline/output/container.hpp"
#include "pipeline/packets/media.hpp"
#include "pipeline/source/input_options.hpp"

namespace framelane {
namespace {

bool contains(const AvNames& names, std::string_view name) {
  return std::ranges::find(names, name) != names.end();
}

/// The end of a message: names that may have been meant, or `otherwise`.
std::string hint(std::string_view word, const AvNames& known, const std::string& otherwise) {
  constexpr std::size_t kShortest = 3;
  constexpr std::size_t kMost = 4;
  AvNames holding;  // libx264 for the word x264
  for (const std::string_view name : known) {
    const bool holds = word.size() >= kShortest && name.find(word) != std::string_view::npos;
    if (holds && holding.size() < kMost) holding.push_back(name);
  }
  if (!holding.empty()) return "; perhaps " + join(holding);
  const std::string_view guess = nearest(word, known);
  return "; " + (guess.empty() ? otherwise : "did you mean " + in_quotes(guess) + "?");
}

enum class Port {
  kHasDefault,
  kNeeded,
  kDatagram,  ///< FFmpeg listens at any port if the URL of an input names none
};
struct PeerScheme {
  std::string_view name;
  Port port;
};
constexpr auto kPeerSchemes = std::to_array<PeerScheme>({
    {"ftp", Port::kHasDefault},     {"http", Port::kHasDefault},   {"https", Port::kHasDefault},
    {"icecast", Port::kHasDefault}, {"mmsh", Port::kHasDefault},   {"mmst", Port::kHasDefault},
    {"rtmp", Port::kHasDefault},    {"rtmpe", Port::kHasDefault},  {"rtmps", Port::kHasDefault},
    {"rtmpt", Port::kHasDefault},   {"rtmpte", Port::kHasDefault}, {"rtmpts", Port::kHasDefault},
    {"rtsp", Port::kHasDefault},    {"rtsps", Port::kHasDefault},  {"sftp", Port::kHasDefault},
    {"srt", Port::kNeeded},         {"tcp", Port::kNeeded},        {"tls", Port::kNeeded},
    {"rtp", Port::kDatagram},       {"udp", Port::kDatagram},      {"udplite", Port::kDatagram},
});

/// True if the URL's parameters, or options, may say where or that FFmpeg listens.
bool may_listen(const std::string& url, const AvOptions& options) {
  constexpr std::array<std::string_view, 4> kNames{"listen", "localport", "mode", "rtsp_flags"};
  return url.find('?') != std::string::npos || std::ranges::any_of(options, [&](const auto& one) {
           return std::ranges::find(kNames, one.key) != kNames.end();
         });
}

}  // namespace

std::optional<std::string> unknown_encoder(const std::string& name, StreamKind kind, bool others) {
  const AvNames known = encoder_names(kind);
  if (contains(known, name)) return std::nullopt;
  if (is_optional_encoder(name, kind)) {
    if (others) return std::nullopt;
    return "is an encoder that this FFmpeg was built without, and no other is named; add one";
  }
  const AvNames of_codec = encoder_names_for(name, kind);
  if (!of_codec.empty()) {
    return "is a codec and not an encoder; name one of its encoders: " + join(of_codec);
  }
  const bool video = kind == StreamKind::kVideo;
  return std::string("is not ") + (video ? "a video" : "an audio") + " encoder of this FFmpeg" +
         hint(name, known, video ? "framelane devices lists them" : "ffmpeg -encoders lists them");
}

std::optional<std::string> unknown_muxer(const std::string& name) {
  const AvNames known = muxer_names();
  if (contains(known, name)) return std::nullopt;
  return "is not a container of this FFmpeg" + hint(name, known, "ffmpeg -muxers lists them");
}

std::optional<std::string> unknown_demuxer(const std::string& name) {
  const AvNames known = demuxer_names();
  // FFmpeg also accepts a list of names ("mov,mp4").
  if (contains(known, std::string_view(name).substr(0, name.find(',')))) return std::nullopt;
  return "is not a demuxer of this FFmpeg" + hint(name, known, "ffmpeg -demuxers lists them");
}

std::optional<std::string> unknown_decoder(const std::string& name) {
  const AvNames known = decoder_names();
  if (contains(known, name)) return std::nullopt;
  return "is not a decoder of this FFmpeg" + hint(name, known, "ffmpeg -decoders lists them");
}

std::optional<std::string> unknown_protocol(const std::string& name) {
  const AvNames known = scheme_names(false);
  if (contains(known, name)) return std::nullopt;
  return "is not a protocol that this FFmpeg reads from" +
         hint(name, known, "ffmpeg -protocols lists them");
}

std::optional<std::string> audio_not_held(const EncodeOptions& encode, const Container& container) {
  const std::string held = audio_encoder_for(container);
  const bool one_is_held = std::ranges::any_of(
      encode.audio_codecs,
      [&](const CodecCandidate& codec) { return holds_audio_of(codec.name, container); });
  if (!encode.transcodes_audio() || held.empty() || one_is_held) return std::nullopt;
  return "is nothing that players can read in " + std::string(container.muxer->name) + "; use " +
         held;
}

std::optional<std::string> video_not_held(const EncodeOptions& encode, const Container& container) {
  if (container.kind != OutputKind::kPlaylist) return std::nullopt;
  for (const CodecCandidate& codec : encode.codecs) {
    const auto why = why_no_video_of(codec.name, container);
    if (why) return "whose codec " + codec.name + " is nothing for it: " + *why;
  }
  return std::nullopt;
}

std::optional<std::string> unknown_scheme(const std::string& url, bool output) {
  std::string scheme = url_scheme(url);
  if (!url.starts_with(scheme)) {
    return "begins with " + in_quotes(url.substr(0, scheme.size() + 1)) +
           ", and FFmpeg knows schemes in lower case only; write " + scheme + ":";
  }
  scheme.resize(std::min(scheme.find('+'), scheme.size()));  // of crypto+file:, hls+http:
  const AvNames known = scheme_names(output);
  if (scheme.empty() || contains(known, scheme)) return std::nullopt;
  return "begins with " + in_quotes(scheme + ":") + ", which this FFmpeg cannot " +
         (output ? "write to" : "read from") +
         hint(scheme, known, "write a file of that name as file:NAME");
}

std::optional<std::string> wrong_address(const std::string& url, const AvOptions& options,
                                         bool output) {
  constexpr int kLargestPort = 65535;
  const std::string scheme = url_scheme(url);
  const auto* const known = std::ranges::find(kPeerSchemes, scheme, &PeerScheme::name);
  if (known == kPeerSchemes.end()) return std::nullopt;
  const PeerAddress peer = peer_address(url);
  const bool sends = output && known->port == Port::kDatagram;
  const bool needs_port = known->port == Port::kNeeded || sends;
  const bool may_be_0 = known->port == Port::kDatagram && !output;
  if (peer.port > kLargestPort || (peer.port == 0 && !may_be_0)) {
    return "names a port that is none; use 1 to " + std::to_string(kLargestPort) +
           ", and write the characters / ? # @ of a password as %2F %3F %23 %40";
  }
  // With a port alone FFmpeg listens there, or connects to this machine.
  const bool lacks_host = peer.host.empty() && (sends || peer.port < 0);
  if (lacks_host && (needs_port || !may_listen(url, options))) {
    return "names no host; write " + scheme + "://HOST" +
           (known->port == Port::kHasDefault ? "/" : ":PORT");
  }
  if (needs_port && peer.port < 0) {
    return "names no port, which " + scheme + " needs; write " + scheme + "://HOST:PORT";
  }
  return std::nullopt;
}

std::optional<std::string> wrong_input_url(const std::string& url, const AvOptions& options) {
  constexpr std::size_t kLongest = sizeof(sockaddr_un::sun_path) - 1;
  const auto socket = shm_socket(url);
  if (!socket) {
    auto wrong = unknown_scheme(url, false);
    return wrong ? wrong : wrong_address(url, options, false);
  }
  if (socket->empty()) return "names no socket; write shm:/PATH/OF/SOCKET";
  if (socket->size() <= kLongest) return std::nullopt;
  return "names a socket by a path of " + std::to_string(socket->size()) +
         " bytes, and Linux takes " + std::to_string(kLongest) + "; use a shorter path";
}

std::optional<std::string> wrong_file_path(std::string_view path) {
  // Linux's limits, without the NUL at a path's end (PATH_MAX, NAME_MAX in limits.h).
  constexpr std::size_t kLongestPath = 4095;
  constexpr std::size_t kLongestName = 255;
  // While a file is written its name is longer: NAME.2147483647.mp4.part.
  constexpr std::size_t kAdded = 16;
  const std::string_view name = path.substr(path.rfind('/') + 1);  // npos + 1: all of it
  if (name.empty() || name == "." || name == "..") {
    return "names a folder; add the name of a file";
  }
  if (path.size() + kAdded > kLongestPath) {
    return "has " + std::to_string(path.size()) + " bytes, and a path may have " +
           std::to_string(kLongestPath - kAdded) + "; shorten it";
  }
  for (std::size_t begin = 0; begin < path.size();) {
    const std::size_t end = std::min(path.find('/', begin), path.size());
    const std::size_t most = end == path.size() ? kLongestName - kAdded : kLongestName;
    if (end - begin > most) {
      return "has a name of " + std::to_string(end - begin) +
             " bytes between two slashes or at its end, and a name may have " +
             std::to_string(most) + " there; shorten it";
    }
    begin = end + 1;
  }
  return std::nullopt;
}

std::optional<std::string> wrong_encoder_option(const std::string& encoder,
                                                const AvOption& option) {
  if (auto unknown = unknown_option(option.key, encoder_option_names(encoder), encoder)) {
    return *unknown +
           (unknown->ends_with('?') ? "" : "; ffmpeg -h encoder=" + encoder + " lists them");
  }
  if (const auto why = why_value_refused(encoder, option)) {
    return "is refused by " + encoder + ": " + redact(*why);
  }
  return std::nullopt;
}

std::optional<std::string> unknown_option(const std::string& name, const AvNames& known,
                                          const std::string& owner) {
  if (contains(known, name)) return std::nullopt;
  const std::string_view guess = nearest(name, known);
  return "is not an option of " + owner +
         (guess.empty() ? "" : "; did you mean " + in_quotes(guess) + "?");
}

}  // namespace framelane
