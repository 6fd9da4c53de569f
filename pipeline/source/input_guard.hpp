#pragma once

extern "C" {
#include <libavformat/avformat.h>
}

#include <sys/socket.h>

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <string>

#include "pipeline/av/dictionary.hpp"
#include "pipeline/source/call_check.hpp"
#include "pipeline/source/input_access.hpp"

namespace framelane {

/// Holds what FFmpeg opens for one input against its InputAccess and its limits. It stands where
/// FFmpeg opens URLs and where it connects, reads each playlist whole before FFmpeg does, and gives
/// FFmpeg the lists of what is allowed, for what it opens by itself. One thread.
///
/// A playlist of variants is refused if it takes the place of one stream's playlist: FFmpeg's HLS
/// demuxer would make streams without a context of it, and crash.
class InputGuard {
 public:
  explicit InputGuard(const InputOptions& input);
  InputGuard(const InputGuard&) = delete;
  InputGuard& operator=(const InputGuard&) = delete;

  /// Before avformat_open_input(), which gets the same options. The guard outlives `context`.
  void attach(AVFormatContext& context, Dictionary& options);
  /// Is to live during every call on the context.
  CallCheck check_calls();

  const InputAccess& access() const { return access_; }
  /// avformat_find_stream_info, with the limit of pixels for its decoders.
  int find_streams(AVFormatContext& context) const;

  // Reasons are the end of a sentence that begins with the input's name. Empty: nothing is refused.

  /// The first thing that was refused while URLs were opened.
  const std::string& refusal() const { return refusal_; }
  /// The address that was refused, if that may be why a read failed with `error` of FFmpeg: no
  /// other was tried since, nothing came, and the error is not what a peer has answered. Some
  /// demuxers do not say that this was why.
  std::string unreachable_by(int error) const;
  void packet_came() { unreachable_.clear(); }
  /// Why opening failed with `error`, by these lines of FFmpeg's log.
  std::string refusal_in(int error, std::initializer_list<std::string> lines) const;
  /// Why the context that was opened cannot be used; `line` is the first of FFmpeg's log.
  std::string refusal_of(const AVFormatContext& context, const std::string& line) const;
  /// Why it has too much by now: streams, or pixels.
  std::string excess_of(const AVFormatContext& context) const;
  /// Why pictures of this size are too large.
  std::string excess_of_size(std::int64_t width, std::int64_t height) const;

 private:
  static int open(AVFormatContext* context, AVIOContext** io, const char* url, int flags,
                  AVDictionary** options);
  int open_checked(AVFormatContext& context, AVIOContext*& io, const char* url, int flags,
                   AVDictionary** options);
  /// Reads a playlist whole, and holds it against limits and lists. Returns an AVERROR.
  int read_ahead(AVIOContext& io, bool first);
  int probe(AVFormatContext& context, AVIOContext& io, const char* url);
  bool may_reach(const sockaddr& address, std::size_t size, int socket);
  int refuse(const std::string& reason);
  std::string reason_of(const std::string& line) const;

  const InputAccess access_;
  const InputLimits limits_;
  std::string refusal_;
  std::string unreachable_;
  int tried_ = -1;  // the socket of the last address that was allowed; it may be closed
};

}  // namespace framelane
