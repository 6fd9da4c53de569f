#pragma once

extern "C" {
#include <libavcodec/avcodec.h>
#include <libavformat/avformat.h>
}

#include <sys/socket.h>

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "pipeline/source/input_options.hpp"

namespace framelane {

enum class AddressKind { kOrdinary, kLoopback, kLinkLocal };

/// What connecting to this address of `size` bytes reaches: loopback is also the unspecified
/// address, which Linux takes for it; an IPv6 address that holds an IPv4 address counts as that
/// one. Addresses of other families are ordinary.
AddressKind kind_of(const sockaddr& address, std::size_t size);

/// Decides what an input may open besides the URL that the operator wrote, of which formats that
/// may be, and which decoders read it: as the kind of that URL has it (docs/configuration.md,
/// "What an input may do"), or as input.protocols, formats, decoders and addresses say. Immutable.
///
/// A reason is the end of a sentence that begins with the input's name, and says what allows it.
class InputAccess {
 public:
  /// As FFmpeg has it for the lines of playlists. Longer ones are refused.
  static constexpr std::size_t kLongestUrl = 4096;

  explicit InputAccess(const InputOptions& input);

  // FFmpeg's options protocol_whitelist, format_whitelist and codec_whitelist. Empty: no such list.
  // The protocols include those that others are carried by: tcp for http.
  const std::string& protocols() const { return protocols_; }
  const std::string& formats() const { return formats_; }
  const std::string& decoders() const { return decoders_; }

  bool from_network() const { return network_; }

  /// Why the input may not open `url`, which a playlist or the like names.
  std::optional<std::string> refusal_of_url(const std::string& url) const;
  /// Why it may not connect to, or send to, an address of `size` bytes.
  std::optional<std::string> refusal_of_address(const sockaddr& address, std::size_t size) const;
  /// Why it may not be of this format.
  std::optional<std::string> refusal_of_format(const AVInputFormat& format) const;

  bool allows(const AVCodec& decoder) const;
  /// Why a codec may not be decoded, of which FFmpeg has a decoder. Nothing for other codecs.
  std::optional<std::string> refusal_of_codec(AVCodecID codec) const;

 private:
  using Names = std::vector<std::string>;

  void set_protocols(const InputOptions& input, const Names& own, bool device);

  const InputOptions input_;
  bool network_ = false;
  bool leads_elsewhere_ = false;  // what comes can make FFmpeg connect to another address
  AddressKind own_address_ = AddressKind::kOrdinary;
  std::optional<Names> named_;  // schemes of URLs that what comes may name; nothing: all
  std::string protocols_;
  std::string formats_;
  std::string decoders_;
};

}  // namespace framelane
