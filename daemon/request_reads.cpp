#include "daemon/request_reads.hpp"

#include <system_error>
#include <utility>

#include "daemon/query.hpp"
#include "pipeline/base/detached_read.hpp"

namespace framelane {
namespace {

using Clock = std::chrono::steady_clock;

RequestError no_answer() {
  return {503, "no_answer",
          "the disk or file server that the files are on does not answer; ask again when it does"};
}

}  // namespace

/// A read that is under way. Its thread and the request share it.
class RequestReads::Turn {
 public:
  /// Waits for others to end.
  Turn(std::shared_ptr<Places> places, const std::string& place, Clock::time_point deadline)
      : places_(std::move(places)), place_(place) {
    std::unique_lock lock(places_->mutex);
    const auto here = [&] {
      const auto found = places_->places.find(place_);
      return found != places_->places.end() ? found->second : Place();
    };
    const auto is_stuck = [&] { return here().stuck > 0; };
    const auto has_room = [&] { return places_->reads < kMost && here().reads < kMostOfPlace; };
    places_->ended.wait_until(lock, deadline, [&] { return is_stuck() || has_room(); });
    if (is_stuck()) throw no_answer();
    if (!has_room()) {
      throw RequestError(503, "busy", "too many files are being read; ask again later");
    }
    ++places_->places[place_].reads;
    ++places_->reads;
  }
  /// At the end of the read.
  ~Turn() {
    const std::lock_guard lock(places_->mutex);
    const auto here = places_->places.find(place_);
    if (is_late_) --here->second.stuck;
    if (--here->second.reads == 0) places_->places.erase(here);
    --places_->reads;
    places_->ended.notify_all();
  }
  Turn(const Turn&) = delete;
  Turn& operator=(const Turn&) = delete;

  void is_late() {
    const std::lock_guard lock(places_->mutex);
    is_late_ = true;
    ++places_->places[place_].stuck;
    places_->ended.notify_all();
  }

 private:
  const std::shared_ptr<Places> places_;
  const std::string place_;
  bool is_late_ = false;
};

std::optional<std::string> RequestReads::read(const std::string& place, Read read) {
  const auto deadline = Clock::now() + patience_;
  const auto turn = std::make_shared<Turn>(places_, place, deadline);
  DetachedRead<std::optional<std::string>> reading;
  try {
    reading.begin([turn, read = std::move(read)] { return read(); });
  } catch (const std::system_error&) {
    throw RequestError(503, "busy", "no thread can be started; ask again later");
  }
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - Clock::now());
  if (auto bytes = reading.wait_for(left)) return *std::move(bytes);
  turn->is_late();
  reading.abandon();
  throw no_answer();
}

}  // namespace framelane
