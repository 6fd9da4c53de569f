#include "daemon/disk_readers.hpp"

#include <fmt/core.h>
#include <pthread.h>

#include <set>
#include <stdexcept>
#include <thread>
#include <utility>
#include <vector>

#include "daemon/query.hpp"
#include "pipeline/base/failure.hpp"
#include "pipeline/base/log.hpp"

namespace framelane {
namespace {

constexpr std::size_t kMostAhead = 1u << 20;  // bytes of one answer
/// Grace for a thread to notice that nobody waits.
constexpr std::chrono::milliseconds kLastRead{500};

RequestError no_answer(std::chrono::milliseconds patience) {
  return {503, "no_answer",
          fmt::format("the disk or file server of the recordings has not answered for {} s; ask "
                      "again: what has been read by then is remembered",
                      std::chrono::ceil<std::chrono::seconds>(patience).count())};
}

RequestError is_stopping() { return {503, "stopping", "framelane is being stopped"}; }

}  // namespace

/// The listener's end of it.
class DiskAnswer::Stream : public HttpStream {
 public:
  explicit Stream(std::shared_ptr<DiskAnswer> answer) : answer_(std::move(answer)) {}
  ~Stream() override { answer_->leave(); }
  std::optional<std::string> take() override { return answer_->take(); }
  void tell() { more(); }

