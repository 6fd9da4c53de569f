// Not built for ThreadSanitizer: one thread at a time uses it.
#include "daemon/journal_socket.hpp"

#include <gtest/gtest.h>
#include <sys/socket.h>

#include <array>
#include <optional>
#include <stdexcept>
#include <string>

#include "tests/pipeline/source/media_files.hpp"

namespace framelane {
namespace {

/// What journald does: a datagram socket with a name.
class Journal {
 public:
  explicit Journal(const std::string& path) {
    ::unlink(path.c_str());
    const UnixAddress address = unix_address(path);
    if (::bind(socket_.get(), reinterpret_cast<const sockaddr*>(&address.storage),
               address.length) != 0) {
      throw std::runtime_error("cannot bind " + path);
    }
  }

  /// Nothing if no record waits.
  std::optional<std::string> take() const {
    std::array<char, 256> record;
    const ssize_t got = ::recv(socket_.get(), record.data(), record.size(), 0);
    if (got < 0) return std::nullopt;
    return std::string(record.data(), static_cast<std::size_t>(got));
  }

 private:
  const FileDescriptor socket_{::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0)};
};

class JournalSocketTest : public ::testing::Test {
 protected:
  const testing::TempFolder folder_;
  const std::string path_ = folder_ / "socket";
  JournalSocket socket_{path_};
};

TEST_F(JournalSocketTest, ARecordIsHandedOverAsItIs) {
  const Journal journal(path_);
  EXPECT_TRUE(socket_.send("MESSAGE=a\nFEED=gate\n"));
  EXPECT_EQ(journal.take(), "MESSAGE=a\nFEED=gate\n");
}

TEST_F(JournalSocketTest, WithoutAJournalItSaysSo) { EXPECT_FALSE(socket_.send("MESSAGE=a\n")); }

TEST_F(JournalSocketTest, AJournalThatWasStartedAgainIsFound) {
  { const Journal journal(path_); }
  EXPECT_FALSE(socket_.send("MESSAGE=a\n"));
  const Journal journal(path_);
  EXPECT_TRUE(socket_.send("MESSAGE=b\n"));
  EXPECT_EQ(journal.take(), "MESSAGE=b\n");
}

// sd_journal_sendv(3) would wait here.
TEST_F(JournalSocketTest, AJournalThatDoesNotReadHoldsNothingUp) {
  const Journal journal(path_);
  int taken = 0;
  while (taken < 100'000 && socket_.send("MESSAGE=a\n")) ++taken;
  EXPECT_LT(taken, 100'000);
  ASSERT_TRUE(journal.take());
  EXPECT_TRUE(socket_.send("MESSAGE=b\n"));
}

}  // namespace
}  // namespace framelane
