#include "pipeline/source/shm_connection.hpp"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cstring>
#include <map>
#include <memory>
#include <stop_token>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "capture/framelane_capture.h"
#include "pipeline/base/failure.hpp"
#include "tests/pipeline/source/media_files.hpp"

namespace framelane {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;

constexpr std::size_t kFrameBytes = 4096;
constexpr std::size_t kMostBytes = std::size_t{1} << 20;
constexpr int kPatienceMs = 60'000;

struct CloseCapture {
  void operator()(framelane_capture* capture) const { framelane_capture_close(capture); }
};

/// A producer of four slots, every frame of which every reader must get.
class ShmConnectionTest : public ::testing::Test {
 protected:
  ShmConnectionTest() : path_(folder_ / "cap.sock") { open_capture(-1); }
  /// `reader_timeout_ms`: a reader that gives nothing back for so long is cut off, if there are
  /// others.
  void open_capture(int reader_timeout_ms) {
    capture_.reset();
    framelane_capture_options options{};
    options.socket_path = path_.c_str();
    options.frame_size = kFrameBytes;
    options.slots = 4;
    options.lockstep = 1;
    options.reader_timeout_ms = reader_timeout_ms;
    framelane_capture* capture = nullptr;
    EXPECT_EQ(framelane_capture_open(&options, &capture), 0) << framelane_capture_explain();
    capture_.reset(capture);
  }
  std::shared_ptr<ShmConnection> connect(const std::stop_token& stop = {},
                                         std::chrono::milliseconds linger = 60s) {
    auto connection = ShmConnection::open(path_, kMostBytes, 60s, stop, linger);
    framelane_capture_readers(capture_.get(), 1, kPatienceMs);
    return connection;
  }
  int publish(int patience_ms = kPatienceMs) {
    void* frame = nullptr;
    const int status = framelane_capture_borrow(capture_.get(), patience_ms, &frame);
    return status < 0 ? status : framelane_capture_publish(capture_.get(), frame, 0);
  }
  static std::string why_spoiled(const BufferRef& frame) {
    return ShmConnection::loan_of(frame).why_spoiled();
  }
  int readers() { return framelane_capture_readers(capture_.get(), 0, 0); }

  const testing::TempFolder folder_;
  const std::string path_;
  std::unique_ptr<framelane_capture, CloseCapture> capture_;
};

TEST_F(ShmConnectionTest, AFrameComesBackWithItsLastReference) {
  const auto connection = connect();
  ASSERT_EQ(publish(), 1);
  auto announced = connection->next();
  ASSERT_TRUE(announced);
  BufferRef frame = connection->lend(*std::move(announced));
  BufferRef copy = frame;
  frame = {};
  EXPECT_EQ(connection->lent(), 1);
  EXPECT_EQ(framelane_capture_drain(capture_.get(), 0), -EAGAIN);
  copy = {};
  EXPECT_EQ(connection->lent(), 0);
  EXPECT_EQ(framelane_capture_drain(capture_.get(), kPatienceMs), 0);
}

TEST_F(ShmConnectionTest, AConnectionThatWasLeftStaysUntilItsFramesAreBack) {
  auto left = connect();
  publish();
  BufferRef frame = left->lend(left->next().value());
  left->leave();
  left.reset();
  EXPECT_EQ(readers(), 1);
  frame = {};
  readers();  // takes the acknowledgement; the end comes behind it
  EXPECT_EQ(readers(), 0);
}

/// Its producer waits for every reader, also for one that was left.
TEST_F(ShmConnectionTest, TheNextConnectionGivesBackWhatIsAnnouncedToOneThatWasLeft) {
  auto left = connect();
  publish();
  BufferRef frame = left->lend(left->next().value());
  left->leave();
  const auto next = ShmConnection::open(path_, kMostBytes, 60s, {});
  ASSERT_EQ(framelane_capture_readers(capture_.get(), 2, kPatienceMs), 2);
  std::thread producer([this] {
    for (int i = 0; i < 20; ++i) EXPECT_EQ(publish(), 2);
  });
  for (int i = 0; i < 20; ++i) next->give_back(next->next().value());
  producer.join();
  frame = {};
}

TEST_F(ShmConnectionTest, AConnectionWhoseFramesDoNotComeBackIsClosedAndTheyAreSpoiled) {
  auto left = connect({}, 0ms);
  publish();
  BufferRef frame = left->lend(left->next().value());
  left->leave();
  EXPECT_EQ(why_spoiled(frame), "");
  const auto next = ShmConnection::open(path_, kMostBytes, 60s, {});
  EXPECT_THAT(why_spoiled(frame), HasSubstr("they did not come back in time"));
  EXPECT_EQ(framelane_capture_drain(capture_.get(), kPatienceMs), 0);
  EXPECT_EQ(readers(), 1);
  frame = {};
}

/// The thread that reads it hangs elsewhere, say in the opening of an encoder.
TEST_F(ShmConnectionTest, AConnectionThatIsNotLeftAfterItsStopIsClosedByAnother) {
  std::stop_source stop;
  auto hangs = connect(stop.get_token(), 0ms);
  publish();
  publish();
  BufferRef frame = hangs->lend(hangs->next().value());
  const auto other = ShmConnection::open(path_, kMostBytes, 60s, {});
  EXPECT_EQ(why_spoiled(frame), "");
  stop.request_stop();
  // It is seen, and closed when it is seen again.
  for (int i = 0; i < 2; ++i) ShmConnection::open(path_, kMostBytes, 60s, {})->leave();
  EXPECT_THAT(why_spoiled(frame), HasSubstr("they did not come back in time"));
  EXPECT_EQ(framelane_capture_drain(capture_.get(), kPatienceMs), 0);
  frame = {};
  hangs->leave();
}

TEST_F(ShmConnectionTest, FramesOfAReaderThatIsCutOffAreSpoiledAndThoseOfAProducerThatEndsAreNot) {
  open_capture(50);
  const auto slow = connect();
  publish();
  BufferRef frame = slow->lend(slow->next().value());
  const auto quick = ShmConnection::open(path_, kMostBytes, 60s, {});
  ASSERT_EQ(framelane_capture_readers(capture_.get(), 2, kPatienceMs), 2);
  BufferRef last;
  for (int i = 0; i < 4; ++i) {
    EXPECT_EQ(why_spoiled(frame), "");
    publish();
    last = quick->lend(quick->next().value());
  }
  EXPECT_EQ(readers(), 1) << "it was waited for though it holds the last free slot";
  EXPECT_THAT(why_spoiled(frame), HasSubstr("the producer has disconnected this feed"));
  EXPECT_EQ(why_spoiled(last), "");
  std::atomic<bool> closed{false};
  std::thread looks([&] {
    while (!closed) EXPECT_EQ(why_spoiled(last), "");
  });
  capture_.reset();
  closed = true;
  looks.join();
  EXPECT_EQ(why_spoiled(last), "");
}

TEST_F(ShmConnectionTest, AnAreaThatIsLargerThanItMayBeIsRefused) {
  const auto connection = ShmConnection::open(path_, kFrameBytes, 60s, {});
  ASSERT_EQ(framelane_capture_readers(capture_.get(), 1, kPatienceMs), 1);
  publish();
  try {
    connection->next();
    FAIL();
  } catch (const IoError& error) {
    EXPECT_NE(std::string(error.what()).find("maps at most 4096"), std::string::npos);
  }
}

/// Something in /dev/shm.
class SharedAreaTest : public ::testing::Test {
 protected:
  SharedAreaTest() : name_("/framelane-test-" + std::to_string(::getpid())) {}
  ~SharedAreaTest() override { ::unlink(path().c_str()); }

