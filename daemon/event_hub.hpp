#pragma once

#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "daemon/http_message.hpp"
#include "daemon/live_status.hpp"

namespace framelane {

/// GET /api/v1/events: what status pages are told once a second, as server-sent events. A thread of
/// its own samples the feeds once a second; the text is made once for all pages, and only while
/// there is one. A page that does not read gets the newest status when it reads again, and none of
/// those between.
class EventHub {
 public:
  static constexpr std::chrono::seconds kPeriod{1};

  /// The supervisor outlives this. `period`: between two samples.
  explicit EventHub(const Supervisor& supervisor, std::chrono::seconds period = kPeriod);
  ~EventHub();
  EventHub(const EventHub&) = delete;
  EventHub& operator=(const EventHub&) = delete;

  /// The events for one more page: first the history, then the newest status at once. Any thread.
  std::shared_ptr<HttpStream> subscribe();
  /// Tells all pages: `data` is JSON on one line. Any thread.
  void publish(const std::string& event, const std::string& data);

 private:
  class Page;
  void run(const Supervisor& supervisor, const std::stop_token& stop);
  /// Tells the pages that have just come, or, after a sample, all of them.
  void tell(const LiveStatus& status, bool sampled, std::chrono::steady_clock::time_point now);
  std::vector<std::shared_ptr<Page>> pages();

  const std::chrono::seconds period_;
  std::shared_ptr<const std::string> newest_;  // status; of the thread, null if nobody wanted it
  std::mutex mutex_;                           // guards what follows
  std::condition_variable_any wanted_;
  std::vector<std::weak_ptr<Page>> pages_;
  bool news_wanted_ = false;  // by a page that has just come
  std::jthread thread_;       // last: it uses all of this
};

}  // namespace framelane
