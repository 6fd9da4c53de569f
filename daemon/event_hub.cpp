#include "daemon/event_hub.hpp"

#include <algorithm>
#include <chrono>
#include <deque>
#include <exception>
#include <optional>
#include <utility>

#include "pipeline/base/fault_log.hpp"

namespace framelane {
namespace {

/// Of events that a page which does not read has not taken. Older ones are forgotten: it can ask
/// for them.
constexpr std::size_t kMostWaiting = 256;

std::string event_text(const std::string& event, const std::string& data) {
  return "event: " + event + "\ndata: " + data + "\n\n";
}

}  // namespace

class EventHub::Page : public HttpStream {
 public:
  std::optional<std::string> take() override {
    const std::lock_guard lock(mutex_);
    std::string text = std::move(history_);
    history_.clear();
    for (const std::string& event : events_) text += event;
    events_.clear();
    if (status_) text += *std::exchange(status_, nullptr);
    return text;
  }
  bool needs_history() {
    const std::lock_guard lock(mutex_);
    return std::exchange(needs_history_, false);
  }
  void set_history(std::string text) {
    const std::lock_guard lock(mutex_);
    history_ = std::move(text);
  }
  void set_status(std::shared_ptr<const std::string> text) {
    {
      const std::lock_guard lock(mutex_);
      status_ = std::move(text);
    }
    more();
  }
  void add(const std::string& text) {
    {
      const std::lock_guard lock(mutex_);
      events_.push_back(text);
      if (events_.size() > kMostWaiting) events_.pop_front();
    }
    more();
  }

 private:
  std::mutex mutex_;  // guards what follows
  bool needs_history_ = true;
  std::string history_;
  std::deque<std::string> events_;
  std::shared_ptr<const std::string> status_;  // the newest; shared by all pages
};

EventHub::EventHub(const Supervisor& supervisor, std::chrono::seconds period)
    : period_(period),
      thread_([this, &supervisor](const std::stop_token& stop) { run(supervisor, stop); }) {}

EventHub::~EventHub() = default;

std::shared_ptr<HttpStream> EventHub::subscribe() {
  auto page = std::make_shared<Page>();
  const std::lock_guard lock(mutex_);
  pages_.push_back(page);
  news_wanted_ = true;
  wanted_.notify_all();
  return page;
}

void EventHub::publish(const std::string& event, const std::string& data) {
  const std::string text = event_text(event, data);
  for (const auto& page : pages()) page->add(text);
}

std::vector<std::shared_ptr<EventHub::Page>> EventHub::pages() {
  const std::lock_guard lock(mutex_);
  std::vector<std::shared_ptr<Page>> present;
  std::erase_if(pages_, [&](const std::weak_ptr<Page>& one) {
    auto page = one.lock();
    if (page == nullptr) return true;
    present.push_back(std::move(page));
    return false;
  });
  return present;
}

void EventHub::tell(const LiveStatus& status, bool sampled,
                    std::chrono::steady_clock::time_point now) {
  const std::vector<std::shared_ptr<Page>> present = pages();
  if (sampled) newest_.reset();
  if (present.empty()) return;
  if (newest_ == nullptr) {
    newest_ = std::make_shared<const std::string>(event_text("status", status.status_json(now)));
  }
  for (const auto& page : present) {
    const bool begins = page->needs_history();
    if (begins) page->set_history(event_text("history", status.history_json()));
    if (begins || sampled) page->set_status(newest_);
  }
}

void EventHub::run(const Supervisor& supervisor, const std::stop_token& stop) {
  LiveStatus status(supervisor);
  FaultLog faults("the status page");
  auto due = std::chrono::steady_clock::now();
  while (!stop.stop_requested()) {
    const auto now = std::chrono::steady_clock::now();
    const bool sampled = now >= due;
    try {
      if (sampled) status.sample(now);
      tell(status, sampled, now);
    } catch (const std::exception& error) {  // memory is short
      faults.failed({}, error.what(), "it is not up to date");
    }
    if (sampled) due = std::max(due + period_, now);  // after a SIGSTOP none is made up for
    std::unique_lock lock(mutex_);
    wanted_.wait_until(lock, stop, due, [this] { return std::exchange(news_wanted_, false); });
  }
}

}  // namespace framelane
