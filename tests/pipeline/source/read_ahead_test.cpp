// Longer than 400 lines: all tests share one fixture, whose files and threads they look into.
#include "pipeline/source/read_ahead.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <optional>
#include <stop_token>
#include <thread>

#include "pipeline/base/failure.hpp"
#include "pipeline/base/processors.hpp"
#include "tests/pipeline/frames/random_bytes.hpp"
#include "tests/pipeline/source/media_files.hpp"

namespace framelane {
namespace {

using namespace std::chrono_literals;
using testing::Bytes;
using Status = ReadAhead::Status;

constexpr std::size_t kSmall = 1000;
/// Three pieces, the last of them short.
constexpr std::size_t kLarge = 2 * ReadAhead::kPieceBytes + 4099;

class ReadAheadTest : public ::testing::Test {
 protected:
  ReadAheadTest() { settings.max_threads = 3; }

  static Bytes make_bytes(std::size_t size) {
    Bytes bytes(size);
    testing::fill_random(bytes, 1);
    return bytes;
  }
  /// A file of so many whole frames, and `rest` bytes of another.
  void make_file(std::size_t frame_bytes, std::size_t frames, std::size_t rest = 0) {
    settings.frame_bytes = frame_bytes;
    bytes = make_bytes(frames * frame_bytes + rest);
    testing::write_file(path, bytes);
    file = std::make_unique<FdReader>(path, settings.timeout, stop.get_token());
  }
  /// Makes the file so long, with what make_bytes has there.
  void change_file(std::size_t size) {
    const std::size_t before = bytes.size();
    bytes = make_bytes(size);
    if (size <= before) {
      ASSERT_EQ(::truncate(path.c_str(), static_cast<off_t>(size)), 0);
      return;
    }
    const int fd = ::open(path.c_str(), O_WRONLY | O_APPEND);
    ASSERT_EQ(::write(fd, bytes.data() + before, size - before),
              static_cast<ssize_t>(size - before));
    ::close(fd);
  }
  std::unique_ptr<ReadAhead> open() {
    return std::make_unique<ReadAhead>(*file, pool, interrupt, settings);
  }
  Status next(ReadAhead& ahead) { return ahead.next(buffer, filled); }
  /// The frame with this number in the file comes next.
  void expect_frame(ReadAhead& ahead, std::size_t number) {
    ASSERT_EQ(next(ahead), Status::kFrame) << number;
    EXPECT_TRUE(std::equal(buffer.get()->data, buffer.get()->data + settings.frame_bytes,
                           bytes.data() + number * settings.frame_bytes))
        << number;
  }
  void expect_end(ReadAhead& ahead, std::size_t rest = 0) {
    EXPECT_EQ(next(ahead), Status::kEnd);
    EXPECT_EQ(filled, rest);
  }
  bool on_consumer() const { return std::this_thread::get_id() == consumer; }

