// Why a source cannot be opened or read, and what helps.
#include <netdb.h>

#include <cerrno>
#include <exception>

#include "pipeline/av/av_error.hpp"
#include "pipeline/base/failure.hpp"
#include "pipeline/base/url.hpp"
#include "pipeline/source/demuxer.hpp"
#include "pipeline/source/source_failure.hpp"

namespace framelane {
namespace {

/// Asks the resolver once more, because FFmpeg reports a name that does not resolve as an I/O
/// error.
bool resolves(const std::string& host) {
  addrinfo* found = nullptr;
  const int error = ::getaddrinfo(host.c_str(), nullptr, nullptr, &found);
  if (found != nullptr) ::freeaddrinfo(found);
  return error != EAI_NONAME && error != EAI_AGAIN && error != EAI_FAIL;
}

std::string advice(IoFault fault) {
  switch (fault) {
    case IoFault::kDns:
      return "its host name does not resolve; check input.url and the resolver";
    case IoFault::kRefused:
      return "check that it is switched on and that address and port are right";
    case IoFault::kAuth:
      return "check the user name, the password and the permissions";
    case IoFault::kTimeout:
      return "check that it is up and sends, or raise input.timeout";
    case IoFault::kEof:
    case IoFault::kIo:
    case IoFault::kDecode:
      break;
  }
  return "check input.url and input.options";
}

}  // namespace

/// Throws the cause that we know of, if there is one. It goes first, because FFmpeg's error code
/// after an interrupted call means nothing.
void Demuxer::rethrow_own_causes() const {
  if (interrupt_.stopped()) throw IoError(IoFault::kIo, name_ + " was stopped");
  if (reader_failure_) std::rethrow_exception(reader_failure_);
  if (interrupt_.cause() == Interrupt::Cause::kTimeout) fail_silent();
}

void Demuxer::fail_silent(const char* what, const char* more) const {
  throw IoError(IoFault::kTimeout, name_ + " sent " + what + " for " +
                                       std::to_string(timeout_.count()) + " ms" + more + "; " +
                                       advice(IoFault::kTimeout));
}

void Demuxer::require_size(int width, int height) const {
  const std::string excess = guard_.excess_of_size(width, height);
  if (!excess.empty()) fail_refused(excess);
}

void Demuxer::fail_refused(const std::string& reason) const {
  const std::string message = name_ + " " + reason;
  if (live_ || !host_.empty()) throw IoError(IoFault::kDecode, message);
  throw FeedError(FeedFault::kConfiguration, message);
}

void Demuxer::fail_open(int error, const std::string& reason) const {
  if (is_configuration_error(error)) {
    throw FeedError(FeedFault::kConfiguration, "cannot open " + name_ + ": " + reason +
                                                   "; correct input.url, format or options");
  }
  if (const auto shortage = shortage_of(error)) {
    throw IoError(IoFault::kIo, "cannot open " + name_ + ": " + *shortage);
  }
  IoFault fault = fault_of(error);
  if (host_.empty()) {
    const std::string path = local_path(name_).value_or(name_.substr(name_.find(':') + 1));
    const std::string remedy = denial_remedy(AVUNERROR(error), path);
    if (!remedy.empty()) {
      throw IoError(fault, "cannot open " + name_ + ": " + av_error_text(error) + remedy);
    }
  }
  if (fault == IoFault::kDecode || (fault == IoFault::kEof && host_.empty())) {
    const char* const redirect =
        name_.starts_with("rtsp")
            ? "; a redirect to another scheme than rtsp and rtsps is not followed"
            : "";
    throw IoError(IoFault::kDecode, name_ + " is not a video framelane can read (" + reason + ")" +
                                        redirect + "; check input.url, or set input.format");
  }
  if (error == AVERROR(EIO) && !host_.empty() && !resolves(host_)) fault = IoFault::kDns;
  std::string text = fault == IoFault::kDns ? "" : av_error_text(error) + "; ";
  if (error == AVERROR(EINVAL) && name_.starts_with("http")) {
    text += "a redirect to another scheme than http and https is not followed; ";
  }
  throw IoError(fault, "cannot open " + name_ + ": " + text + advice(fault));
}

void Demuxer::fail_read(int error) const {
  const std::string what = "cannot read on from " + name_ + ": ";
  if (const auto shortage = shortage_of(error)) {
    // A file that breaks off is not opened again by itself; the feed may begin again with it.
    const bool refills = reader_ != nullptr && reader_->fifo();
    if (live_ || refills) throw IoError(IoFault::kIo, what + *shortage);
    throw FeedError(FeedFault::kMemory, what + *shortage);
  }
  const IoFault fault = fault_of(error);
  throw IoError(fault, what + av_error_text(error) + "; " + advice(fault));
}

}  // namespace framelane
