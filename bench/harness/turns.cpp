#include "bench/harness/turns.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cstdio>
#include <cstring>

#include "pipeline/base/failure.hpp"
#include "pipeline/base/processors.hpp"

namespace framelane::bench {
namespace {

/// Shows the number of the round on the last line of a terminal.
class Progress {
 public:
  explicit Progress(bool shown) : shown_(shown) {}
  ~Progress() {
    if (shown_) std::fputs("\r\033[K", stderr);
  }
  void show(const std::string& suite, int round, int rounds) const {
    if (shown_) std::fprintf(stderr, "\r%s: round %d of %d ", suite.c_str(), round, rounds);
  }

 private:
  const bool shown_;
};

/// One turn and its check. Returns whether the contender gets another turn.
bool take_turn(const Session& session, const Contender& contender, Clock::duration length,
               bool measured, Row& row, Result& result) {
  try {
    if (contender.prepare) contender.prepare();
  } catch (const NoRoom& error) {
    result.problems.push_back(fmt::format("{}: {}", row.full_name(), error.what()));
    return false;
  }
  const Clock::time_point end = Clock::now() + length;
  do {
    const double sample = contender.work();
    if (!measured) continue;
    row.samples.push_back(sample);
    if (!contender.more) continue;
    const std::vector<double> more = contender.more();
    for (std::size_t i = 0; i < more.size(); ++i) row.more[i].samples.push_back(more[i]);
  } while (measured && Clock::now() < end && !session.stopped());
  if (!contender.check) return true;
  const std::string wrong = contender.check();
  row.checked = wrong.empty() ? Checked::kRight : Checked::kWrong;
  if (wrong.empty()) return true;
  result.problems.push_back(fmt::format("wrong result of {}: {}", row.full_name(), wrong));
  return false;
}

}  // namespace

double milliseconds(const std::function<void()>& call) {
  const Clock::time_point start = Clock::now();
  call();
  return std::chrono::duration<double, std::milli>(Clock::now() - start).count();
}

double turn_seconds(const Session& session, std::size_t contenders) {
  return session.seconds /
         (session.rounds * static_cast<double>(std::max<std::size_t>(contenders, 1)));
}

std::size_t memory_of(const Session& session) {
  return session.memory > 0 ? session.memory : machine_memory();
}

void require_memory(const Session& session, std::size_t bytes, const char* option) {
  const std::size_t most = memory_of(session) / 4 * 3;
  if (bytes <= most) return;
  throw NoRoom(
      fmt::format("needs {} MiB of memory, and three quarters of what there is are {}; "
                  "ask for less with {}",
                  bytes >> 20, most >> 20, option));
}

bool lacks_memory(const std::exception& error) {
  const auto* feed = dynamic_cast<const FeedError*>(&error);
  return (feed != nullptr && feed->code() == FeedFault::kMemory) || gpu_lacks_memory(error);
}

void take_turns(const Session& session, const std::vector<Contender>& contenders, Result& result) {
  take_turns(session, turn_seconds(session, contenders.size()), contenders, result);
}

void take_turns(const Session& session, double turn, const std::vector<Contender>& contenders,
                Result& result) {
  const std::size_t first = result.rows.size();
  for (const Contender& contender : contenders) result.rows.push_back(contender.row);
  const auto length =
      std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(turn));
  std::vector<bool> out(contenders.size());
  const Progress progress(session.show_progress);
  for (int round = 0; round <= session.rounds && !session.stopped(); ++round) {
    progress.show(result.suite, round, session.rounds);
    if (session.before_round && !session.before_round()) {
      result.interrupted = true;
      break;
    }
    // Each round begins with another contender, and rounds go forwards and backwards alternately.
    // So no contender always follows the same one or a pause.
    const std::size_t count = contenders.size();
    const auto begin =
        static_cast<std::size_t>(std::max(round - 1, 0)) % std::max<std::size_t>(count, 1);
    const bool backwards = round > 0 && round % 2 == 0;
    for (std::size_t k = 0; k < count && !session.stopped(); ++k) {
      const std::size_t i = (backwards ? begin + count - k : begin + k) % count;
      if (out[i]) continue;
      out[i] =
          !take_turn(session, contenders[i], length, round > 0, result.rows[first + i], result);
    }
    if (session.after_round) session.after_round();
  }
  result.interrupted = result.interrupted || session.stopped();
}

std::string first_difference(const std::uint8_t* expected, const std::uint8_t* got,
                             std::size_t bytes) {
  if (std::memcmp(expected, got, bytes) == 0) return {};
  std::size_t first = 0;
  while (expected[first] == got[first]) ++first;
  std::size_t more = 0;
  for (std::size_t i = first + 1; i < bytes; ++i) more += expected[i] != got[i];
  return fmt::format("byte {} is {} instead of {}, and {} more differ", first, got[first],
                     expected[first], more);
}

}  // namespace framelane::bench