  testing::TempFolder folder;
  const std::string path = folder / "frames.raw";
  std::stop_source stop;
  Interrupt interrupt{stop.get_token()};
  FramePool pool;
  ReadAhead::Settings settings;
  Bytes bytes;
  std::unique_ptr<FdReader> file;
  BufferRef buffer;
  std::size_t filled = 0;
  const std::thread::id consumer = std::this_thread::get_id();
};

/// Sizes of frames, and how many threads may help.
class ReadAheadFramesTest : public ReadAheadTest,
                            public ::testing::WithParamInterface<std::pair<std::size_t, int>> {};

TEST_P(ReadAheadFramesTest, ComeInOrderByteForByteToTheEndOfTheFile) {
  settings.max_threads = GetParam().second;
  make_file(GetParam().first, 12, 77);
  const auto ahead = open();
  for (std::size_t i = 0; i < 12; ++i) expect_frame(*ahead, i);
  expect_end(*ahead, 77);
}

TEST_P(ReadAheadFramesTest, GoOnAtTheStartOfALoop) {
  settings.max_threads = GetParam().second;
  settings.loop = true;
  make_file(GetParam().first, 3, 5);
  const auto ahead = open();
  for (int round = 0; round < 6; ++round) {
    for (std::size_t i = 0; i < 3; ++i) expect_frame(*ahead, i);
    expect_end(*ahead, 5);
    ahead->rewind();
  }
}

TEST_P(ReadAheadFramesTest, OfALoopOfOneFrameComeAgainAndAgain) {
  settings.max_threads = GetParam().second;
  settings.loop = true;
  make_file(GetParam().first, 1);
  const auto ahead = open();
  for (int round = 0; round < 200; ++round) {
    expect_frame(*ahead, 0);
    expect_end(*ahead);
    ahead->rewind();
  }
}

INSTANTIATE_TEST_SUITE_P(Sizes, ReadAheadFramesTest,
                         ::testing::Values(std::pair{kSmall, 0}, std::pair{kSmall, 3},
                                           std::pair{kLarge, 0}, std::pair{kLarge, 1},
                                           std::pair{kLarge, 3}));

TEST_F(ReadAheadTest, AFileThatGrowsIsReadToTheEndThatItHasThen) {
  make_file(kLarge, 2);
  const auto ahead = open();
  expect_frame(*ahead, 0);
  expect_frame(*ahead, 1);  // by now the end is planned
  change_file(4 * kLarge + 9);
  expect_frame(*ahead, 2);
  expect_frame(*ahead, 3);
  expect_end(*ahead, 9);
}

TEST_F(ReadAheadTest, ALoopThatGrowsGoesOnWithWhatIsNew) {
  settings.loop = true;
  make_file(kLarge, 2);
  const auto ahead = open();
  expect_frame(*ahead, 0);
  change_file(4 * kLarge);
  for (std::size_t i = 1; i < 4; ++i) expect_frame(*ahead, i);
  expect_end(*ahead);
  ahead->rewind();
  for (std::size_t i = 0; i < 4; ++i) expect_frame(*ahead, i);
}

TEST_F(ReadAheadTest, ALoopThatShrinksStartsAgainWhereItEndsNow) {
  settings.loop = true;
  settings.max_threads = 0;  // nothing is read before it is wanted
  make_file(kLarge, 4);
  const auto ahead = open();
  expect_frame(*ahead, 0);
  change_file(2 * kLarge + 3);
  for (int round = 0; round < 2; ++round) {
    if (round > 0) expect_frame(*ahead, 0);
    expect_frame(*ahead, 1);
    expect_end(*ahead, 3);
    ahead->rewind();
  }
}

TEST_F(ReadAheadTest, AnEmptyLoopEndsEveryTime) {
  settings.loop = true;
  make_file(kLarge, 0);
  const auto ahead = open();
  for (int round = 0; round < 3; ++round) {
    expect_end(*ahead);
    ahead->rewind();
  }
}

TEST_F(ReadAheadTest, InterruptedAndShortReadsGoOn) {
  make_file(100'000, 5, 99'999);
  std::atomic<unsigned> calls{0};
  settings.read_at = [&](std::uint8_t* data, std::size_t size, std::uint64_t offset) -> ssize_t {
    const unsigned call = ++calls;
    if (call % 3 == 0) {
      errno = EINTR;
      return -1;
    }
    return file->read_at(data, std::min<std::size_t>(size, 100 + call % 1000), offset);
  };
  const auto ahead = open();
  for (std::size_t i = 0; i < 5; ++i) expect_frame(*ahead, i);
  expect_end(*ahead, 99'999);
}

TEST_F(ReadAheadTest, AFailureComesAfterTheFramesBeforeIt) {
  make_file(kLarge, 8);
  const std::size_t bad = 3 * kLarge + ReadAhead::kPieceBytes + 11;
  settings.read_at = [&](std::uint8_t* data, std::size_t size, std::uint64_t offset) -> ssize_t {
    if (offset + size > bad && offset < bad) size = bad - offset;
    if (offset < bad) return file->read_at(data, size, offset);
    errno = EIO;
    return -1;
  };
  const auto ahead = open();
  for (std::size_t i = 0; i < 3; ++i) expect_frame(*ahead, i);
  EXPECT_EQ(next(*ahead), Status::kFailed);
  EXPECT_EQ(ahead->error(), EIO);
  EXPECT_EQ(filled, bad - 3 * kLarge);
}

TEST_F(ReadAheadTest, AFileThatHasNoDataForNowTimesOut) {
  settings.timeout = 20ms;
  make_file(kLarge, 2);
  std::atomic<bool> empty{false};
  settings.read_at = [&](std::uint8_t* data, std::size_t size, std::uint64_t offset) -> ssize_t {
    if (offset < kLarge || !empty) return file->read_at(data, size, offset);
    errno = EAGAIN;
    return -1;
  };
  empty = true;
  const auto ahead = open();
  expect_frame(*ahead, 0);
  EXPECT_EQ(next(*ahead), Status::kFailed);
  EXPECT_EQ(ahead->error(), EAGAIN);
  empty = false;
  expect_frame(*ahead, 1);
}

TEST_F(ReadAheadTest, WhoeverDoesNotWaitHasOneThread) {
  make_file(kSmall, 40);
  std::atomic<std::size_t> begun{0};
  settings.read_at = [&](std::uint8_t* data, std::size_t size, std::uint64_t offset) {
    ++begun;
    return file->read_at(data, size, offset);
  };
  const int before = ReadAhead::threads();
  const auto ahead = open();
  for (std::size_t i = 0; i < 35; ++i) {
    expect_frame(*ahead, i);
    // One call reads a frame: until that of the one after the next has begun, the next is ready.
    while (begun < i + 3) std::this_thread::yield();
  }
  EXPECT_EQ(ReadAhead::threads(), before + 1);
}

TEST_F(ReadAheadTest, WhoeverWaitsGetsMoreThreadsUpToTheMost) {
  settings.loop = true;
  settings.max_threads = 2;
  make_file(kLarge, 4);
  const int before = ReadAhead::threads();
  const int expected = std::min(2, processors());  // all files together have no more
  int most = 0;
  {
    const auto ahead = open();
    const auto deadline = std::chrono::steady_clock::now() + 60s;
    for (std::size_t i = 0; i < 100 || most < expected; ++i) {
      ASSERT_LT(std::chrono::steady_clock::now(), deadline);
      if (i > 0 && i % 4 == 0) {
        expect_end(*ahead);
        ahead->rewind();
      }
      expect_frame(*ahead, i % 4);
      most = std::max(most, ReadAhead::threads() - before);
    }
  }
  EXPECT_EQ(most, expected);
  EXPECT_EQ(ReadAhead::threads(), before);
}

TEST_F(ReadAheadTest, MemoryIsBounded) {
  settings.loop = true;
  make_file(ReadAhead::kPieceBytes, 64);
  const std::size_t before = host_memory_bytes();
  const auto ahead = open();
  for (std::size_t i = 0; i < 64; ++i) expect_frame(*ahead, i);
  const std::size_t planned = 4 * ReadAhead::kPiecesAhead;  // by three threads and the consumer
  EXPECT_LE(host_memory_bytes() - before, (planned + 2) * (ReadAhead::kPieceBytes + 4096));
}

/// Has memory for so many buffers.
class FewBuffers : public HostRegistrar {
 public:
  explicit FewBuffers(int buffers) : left_(buffers) { set_host_registrar(this); }
  ~FewBuffers() override { set_host_registrar(nullptr); }
  void add(const std::uint8_t*, std::size_t, HostAccess) override {
    if (left_ == 0) throw FeedError(FeedFault::kMemory, "no memory");
    --left_;
  }
  bool remove(const std::uint8_t*) noexcept override {
    ++left_;
    return true;
  }

 private:
  std::atomic<int> left_;
};

TEST_F(ReadAheadTest, WhereMemoryIsShortItReadsAsFarAheadAsThereIsRoom) {
  make_file(kLarge, 10);
  const FewBuffers memory(2);
  {
    const auto ahead = open();
    for (std::size_t i = 0; i < 10; ++i) expect_frame(*ahead, i);
    expect_end(*ahead);
  }
  buffer = {};
}

TEST_F(ReadAheadTest, WithoutMemoryForOneFrameItFails) {
  make_file(kLarge, 2);
  const FewBuffers memory(0);
  const auto ahead = open();
  EXPECT_THROW(next(*ahead), FeedError);
}

/// Reads by other threads than the consumer's do not return while they are held. The consumer's
/// wait until there is one.
class HeldReadTest : public ReadAheadTest {
 protected:
  HeldReadTest() {
    settings.max_threads = 1;
    settings.read_at = [this](std::uint8_t* data, std::size_t size, std::uint64_t offset) {
      std::unique_lock lock(mutex);
      if (on_consumer()) {
        changed.wait(lock, [this] { return held > 0; });
      } else if (held_offset.value_or(offset) == offset) {
        ++held;
        changed.notify_all();
        changed.wait(lock, [this] { return released; });
      }
      lock.unlock();
      return file->read_at(data, size, offset);
    };
  }
  ~HeldReadTest() override { release(); }
  void release() {
    const std::lock_guard lock(mutex);
    released = true;
    changed.notify_all();
  }
  void wait_until_held() {
    std::unique_lock lock(mutex);
    changed.wait(lock, [this] { return held > 0; });
  }
  void wait_until_overdue() const {
    while (!interrupt.overdue()) std::this_thread::yield();
  }

  std::mutex mutex;
  std::condition_variable changed;
  std::optional<std::uint64_t> held_offset;  // none: reads from anywhere are held
  int held = 0;
  bool released = false;
};

TEST_F(HeldReadTest, AStopEndsTheWaitForOne) {
  settings.timeout = 20ms;
  make_file(kLarge, 4);
  const auto ahead = open();
  std::jthread stopper([this] {
    wait_until_held();
    wait_until_overdue();
    stop.request_stop();
  });
  Status status = next(*ahead);
  while (status == Status::kFrame) status = next(*ahead);
  EXPECT_EQ(status, Status::kStopped);
  release();
}

TEST_F(HeldReadTest, TheWatchSeesThatTheWaitForOneIsOverdue) {
  settings.timeout = 20ms;
  make_file(kLarge, 4);
  const auto ahead = open();
  std::jthread watch([this] {
    wait_until_held();
    wait_until_overdue();
    release();
  });
  for (std::size_t i = 0; i < 4; ++i) expect_frame(*ahead, i);
  expect_end(*ahead);
}

TEST_F(HeldReadTest, TheWatchSeesThatTheEndWaitsForOne) {
  settings.timeout = 20ms;
  make_file(kLarge, 4);
  auto ahead = open();
  std::jthread stopper([this] {
    wait_until_held();
    stop.request_stop();
  });
  while (next(*ahead) == Status::kFrame) {
  }
  interrupt.disarm();
  std::jthread watch([this] {
    wait_until_overdue();
    release();
  });
  ahead.reset();
  EXPECT_FALSE(interrupt.under_way());
}

TEST_F(HeldReadTest, ALoopThatGrewWaitsForWhatIsReadInVain) {
  settings.loop = true;
  settings.timeout = 20ms;
  held_offset = 0;
  make_file(kSmall, 2);
  const auto ahead = open();
  expect_frame(*ahead, 0);  // while it is read for the next round, in vain
  change_file(4 * kSmall);
  std::jthread watch([this] {
    wait_until_overdue();
    release();
  });
  for (std::size_t i = 1; i < 4; ++i) expect_frame(*ahead, i);
  expect_end(*ahead);
}

}  // namespace
}  // namespace framelane
