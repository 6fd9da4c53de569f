#include "daemon/disk_readers.hpp"

#include <fmt/core.h>
#include <pthread.h>

#include <algorithm>
#include <mutex>
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
          fmt::format("the disk or file server that the files are on has not answered for {} s; "
                      "ask again: what has been read by then is remembered",
                      std::chrono::ceil<std::chrono::seconds>(patience).count())};
}

RequestError busy(const std::string& why) { return {503, "busy", why + "; ask again in a second"}; }

RequestError stopping_now() { return {503, "stopping", "framelane is being stopped"}; }

}  // namespace

struct DiskAnswer::All {
  /// Held for moments only: the listener's thread takes it.
  std::mutex mutex;
  std::condition_variable changed;                // an answer has begun or ended
  std::set<std::shared_ptr<DiskAnswer>> answers;  // whose threads have not ended
  std::multiset<std::string> waiting;             // places of requests whose answers have not begun
  bool stopping = false;

  template <typename Condition>
  auto count(Condition condition) const {
    return static_cast<std::size_t>(std::ranges::count_if(
        answers, [&](const auto& answer) { return !answer->stuck_ && condition(*answer); }));
  }
};

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
  const std::lock_guard lock(all_->mutex);
  return gone_;
}

void DiskAnswer::answer(HttpResponse response) {
  const std::lock_guard lock(all_->mutex);
  begun_ = true;
  response_ = std::move(response);
  changed_.notify_all();
  all_->changed.notify_all();
}

void DiskAnswer::begin(HttpResponse response) {
  const auto stream = std::make_shared<Stream>(shared_from_this());
  response.stream = stream;
  response.stream_idle = DiskReaders::kClientIdle;
  const std::lock_guard lock(all_->mutex);
  if (all_->count([](const DiskAnswer& answer) { return answer.sends_; }) >=
      DiskReaders::kMostSending) {
    throw busy(fmt::format("{} files are being read and sent already", DiskReaders::kMostSending));
  }
  begun_ = true;
  sends_ = true;
  reads_since_ = Steady::now();
  all_->changed.notify_all();
  if (gone_) return;  // nobody would take the stream, which owns this
  stream_ = stream;
  response_ = std::move(response);
  changed_.notify_all();
}

void DiskAnswer::tell(std::unique_lock<std::mutex> lock) {
  const std::shared_ptr<Stream> stream = stream_.lock();
  lock.unlock();
  if (stream) stream->tell();
}

bool DiskAnswer::send(std::string piece) {
  std::unique_lock lock(all_->mutex);
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
  const std::lock_guard lock(all_->mutex);
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
  const std::lock_guard lock(all_->mutex);
  gone_ = true;
  changed_.notify_all();
}

void DiskAnswer::finish(std::exception_ptr error) {
  std::unique_lock lock(all_->mutex);
  error_ = std::move(error);
  ended_ = true;
  all_->answers.erase(shared_from_this());
  changed_.notify_all();
  all_->changed.notify_all();
  const std::exception_ptr late = begun_ && !gone_ ? error_ : nullptr;
  tell(std::move(lock));
  if (!late) return;
  try {
    std::rethrow_exception(late);
  } catch (const std::exception& failure) {
    log::warn("{}: a file is not sent to its end: {}", place_, redact(failure.what()));
  }
}

HttpResponse DiskAnswer::wait() {
  std::unique_lock lock(all_->mutex);
  const auto told = [this] { return response_ || error_ || ended_ || stopped_; };
  if (!changed_.wait_for(lock, patience_, told)) {
    gone_ = true;
    if (!changed_.wait_for(lock, kLastRead, [this] { return ended_; })) {
      stuck_ = true;
      thread_.abandon();
      all_->changed.notify_all();
    }
    throw no_answer(patience_);
  }
  if (response_) {
    HttpResponse response = *std::move(response_);
    response_.reset();
    return response;
  }
  if (stopped_) throw stopping_now();
  if (error_) std::rethrow_exception(std::exchange(error_, nullptr));
  throw stopping_now();
}

