#include "daemon/stream_sender.hpp"

#include <algorithm>
#include <cstring>
#include <exception>
#include <optional>
#include <utility>

namespace framelane {

StreamSender::StreamSender(std::shared_ptr<HttpStream> stream, MHD_Connection* connection,
                           std::function<bool()> goes_on)
    : stream_(std::move(stream)), connection_(connection), goes_on_(std::move(goes_on)) {
  stream_->set_wake([this] { go_on(); });
}

StreamSender::~StreamSender() { stream_->set_wake({}); }

ssize_t StreamSender::read(void* self, std::uint64_t, char* buffer, std::size_t size) {
  try {
    return static_cast<StreamSender*>(self)->read(buffer, size);
  } catch (const std::exception&) {  // memory is short, and libmicrohttpd is C
    return MHD_CONTENT_READER_END_WITH_ERROR;
  }
}

ssize_t StreamSender::read(char* buffer, std::size_t size) {
  while (at_ == piece_.size()) {
    {
      const std::lock_guard lock(mutex_);
      woken_ = false;  // what comes from now on is news
    }
    std::optional<std::string> next = stream_->take();
    if (!next) return MHD_CONTENT_READER_END_OF_STREAM;
    // Without the last chunk, so that nobody takes what came for the whole.
    if (ended() || !goes_on_()) return MHD_CONTENT_READER_END_WITH_ERROR;
    piece_ = *std::move(next);
    at_ = 0;
    if (!piece_.empty()) break;
    const std::lock_guard lock(mutex_);
    if (woken_) continue;
    suspended_ = true;
    MHD_suspend_connection(connection_);
    return 0;
  }
  const std::size_t part = std::min(size, piece_.size() - at_);
  std::memcpy(buffer, piece_.data() + at_, part);
  at_ += part;
  return static_cast<ssize_t>(part);
}

void StreamSender::end() {
  {
    const std::lock_guard lock(mutex_);
    ended_ = true;
  }
  go_on();
}

bool StreamSender::ended() {
  const std::lock_guard lock(mutex_);
  return ended_;
}

void StreamSender::go_on() {
  const std::lock_guard lock(mutex_);
  woken_ = true;
  if (std::exchange(suspended_, false)) MHD_resume_connection(connection_);
}

}  // namespace framelane