 private:
  const std::shared_ptr<DiskAnswer> answer_;
};

bool DiskAnswer::is_gone() const {
  const std::lock_guard lock(mutex_);
  return gone_;
}

void DiskAnswer::answer(HttpResponse response) {
  const std::lock_guard lock(mutex_);
  begun_ = true;
  response_ = std::move(response);
  changed_.notify_all();
}

void DiskAnswer::begin(HttpResponse response) {
  const auto stream = std::make_shared<Stream>(shared_from_this());
  response.stream = stream;
  response.stream_idle = DiskReaders::kClientIdle;
  const std::lock_guard lock(mutex_);
  begun_ = true;
  if (gone_) return;  // nobody would take the stream, which owns this
  stream_ = stream;
  response_ = std::move(response);
  changed_.notify_all();
}

void DiskAnswer::tell(std::unique_lock<std::mutex> lock) {
  changed_.notify_all();
  const std::shared_ptr<Stream> stream = stream_.lock();
  lock.unlock();
  if (stream) stream->tell();
}

bool DiskAnswer::send(std::string piece) {
  std::unique_lock lock(mutex_);
  reads_since_.reset();
  changed_.wait(lock, [this] { return gone_ || bytes_ < kMostAhead; });
  if (gone_) return false;
  reads_since_ = Steady::now();
  bytes_ += piece.size();
  pieces_.push_back(std::move(piece));
  tell(std::move(lock));
  return true;
}

std::optional<std::string> DiskAnswer::take() {
  const std::lock_guard lock(mutex_);
  if (!pieces_.empty()) {
    std::string piece = std::move(pieces_.front());
    pieces_.pop_front();
    bytes_ -= piece.size();
    changed_.notify_all();
    return piece;
  }
  // The listener breaks the connection off, so that the client knows that something is missing.
  if (error_ || stuck_ || stopped_) throw std::runtime_error("is not sent to its end");
  if (ended_) return std::nullopt;
  return std::string();
}

void DiskAnswer::leave() {
  const std::lock_guard lock(mutex_);
  gone_ = true;
  changed_.notify_all();
}

void DiskAnswer::stop() {
  const std::lock_guard lock(mutex_);
  gone_ = true;
  stopped_ = !ended_;
  changed_.notify_all();
}

void DiskAnswer::finish(std::exception_ptr error) {
  std::unique_lock lock(mutex_);
  const bool told = begun_;
  const bool was_gone = gone_;
  error_ = std::move(error);
  ended_ = true;
  const std::exception_ptr late = told && !was_gone ? error_ : nullptr;
  tell(std::move(lock));
  if (!late) return;
  try {
    std::rethrow_exception(late);
  } catch (const std::exception& failure) {
    log::warn("{}: a recording is not sent to its end: {}", place_, redact(failure.what()));
  }
}

HttpResponse DiskAnswer::wait() {
  std::unique_lock lock(mutex_);
  const auto told = [this] { return response_ || error_ || ended_ || stopped_; };
  if (!changed_.wait_for(lock, patience_, told)) {
    gone_ = true;
    if (!changed_.wait_for(lock, kLastRead, [this] { return ended_; })) {
      stuck_ = true;
      thread_.abandon();
    }
    throw no_answer(patience_);
  }
  if (response_) {
    HttpResponse response = *std::move(response_);
    response_.reset();
    return response;
  }
  if (error_) std::rethrow_exception(error_);
  throw is_stopping();
}

bool DiskAnswer::is_newly_stuck(Steady::time_point now) {
  std::unique_lock lock(mutex_);
  // Before it has begun, wait() looks.
  if (stuck_ || ended_ || !begun_) return false;
  if (!reads_since_ || now - *reads_since_ < patience_) return false;
  stuck_ = true;
  tell(std::move(lock));
  return true;
}

struct DiskReaders::Shared {
  std::mutex mutex;
  std::condition_variable ended;
  std::set<std::shared_ptr<DiskAnswer>> answers;  // whose threads have not ended
  bool stopping = false;
};

DiskReaders::DiskReaders(std::chrono::milliseconds patience)
    : patience_(patience), shared_(std::make_shared<Shared>()) {}
DiskReaders::~DiskReaders() { stop(); }

HttpResponse DiskReaders::answer(const std::string& place, Read read) {
  const std::shared_ptr<DiskAnswer> answer(new DiskAnswer(place, patience_));
  {
    const std::lock_guard lock(shared_->mutex);
    if (shared_->stopping) throw is_stopping();
    std::size_t reading = 0;
    std::size_t waiting = 0;
    std::size_t waiting_here = 0;
    for (const auto& other : shared_->answers) {
      const std::lock_guard other_lock(other->mutex_);
      const bool here = other->place_ == place;
      if (here && other->stuck_) throw no_answer(patience_);
      if (other->stuck_) continue;
      ++reading;
      if (other->begun_) continue;
      ++waiting;
      if (here) ++waiting_here;
    }
    if (waiting >= kMostWaiting || waiting_here >= kMostWaitingOfPlace) {
      throw RequestError(503, "busy",
                         "others wait for the begin of a recording already; ask again later");
    }
    if (reading >= kMost) {
      throw RequestError(503, "busy",
                         fmt::format("{} recordings are being read and sent already; ask again "
                                     "later",
                                     kMost));
    }
    shared_->answers.insert(answer);
  }
  const auto leave = [](Shared& shared, const std::shared_ptr<DiskAnswer>& one) {
    const std::lock_guard lock(shared.mutex);
    shared.answers.erase(one);
    shared.ended.notify_all();
  };
  try {
    std::thread([shared = shared_, answer, read = std::move(read), leave]() mutable noexcept {
      pthread_setname_np(pthread_self(), "recordings");
      std::exception_ptr error;
      try {
        read(answer);
      } catch (...) {
        error = std::current_exception();
      }
      read = {};
      answer->finish(std::move(error));
      leave(*shared, answer);
      answer->thread_.end();
    }).detach();
  } catch (const std::exception& error) {  // threads or memory are short
    leave(*shared_, answer);
    throw RequestError(503, "busy", shortage_text(error.what()));
  }
  return answer->wait();
}

void DiskReaders::watch() {
  std::vector<std::shared_ptr<DiskAnswer>> answers;
  {
    const std::lock_guard lock(shared_->mutex);
    answers.assign(shared_->answers.begin(), shared_->answers.end());
  }
  const auto now = std::chrono::steady_clock::now();
  for (const auto& answer : answers) {
    if (!answer->is_newly_stuck(now)) continue;
    answer->thread_.abandon();
    log::warn(
        "{}: reading a recording hangs, and its client was disconnected: see whether the disk or "
        "file server answers",
        answer->place_);
  }
}

void DiskReaders::stop() {
  std::unique_lock lock(shared_->mutex);
  shared_->stopping = true;
  for (const auto& answer : shared_->answers) answer->stop();
  shared_->ended.wait_for(lock, kLastRead, [this] { return shared_->answers.empty(); });
  for (const auto& answer : shared_->answers) answer->thread_.abandon();
}

}  // namespace framelane
