#include "pipeline/source/read_ahead.hpp"

#include <pthread.h>

#include <algorithm>
#include <cerrno>
#include <exception>
#include <utility>

#include "pipeline/base/failure.hpp"
#include "pipeline/base/processors.hpp"

namespace framelane {
namespace {

/// One call reads no more than this, so that a stop and the timeout see slow reading proceed.
constexpr std::size_t kCallBytes = std::size_t{1} << 20;
/// More than the threads need, because each loop takes an empty slot for the file's end.
constexpr std::size_t kSlots = 96;
/// How soon to read again when there is no data.
constexpr std::chrono::milliseconds kRetry{20};

std::atomic<int> g_threads{0};

}  // namespace

int ReadAhead::usual_threads() { return std::clamp(processors() - 2, 0, kMaxThreads); }

int ReadAhead::threads() { return g_threads; }

ReadAhead::ReadAhead(const FdReader& file, FramePool& pool, Interrupt& interrupt, Settings settings)
    : file_(file),
      pool_(pool),
      interrupt_(interrupt),
      settings_([&] {
        if (!settings.read_at) {
          settings.read_at = [&file](std::uint8_t* data, std::size_t size, std::uint64_t offset) {
            return file.read_at(data, size, offset);
          };
        }
        return std::move(settings);
      }()),
      piece_bytes_(std::min(kPieceBytes, settings_.frame_bytes)),
      max_slots_(kSlots),
      slots_(kSlots),
      max_running_(settings_.max_threads),
      last_wait_(Clock::now()),
      readers_(static_cast<std::size_t>(std::max(max_running_, 0))) {}

ReadAhead::~ReadAhead() {
  const CallScope closing(interrupt_, settings_.timeout);
  {
    const std::lock_guard lock(mutex_);
    ending_ = closing_ = true;
  }
  work_.notify_all();
  for (Reader& reader : readers_) {
    if (reader.thread.joinable()) reader.thread.join();
  }
}

ReadAhead::Status ReadAhead::next(BufferRef& buffer, std::size_t& filled) {
  filled = 0;
  interrupt_.arm(settings_.timeout);
  if (!plan()) return Status::kStopped;
  {
    std::unique_lock lock(mutex_);
    if (!wait_for_front(lock)) return Status::kStopped;
    Slot& slot = at(front_++);
    claiming_ = std::max(claiming_, front_);
    buffer = std::move(slot.buffer);
    filled = slot.filled;
    error_ = slot.error;
    count(slot, -1);
  }
  if (error_ != 0 && error_ != EAGAIN) return Status::kFailed;
  const Status status = filled < settings_.frame_bytes ? complete(buffer, filled) : Status::kFrame;
  if (status == Status::kFrame) position_ += settings_.frame_bytes;
  return status;
}

/// Fills the slots with what is to be read next; false when stopped.
bool ReadAhead::plan() {
  // The file has become longer or shorter since its end was planned.
  if (front_ != back_ && at(front_).offset != position_ && !discard()) return false;
  if (front_ == back_) {
    planned_to_ = position_;
    file_bytes_ = file_.size();
    planned_end_ = false;
  }
  while (wants_more()) {
    const std::uint64_t left = file_bytes_ > planned_to_ ? file_bytes_ - planned_to_ : 0;
    const std::size_t planned = std::min<std::uint64_t>(left, settings_.frame_bytes);
    BufferRef buffer;
    try {
      // A new buffer is registered with the GPU, and its driver may keep us waiting.
      if (planned > 0) buffer = pool_.get(settings_.frame_bytes + settings_.tail_padding);
    } catch (const FeedError&) {
      if (front_ == back_) throw;
      max_slots_ = back_ - front_;  // as many as there is memory for
      break;
    }
    append(std::move(buffer), planned);
    if (planned == settings_.frame_bytes) {
      planned_to_ += planned;
    } else {
      planned_to_ = 0;
      planned_end_ = !settings_.loop;
    }
  }
  return true;
}

void ReadAhead::count(const Slot& slot, int change) {
  ahead_bytes_ += static_cast<std::ptrdiff_t>(slot.planned) * change;
  if (slot.planned > 0) frames_ahead_ += change;
}

bool ReadAhead::wants_more() const {
  const std::uint64_t slots = back_ - front_;
  if (slots == 0) return true;
  if (planned_end_ || slots >= max_slots_) return false;
  if (max_running_ == 0) return false;
  const std::size_t readers = static_cast<std::size_t>(running_) + 1;
  const std::size_t bytes = readers * kPiecesAhead * piece_bytes_;
  return frames_ahead_ < 2 || ahead_bytes_ + static_cast<std::ptrdiff_t>(settings_.frame_bytes) <=
                                  static_cast<std::ptrdiff_t>(bytes);
}

void ReadAhead::append(BufferRef buffer, std::size_t planned) {
  std::size_t woken = 0;
  {
    const std::lock_guard lock(mutex_);
    Slot& slot = at(back_);
    slot.offset = planned_to_;
    slot.buffer = std::move(buffer);
    slot.planned = slot.filled = planned;
    slot.claimed = 0;
    slot.error = 0;
    count(slot, 1);
    ++back_;
    unclaimed_ += planned;
    // Half of what is ahead is in hand until they have begun.
    if (2 * unclaimed_ >= static_cast<std::size_t>(ahead_bytes_)) {
      woken = std::min<std::size_t>(idle_, unclaimed_ / (kPiecesAhead * piece_bytes_) + 1);
    }
  }
  for (; woken > 0; --woken) work_.notify_one();
}

/// Empties the slots; false when stopped.
bool ReadAhead::discard() {
  std::unique_lock lock(mutex_);
  ending_ = true;
  for (; claiming_ != back_; ++claiming_) at(claiming_).claimed = at(claiming_).planned;
  unclaimed_ = 0;
  if (!wait(lock, [this] { return under_way_ == 0; })) return false;
  ending_ = false;
  for (; front_ != back_; ++front_) {
    at(front_).buffer = {};
    count(at(front_), -1);
  }
  return true;
}

/// Until the first slot is read, reads itself what nobody reads. False when stopped.
bool ReadAhead::wait_for_front(std::unique_lock<std::mutex>& lock) {
  Slot& front = at(front_);
  const auto is_read = [&front] { return front.claimed == front.planned && front.readers == 0; };
  bool called = false;
  while (!is_read()) {
    if (interrupt_.stopped()) return false;
    last_wait_ = Clock::now();
    Piece piece;
    if (claim(piece)) {
      if (!std::exchange(called, true)) call_reader();
      lock.unlock();
      int error = 0;
      const std::size_t bytes = read(piece, error, true);
      interrupt_.arm(settings_.timeout);
      lock.lock();
      settle(piece, bytes, error);
    } else if (!wait(lock, is_read)) {
      return false;
    }
  }
  return !interrupt_.stopped();
}

/// False when stopped. Data that comes, for whatever frame, renews the timeout: on a slow disk the
/// frame that is wanted has to share with those behind it.
template <typename Condition>
bool ReadAhead::wait(std::unique_lock<std::mutex>& lock, Condition condition) {
  const auto look_again = std::max(settings_.timeout / 4, kRetry);
  consumer_waits_ = true;
  for (;;) {
    const std::uint64_t before = progress_;
    if (done_.wait_for(lock, interrupt_.stop(), look_again, condition)) break;
    if (interrupt_.stopped()) break;
    if (progress_ != before) interrupt_.arm(settings_.timeout);
  }
  consumer_waits_ = false;
  return !interrupt_.stopped();
}

/// Reads the rest of a frame of which not all was there, or was not known to be.
ReadAhead::Status ReadAhead::complete(BufferRef& buffer, std::size_t& filled) {
  if (!buffer) buffer = pool_.get(settings_.frame_bytes + settings_.tail_padding);
  const Clock::time_point deadline = Clock::now() + settings_.timeout;
  while (filled < settings_.frame_bytes) {
    if (interrupt_.stopped()) return Status::kStopped;
    const ssize_t count =
        settings_.read_at(buffer.get()->data + filled,
                          std::min(kCallBytes, settings_.frame_bytes - filled), position_ + filled);
    if (count == 0) return Status::kEnd;
    if (count > 0) {
      filled += static_cast<std::size_t>(count);
      interrupt_.arm(settings_.timeout);
      continue;
    }
    error_ = errno;
    if (error_ == EINTR) continue;
    if (error_ != EAGAIN || Clock::now() >= deadline) return Status::kFailed;
    std::unique_lock lock(mutex_);
    done_.wait_for(lock, interrupt_.stop(), kRetry, [] { return false; });
  }
  return Status::kFrame;
}

bool ReadAhead::claim(Piece& piece) {
  while (claiming_ != back_ && at(claiming_).claimed == at(claiming_).planned) ++claiming_;
  if (claiming_ == back_) return false;
  Slot& slot = at(claiming_);
  piece = {&slot, slot.claimed, std::min(piece_bytes_, slot.planned - slot.claimed)};
  slot.claimed += piece.size;
  unclaimed_ -= piece.size;
  ++slot.readers;
  ++under_way_;
  return true;
}

void ReadAhead::settle(const Piece& piece, std::size_t bytes, int error) {
  Slot& slot = *piece.slot;
  --slot.readers;
  --under_way_;
  if (bytes < piece.size && piece.begin + bytes < slot.filled) {
    slot.filled = piece.begin + bytes;
    slot.error = error;
    unclaimed_ -= slot.planned - slot.claimed;  // what is behind it is of no use
    slot.claimed = slot.planned;
  }
  const bool awaited = slot.readers == 0 && (&slot == &at(front_) || under_way_ == 0);
  if (awaited && consumer_waits_) done_.notify_one();
}

/// `renews_timeout`: on the consumer's thread, whose calls are timed.
std::size_t ReadAhead::read(const Piece& piece, int& error, bool renews_timeout) {
  std::uint8_t* const data = piece.slot->buffer.get()->data + piece.begin;
  std::size_t done = 0;
  while (done < piece.size && !ending_ && !interrupt_.stopped()) {
    const ssize_t count = settings_.read_at(data + done, std::min(kCallBytes, piece.size - done),
                                            piece.slot->offset + piece.begin + done);
    if (count == 0) break;
    if (count > 0) {
      done += static_cast<std::size_t>(count);
      if (renews_timeout) interrupt_.arm(settings_.timeout);
      progress_.fetch_add(static_cast<std::uint64_t>(count), std::memory_order_relaxed);
    } else if (errno != EINTR) {
      error = errno;
      break;
    }
  }
  return done;
}

/// One more thread is to read, if there is something for it.
void ReadAhead::call_reader() {
  if (unclaimed_ == 0) return;
  if (idle_ > 0) {
    work_.notify_one();
  } else {
    start_reader();
  }
}

void ReadAhead::start_reader() {
  if (running_ >= max_running_) return;
  if (g_threads.fetch_add(1) >= processors() && running_ > 0) {
    --g_threads;
    return;
  }
  const auto free = std::ranges::find_if(
      readers_, [](const Reader& reader) { return reader.ended || !reader.thread.joinable(); });
  if (free->thread.joinable()) free->thread.join();  // it has nothing left to do
  const auto index = static_cast<std::size_t>(free - readers_.begin());
  try {
    free->thread = std::thread([this, index] { reader_thread(index); });
    free->ended = false;
    ++running_;
  } catch (const std::exception&) {  // no thread, or no memory for one
    --g_threads;
    max_running_ = running_.load();  // it works with these
  }
}

void ReadAhead::reader_thread(std::size_t index) {
  pthread_setname_np(pthread_self(), "read-ahead");
  std::unique_lock lock(mutex_);
  while (!closing_) {
    Piece piece;
    if (claim(piece)) {
      lock.unlock();
      int error = 0;
      const std::size_t bytes = read(piece, error, false);
      lock.lock();
      settle(piece, bytes, error);
      continue;
    }
    const Clock::time_point now = Clock::now();
    if (running_ > 1 && now - last_wait_ > kSpareAfter) {
      last_wait_ = now;  // the next one follows as much later, if it is of no use either
      break;
    }
    ++idle_;
    work_.wait(lock);
    --idle_;
  }
  --running_;
  --g_threads;
  readers_[index].ended = true;
}

}  // namespace framelane