  std::string path() const { return "/dev/shm" + name_; }
  void make(std::size_t bytes) const {
    const int fd = ::open(path().c_str(), O_RDWR | O_CREAT, 0600);
    ASSERT_EQ(::ftruncate(fd, static_cast<off_t>(bytes)), 0);
    ::close(fd);
  }
  std::string refusal(std::size_t bytes, uid_t owner) const {
    try {
      const SharedArea area(name_, bytes, owner);
    } catch (const IoError& error) {
      return error.what();
    }
    return "";
  }

  const std::string name_;
};

TEST_F(SharedAreaTest, IsRegisteredForReadingWhileItLives) {
  class Ledger : public HostRegistrar {
   public:
    Ledger() { set_host_registrar(this); }
    ~Ledger() override { set_host_registrar(nullptr); }
    void add(const std::uint8_t* data, std::size_t bytes, HostAccess access) override {
      if (access == HostAccess::kRead) readable_[data] = bytes;
    }
    bool remove(const std::uint8_t* data) noexcept override {
      readable_.erase(data);
      return true;
    }
    std::map<const std::uint8_t*, std::size_t> readable_;
  };
  make(10'000);
  Ledger ledger;
  {
    const SharedArea area(name_, 10'000, ::getuid());
    EXPECT_EQ(ledger.readable_.at(area.data()), 12'288u);
    // What reads beyond the end finds zeros there.
    std::vector<std::uint8_t> behind(SharedArea::kReadableBehind, 1);
    std::memcpy(behind.data(), area.data() + 12'288, behind.size());
    EXPECT_EQ(behind, std::vector<std::uint8_t>(behind.size(), 0));
  }
  EXPECT_TRUE(ledger.readable_.empty());
}

TEST_F(SharedAreaTest, IsNotTakenIfItIsSmallerThanItsProducerSays) {
  make(4096);
  EXPECT_NE(refusal(4097, ::getuid()).find("has 4097 bytes, and it has 4096"), std::string::npos);
}

TEST_F(SharedAreaTest, IsNotTakenIfItIsAnothersThanTheProducers) {
  make(4096);
  EXPECT_NE(refusal(4096, ::getuid() + 1).find("may only give its own"), std::string::npos);
  EXPECT_EQ(refusal(4096, 0), "");
}

/// A pipe would hold up whoever opens it.
TEST_F(SharedAreaTest, IsNotTakenIfItIsNoMemory) {
  ASSERT_EQ(::mkfifo(path().c_str(), 0600), 0);
  EXPECT_NE(refusal(4096, ::getuid()).find("is no shared memory"), std::string::npos);
}

}  // namespace
}  // namespace framelane