bool DiskAnswer::is_newly_stuck(Steady::time_point now) {
  std::unique_lock lock(all_->mutex);
  // Before it has begun, wait() looks.
  if (stuck_ || ended_ || !begun_) return false;
  if (!reads_since_ || now - *reads_since_ < patience_) return false;
  stuck_ = true;
  tell(std::move(lock));
  return true;
}

DiskReaders::DiskReaders(std::chrono::milliseconds patience, std::chrono::milliseconds turn)
    : patience_(patience), turn_(turn), all_(std::make_shared<DiskAnswer::All>()) {}
DiskReaders::~DiskReaders() { stop(); }

std::shared_ptr<DiskAnswer> DiskReaders::take_turn(const std::string& place) {
  const auto is_stuck = [&] {
    return std::ranges::any_of(all_->answers, [&](const auto& answer) {
      return answer->stuck_ && answer->place_ == place;
    });
  };
  const auto has_turn = [&] {
    const auto reads_here = [&](const DiskAnswer& answer) {
      return !answer.begun_ && answer.place_ == place;
    };
    return all_->count(reads_here) < kMostReadingOfPlace;
  };
  std::unique_lock lock(all_->mutex);
  all_->changed.wait_for(lock, turn_, [&] { return all_->stopping || is_stuck() || has_turn(); });
  if (all_->stopping) throw stopping_now();
  if (is_stuck()) throw no_answer(patience_);
  if (!has_turn()) throw busy("other requests wait for the same disk");
  std::shared_ptr<DiskAnswer> answer(new DiskAnswer(all_, place, patience_));
  all_->answers.insert(answer);
  return answer;
}

HttpResponse DiskReaders::answer(const std::string& place, Read read) {
  struct Waiting {
    Waiting(DiskAnswer::All& all, const std::string& place) : all_(all) {
      const std::lock_guard lock(all_.mutex);
      const std::size_t left = kMostWaiting - std::min(kMostWaiting, all_.waiting.size());
      if (left == 0 || (left <= kLeftForOthers && all_.waiting.contains(place))) {
        throw busy("too many requests wait for files");
      }
      here_ = all_.waiting.insert(place);
    }
    ~Waiting() {
      const std::lock_guard lock(all_.mutex);
      all_.waiting.erase(here_);
    }
    DiskAnswer::All& all_;
    std::multiset<std::string>::iterator here_;
  };
  const Waiting waiting(*all_, place);
  const std::shared_ptr<DiskAnswer> answer = take_turn(place);
  try {
    std::thread([answer, read = std::move(read)]() mutable noexcept {
      pthread_setname_np(pthread_self(), "disk-reader");
      std::exception_ptr error;
      try {
        read(answer);
      } catch (...) {
        error = std::current_exception();
      }
      read = {};
      answer->finish(std::move(error));
      answer->thread_.end();
    }).detach();
  } catch (const std::exception& error) {  // threads or memory are short
    const std::lock_guard lock(all_->mutex);
    all_->answers.erase(answer);
    all_->changed.notify_all();
    throw busy(shortage_text(error.what()));
  }
  return answer->wait();
}

void DiskReaders::watch() {
  std::vector<std::shared_ptr<DiskAnswer>> answers;
  {
    const std::lock_guard lock(all_->mutex);
    answers.assign(all_->answers.begin(), all_->answers.end());
  }
  const auto now = std::chrono::steady_clock::now();
  for (const auto& answer : answers) {
    if (!answer->is_newly_stuck(now)) continue;
    answer->thread_.abandon();
    log::warn(
        "{}: reading a file for a client hangs, and the client was disconnected: see whether the "
        "disk or file server answers",
        answer->place_);
  }
}

void DiskReaders::stop() {
  std::unique_lock lock(all_->mutex);
  all_->stopping = true;
  for (const auto& answer : all_->answers) {
    answer->gone_ = true;
    answer->stopped_ = !answer->ended_;
    answer->changed_.notify_all();
  }
  all_->changed.notify_all();
  all_->changed.wait_for(lock, kLastRead, [this] { return all_->answers.empty(); });
  for (const auto& answer : all_->answers) answer->thread_.abandon();
}

}  // namespace framelane
