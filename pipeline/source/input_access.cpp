#include "pipeline/source/input_access.hpp"

extern "C" {
#include <libavformat/avio.h>
#include <libavutil/avstring.h>
}

#include <arpa/inet.h>
#include <netdb.h>
#include <netinet/in.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cstdint>
#include <cstring>
#include <string_view>

#include "pipeline/av/device_formats.hpp"
#include "pipeline/base/redact.hpp"
#include "pipeline/base/url.hpp"

namespace framelane {
namespace {

using NameList = std::vector<std::string>;

constexpr std::string_view kDefault = "default";
constexpr std::string_view kAll = "all";

/// What a file may name: itself local.
constexpr std::string_view kLocalProtocols = "file,crypto,data";
constexpr std::string_view kPipeProtocols = "crypto,data";
/// What an answer over HTTP may name. `crypto` and `data` are how HLS encrypts segments, and puts
/// keys into playlists.
constexpr std::string_view kWebProtocols = "http,https,crypto,data";
/// Protocols that read what this machine has, or what their URL names inside itself.
constexpr std::array<std::string_view, 10> kLocalSchemes{
    "file", "pipe", "fd", "concat", "concatf", "subfile", "crypto", "cache", "async", "data"};
/// Protocols of which no answer names another address.
constexpr std::array<std::string_view, 10> kPlainPeers{"udp", "udplite", "rtp",  "srtp", "srt",
                                                       "tcp", "tls",     "sctp", "rist", "unix"};

/// Containers and streams of pictures and sound that contain no URLs.
constexpr std::string_view kMediaFormats =
    "aac,ac3,amr,asf,avi,av1,bmp_pipe,dhav,dv,eac3,flac,flv,gif,h261,h263,h264,hevc,image2,"
    "image2pipe,ivf,"
    "j2k_pipe,jpeg_pipe,jpegls_pipe,live_flv,m4v,matroska,mjpeg,mov,mp3,mpeg,mpegts,mpegvideo,"
    "mpjpeg,mxf,nut,obu,ogg,png_pipe,rtp,rtsp,vc1,vvc,wav,webp_pipe,webvtt,yuv4mpegpipe";
constexpr std::string_view kPlaylistFormats = ",hls,dash";

/// The codecs of cameras, encoders, broadcasters and the web. Not those of old games and tools,
/// which few people look after.
constexpr std::string_view kNetworkDecoders =
    "av1,bmp,cfhd,dnxhd,dvvideo,ffv1,ffvhuff,flv,gif,h261,h263,h263i,h263p,h264,hevc,huffyuv,"
    "jpeg2000,jpegls,libaom-av1,libdav1d,libopenjpeg,libvpx,libvpx-vp9,mjpeg,mpeg1video,mpeg2video,"
    "mpeg4,mpegvideo,msmpeg4,msmpeg4v1,msmpeg4v2,png,prores,rawvideo,theora,utvideo,v210,vc1,vp8,"
    "vp9,vvc,webp,wmv1,wmv2,wmv3,"
    "aac,aac_fixed,aac_latm,ac3,ac3_fixed,adpcm_ima_wav,adpcm_ms,alac,amrnb,amrwb,dca,eac3,flac,"
    "g722,g723_1,g726,g726le,g729,libopus,libspeex,libvorbis,mlp,mp1,mp1float,mp2,mp2float,mp3,"
    "mp3float,nellymoser,opus,pcm_alaw,pcm_bluray,pcm_dvd,pcm_f32be,pcm_f32le,pcm_f64be,pcm_f64le,"
    "pcm_mulaw,pcm_s16be,pcm_s16le,pcm_s24be,pcm_s24le,pcm_s32be,pcm_s32le,pcm_s8,pcm_u8,speex,"
    "truehd,vorbis,wmapro,wmav1,wmav2";

/// The protocols that others are carried by.
struct Carried {
  std::string_view protocol;
  std::string_view by;
};
constexpr std::string_view kRtspBy = "rtp,srtp,udp,tcp,tls,http,https,httpproxy";
constexpr auto kCarried = std::to_array<Carried>({
    {"http", "tcp,httpproxy"},
    {"https", "tls,tcp,httpproxy"},
    {"rtsp", kRtspBy},
    {"rtsps", kRtspBy},
    {"satip", kRtspBy},
    {"rtp", "udp"},
    {"srtp", "rtp,udp"},
    {"tls", "tcp"},
    {"rtmp", "tcp"},
    {"rtmps", "tls,tcp"},
    {"rtmpt", "ffrtmphttp,http,tcp"},
    {"rtmpts", "ffrtmphttp,https,tls,tcp"},
    {"rtmpe", "ffrtmpcrypt,tcp"},
    {"rtmpte", "ffrtmpcrypt,ffrtmphttp,http,tcp"},
    {"ftp", "tcp"},
    {"gopher", "tcp"},
    {"gophers", "tls,tcp"},
    {"mmsh", "http,tcp"},
    {"mmst", "tcp"},
    {"ipfs", "http,https,tls,tcp"},
    {"ipns", "http,https,tls,tcp"},
});

bool contains_name(const auto& names, std::string_view name) {
  return std::ranges::find(names, name) != names.end();
}

void add_name(NameList& names, std::string_view name) {
  if (!contains_name(names, name)) names.emplace_back(name);
}

NameList split_at(std::string_view text, char separator) {
  NameList parts;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find(separator), text.size());
    if (end > 0) parts.emplace_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return parts;
}

std::string join_names(const NameList& names) {
  std::string text;
  for (const std::string& name : names) text.append(text.empty() ? "" : ",").append(name);
  return text;
}

/// The protocols of a URL: its own, those that it is combined with (crypto+http:), and those of the
/// URLs in it (concat:A|B, async:A, subfile,,start,0,end,9,,:A).
void add_protocols_of(std::string_view url, NameList& names) {
  constexpr std::string_view kSubfile = "subfile,";
  if (url.starts_with(kSubfile)) {
    add_name(names, "subfile");
    const std::size_t end = url.find(",,:", kSubfile.size());
    if (end != std::string_view::npos) add_protocols_of(url.substr(end + 3), names);
    return;
  }
  const std::string scheme = url_scheme(url);
  if (scheme.empty()) return add_name(names, "file");
  const NameList combined = split_at(scheme, '+');
  for (const std::string& name : combined) add_name(names, name);
  const std::string_view rest = url.substr(scheme.size() + 1);
  if (scheme == "concat") {
    for (const std::string& part : split_at(rest, '|')) add_protocols_of(part, names);
  } else if (scheme == "async" || scheme == "cache" || scheme == "crypto" || scheme == "concatf") {
    add_protocols_of(rest, names);
  }
}

/// The names of a list as written, with those of `defaults` in place of "default". Nothing: all. So
/// are no defaults.
std::optional<NameList> names_of(const NameList& written, const std::optional<NameList>& defaults) {
  if (written.empty()) return defaults;
  NameList names;
  for (const std::string& name : written) {
    if (name == kAll || (name == kDefault && !defaults)) return std::nullopt;
    if (name != kDefault) add_name(names, name);
    if (name == kDefault) {
      for (const std::string& one : *defaults) add_name(names, one);
    }
  }
  return names;
}

std::string every_protocol() {
  NameList names;
  void* position = nullptr;
  while (const char* name = avio_enum_protocols(&position, 0)) names.emplace_back(name);
  return join_names(names);
}

/// "input.protocols: [default, file] allows it"
std::string remedy(std::string_view key, const NameList& written, std::string_view name) {
  NameList list = written;
  if (list.empty()) list.emplace_back(kDefault);
  list.emplace_back(name);
  std::string text = "input." + std::string(key) + ": [";
  for (std::size_t i = 0; i < list.size(); ++i) text.append(i > 0 ? ", " : "").append(list[i]);
  return text + "] allows it";
}

/// A URL from the network, for a message.
std::string shown(const std::string& url) {
  constexpr std::size_t kLongest = 200;
  std::string text = redact(url);
  if (text.size() > kLongest) text.replace(kLongest, std::string::npos, "...");
  return text;
}

AddressKind kind_of_v4(std::uint32_t address) {
  constexpr std::uint32_t kLoopbackNet = 127;
  constexpr std::uint32_t kThisNet = 0;
  constexpr std::uint32_t kLinkLocalNet = 0xA9FE;  // 169.254
  if (address >> 24 == kLoopbackNet || address >> 24 == kThisNet) return AddressKind::kLoopback;
  return address >> 16 == kLinkLocalNet ? AddressKind::kLinkLocal : AddressKind::kOrdinary;
}

AddressKind kind_of_v6(const in6_addr& address) {
  if (IN6_IS_ADDR_LINKLOCAL(&address)) return AddressKind::kLinkLocal;
  if (IN6_IS_ADDR_LOOPBACK(&address) || IN6_IS_ADDR_UNSPECIFIED(&address)) {
    return AddressKind::kLoopback;
  }
  constexpr std::array<std::uint8_t, 12> kNat64{0, 0x64, 0xFF, 0x9B};  // RFC 6052, section 2.1
  const bool translated = std::memcmp(address.s6_addr, kNat64.data(), kNat64.size()) == 0;
  if (!IN6_IS_ADDR_V4MAPPED(&address) && !IN6_IS_ADDR_V4COMPAT(&address) && !translated) {
    return AddressKind::kOrdinary;
  }
  std::uint32_t v4 = 0;
  std::memcpy(&v4, address.s6_addr + kNat64.size(), sizeof v4);
  return kind_of_v4(ntohl(v4));
}

/// What a host of a URL says by itself. A name is ordinary whatever it resolves to, but for
/// localhost (RFC 6761, section 6.3). No host is this machine.
AddressKind kind_of_host(std::string host) {
  std::ranges::transform(host, host.begin(),
                         [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  if (host.ends_with('.')) host.pop_back();
  if (host.empty() || host == "localhost" || host.ends_with(".localhost")) {
    return AddressKind::kLoopback;
  }
  host.resize(std::min(host.find('%'), host.size()));  // the zone of fe80::1%eth0
  addrinfo numeric{};
  numeric.ai_flags = AI_NUMERICHOST;
  addrinfo* found = nullptr;
  if (::getaddrinfo(host.c_str(), nullptr, &numeric, &found) != 0) return AddressKind::kOrdinary;
  const AddressKind kind = kind_of(*found->ai_addr, found->ai_addrlen);
  ::freeaddrinfo(found);
  return kind;
}

std::string text_of(const sockaddr& address, std::size_t size) {
  std::array<char, NI_MAXHOST> text{};
  const int error = ::getnameinfo(&address, static_cast<socklen_t>(size), text.data(), text.size(),
                                  nullptr, 0, NI_NUMERICHOST);
  return error == 0 ? text.data() : "an address";
}

bool is_device_input(const InputOptions& input) {
  return device_of_scheme(url_scheme(input.url)) != nullptr ||
         device_format(input.format) != nullptr ||
         (input.format.empty() && names_v4l2_device(input.url));
}

bool describes_rtp(const InputOptions& input) {
  return input.format == "sdp" || (input.format.empty() && input.url.ends_with(".sdp"));
}

}  // namespace

AddressKind kind_of(const sockaddr& address, std::size_t size) {
  if (address.sa_family == AF_INET && size >= sizeof(sockaddr_in)) {
    sockaddr_in v4{};
    std::memcpy(&v4, &address, sizeof v4);
    return kind_of_v4(ntohl(v4.sin_addr.s_addr));
  }
  if (address.sa_family == AF_INET6 && size >= sizeof(sockaddr_in6)) {
    sockaddr_in6 v6{};
    std::memcpy(&v6, &address, sizeof v6);
    return kind_of_v6(v6.sin6_addr);
  }
  return AddressKind::kOrdinary;
}

InputAccess::InputAccess(const InputOptions& input) : input_(input) {
  const bool device = is_device_input(input);
  NameList own;
  if (!device) add_protocols_of(input.url == "-" ? "pipe:" : input.url, own);
  for (const std::string& name : own) {
    const bool local = contains_name(kLocalSchemes, name);
    network_ = network_ || !local;
    leads_elsewhere_ = leads_elsewhere_ || (!local && !contains_name(kPlainPeers, name));
  }
  // FFmpeg reads http:/h as http://h, url_host() does not: such a URL names no address.
  if (network_ && input.url.find("://") != std::string::npos) {
    own_address_ = kind_of_host(url_host(input.url));
  }
  set_protocols(input, own, device);

  const bool web = contains_name(own, "http") || contains_name(own, "https");
  std::optional<NameList> formats;
  std::optional<NameList> decoders;
  if (network_) {
    formats = split_at(std::string(kMediaFormats).append(web ? kPlaylistFormats : ""), ',');
    decoders = split_at(kNetworkDecoders, ',');
  }
  formats = names_of(input.formats, formats);
  if (formats) {
    for (const std::string& name : split_at(input.format, ',')) add_name(*formats, name);
    formats_ = join_names(*formats);
  }
  decoders = names_of(input.decoders, decoders);
  if (decoders) decoders_ = join_names(*decoders);
}

void InputAccess::set_protocols(const InputOptions& input, const Names& own, bool device) {
  const auto option = std::ranges::find(input.options, "protocol_whitelist", &AvOption::key);
  if (option != input.options.end() && input.protocols.empty()) {
    named_ = split_at(option->value, ',');
    protocols_ = option->value;
    return;
  }
  std::optional<Names> defaults;
  if (!device) {
    const bool web = contains_name(own, "http") || contains_name(own, "https");
    const std::string_view local = contains_name(own, "pipe") ? kPipeProtocols : kLocalProtocols;
    defaults = split_at(web ? kWebProtocols : network_ ? "" : local, ',');
    if (!network_ && describes_rtp(input)) {
      for (const char* name : {"rtp", "srtp", "udp"}) add_name(*defaults, name);
    }
  }
  named_ = names_of(input.protocols, defaults);
  if (!named_) {
    if (!device) protocols_ = every_protocol();
    return;
  }
  for (const std::string& name : own) add_name(*named_, name);
  Names all = *named_;
  for (const Carried& carried : kCarried) {
    if (!contains_name(*named_, carried.protocol)) continue;
    for (const std::string& name : split_at(carried.by, ',')) add_name(all, name);
  }
  protocols_ = join_names(all);
}

std::optional<std::string> InputAccess::refusal_of_url(const std::string& url) const {
  if (url.size() > kLongestUrl) {
    return "names a URL of " + std::to_string(url.size()) + " bytes, where " +
           std::to_string(kLongestUrl) +
           " are the most; no key allows more: have the sender name a shorter one";
  }
  if (!named_) return std::nullopt;
  Names protocols;
  add_protocols_of(url, protocols);
  for (const std::string& name : protocols) {
    if (contains_name(*named_, name)) continue;
    return "names " + shown(url) + ", and " +
           (network_ ? "what comes from the network" : "a file") + " may not open " +
           (name == "file" ? "files" : "URLs of " + name) + "; " +
           remedy("protocols", input_.protocols, name);
  }
  return std::nullopt;
}

std::optional<std::string> InputAccess::refusal_of_address(const sockaddr& address,
                                                           std::size_t size) const {
  if (!leads_elsewhere_) return std::nullopt;
  const AddressKind kind = kind_of(address, size);
  const bool allowed =
      kind == AddressKind::kOrdinary || kind == own_address_ ||
      (kind == AddressKind::kLoopback ? input_.reach_loopback : input_.reach_link_local);
  if (allowed) return std::nullopt;
  const char* const name = kind == AddressKind::kLoopback ? "loopback" : "link_local";
  return "leads to " + text_of(address, size) + ", a " +
         (kind == AddressKind::kLoopback ? "loopback" : "link-local") +
         " address, which input.url does not name itself; add " + name +
         " to input.addresses to allow it";
}

std::optional<std::string> InputAccess::refusal_of_format(const AVInputFormat& format) const {
  if (formats_.empty() || av_match_list(format.name, formats_.c_str(), ',') > 0) {
    return std::nullopt;
  }
  const std::string name = split_at(format.name, ',').front();
  return "is of the format " + name + ", which input.formats does not allow" +
         (network_ ? " for an input from the network" : "") + "; " +
         remedy("formats", input_.formats, name);
}

bool InputAccess::allows(const AVCodec& decoder) const {
  return decoders_.empty() || av_match_list(decoder.name, decoders_.c_str(), ',') > 0;
}

std::optional<std::string> InputAccess::refusal_of_codec(AVCodecID codec) const {
  const AVCodec* const decoder = avcodec_find_decoder(codec);
  if (decoder == nullptr || allows(*decoder)) return std::nullopt;
  return std::string("needs the decoder ") + decoder->name +
         ", which input.decoders does not allow" +
         (network_ ? " for an input from the network" : "") + "; " +
         remedy("decoders", input_.decoders, decoder->name);
}

}  // namespace framelane
