#include "pipeline/source/fd_reader.hpp"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <string>
#include <thread>

#include "pipeline/base/failure.hpp"
#include "pipeline/source/source_failure.hpp"
#include "tests/pipeline/output/old_files.hpp"
#include "tests/pipeline/source/media_files.hpp"

namespace framelane {
namespace {

using namespace std::chrono_literals;
using testing::Bytes;
using ::testing::HasSubstr;
using testing::TempFolder;

class FdReaderTest : public ::testing::Test {
 protected:
  std::string fifo() {
    const std::string path = folder / "fifo";
    EXPECT_EQ(::mkfifo(path.c_str(), 0600), 0);
    return path;
  }
  static void write_to(const std::string& path, const Bytes& bytes) {
    const int fd = ::open(path.c_str(), O_WRONLY);
    ASSERT_GE(fd, 0);
    ASSERT_EQ(::write(fd, bytes.data(), bytes.size()), static_cast<ssize_t>(bytes.size()));
    ::close(fd);
  }
  static Bytes read_all(FdReader& reader) {
    Bytes all;
    std::uint8_t chunk[7];
    for (;;) {
      const FdReader::Result result = reader.read(chunk, sizeof chunk);
      if (result.status != FdReader::Status::kData) return all;
      all.insert(all.end(), chunk, chunk + result.bytes);
    }
  }

  TempFolder folder;
  std::stop_source stop;
};

TEST_F(FdReaderTest, AFileIsReadToItsEndAndAgainAfterRewinding) {
  const Bytes bytes{1, 2, 3, 4, 5, 6, 7, 8, 9};
  testing::write_file(folder / "file", bytes);
  FdReader reader(folder / "file", 1s, stop.get_token());
  EXPECT_EQ(read_all(reader), bytes);
  reader.rewind();
  EXPECT_EQ(read_all(reader), bytes);
}

TEST_F(FdReaderTest, WhatMayNotBeReadIsToldWithTheRemedy) {
  const std::string path = fifo();
  ASSERT_EQ(::chmod(path.c_str(), 0), 0);
  const testing::WithoutRootsRights denied;
  try {
    const FdReader reader(path, 1s, stop.get_token());
    FAIL() << "opened";
  } catch (const IoError& error) {
    EXPECT_EQ(std::string(error.what()),
              "cannot open " + path + ": Permission denied; let framelane's user (uid " +
                  std::to_string(::geteuid()) +
                  ") read it and search the folders above it, by owner, group or mode");
  }
}

TEST(DenialRemedyTest, TellsDevicesFromFiles) {
  EXPECT_EQ(denial_remedy(ENOENT, "/dev/null"), "");
  EXPECT_EQ(denial_remedy(EPERM, "/dev/null"),
            "; allow it: DeviceAllow=/dev/null rw in the service's unit");
  EXPECT_THAT(denial_remedy(EACCES, "/dev/null"),
              HasSubstr(" be in the device's group, which is "));
  EXPECT_THAT(denial_remedy(EACCES, "/home/a.mp4"), HasSubstr("ProtectHome="));
}

TEST_F(FdReaderTest, WhereFileDescriptorsAreShortTheRemedyIsNamed) {
  testing::write_file(folder / "file", {1});
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &before), 0);
  const rlimit none{0, before.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &none), 0);
  std::string message;
  try {
    const FdReader reader(folder / "file", 1s, stop.get_token());
  } catch (const IoError& error) {
    message = error.what();
  }
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &before), 0);
  EXPECT_EQ(message, "cannot open " + (folder / "file") +
                         ": file descriptors are short (Too many open files): raise LimitNOFILE= "
                         "of the service, or ulimit -n");
}

TEST_F(FdReaderTest, AnyPartOfAFileIsReadWithoutMovingOn) {
  const Bytes bytes{1, 2, 3, 4, 5, 6, 7, 8, 9};
  testing::write_file(folder / "file", bytes);
  FdReader reader(folder / "file", 1s, stop.get_token());
  ASSERT_TRUE(reader.positional());
  EXPECT_EQ(reader.size(), 9u);
  Bytes part(4);
  EXPECT_EQ(reader.read_at(part.data(), 4, 7), 2);
  EXPECT_EQ(part, (Bytes{8, 9, 0, 0}));
  EXPECT_EQ(reader.read_at(part.data(), 4, 9), 0);
  EXPECT_EQ(read_all(reader), bytes);
}

// Another process may be reading it too, from where this one left off.
TEST_F(FdReaderTest, AFileAsStandardInputIsReadFromWhereItStands) {
  testing::write_file(folder / "file", {1, 2, 3, 4});
  const int input = ::dup(STDIN_FILENO);
  const int file = ::open((folder / "file").c_str(), O_RDONLY | O_CLOEXEC);
  ASSERT_EQ(::dup2(file, STDIN_FILENO), STDIN_FILENO);
  ::close(file);
  ASSERT_EQ(::lseek(STDIN_FILENO, 2, SEEK_SET), 2);
  {
    FdReader reader("-", 1s, stop.get_token());
    EXPECT_FALSE(reader.positional());
    EXPECT_EQ(read_all(reader), (Bytes{3, 4}));
  }
  ::dup2(input, STDIN_FILENO);
  ::close(input);
}

TEST_F(FdReaderTest, AFailedReadNamesTheFileAndTheCause) {
  testing::write_file(folder / "file", {1});
  const FdReader reader(folder / "file", 1s, stop.get_token());
  const IoError error = reader.read_error(EIO);
  EXPECT_EQ(error.code(), IoFault::kIo);
  EXPECT_EQ(error.what(), "cannot read " + (folder / "file") + ": Input/output error");
}

TEST_F(FdReaderTest, OpeningAFifoDoesNotWaitAndReadingWaitsForItsWriter) {
  const std::string path = fifo();
  FdReader reader(path, 10s, stop.get_token());
  const Bytes bytes{1, 2, 3};
  std::jthread writer([&] { write_to(path, bytes); });
  EXPECT_EQ(read_all(reader), bytes);
}

TEST_F(FdReaderTest, AWriterThatLeavesWithoutAByteIsNotTheEnd) {
  const std::string path = fifo();
  FdReader reader(path, 10s, stop.get_token());
  write_to(path, {});
  const Bytes bytes{4, 5};
  std::jthread writer([&] { write_to(path, bytes); });
  EXPECT_EQ(read_all(reader), bytes);
}

TEST_F(FdReaderTest, AFifoWithoutAWriterTimesOut) {
  FdReader reader(fifo(), 20ms, stop.get_token());
  std::uint8_t byte = 0;
  try {
    reader.read(&byte, 1);
    FAIL() << "nothing was thrown";
  } catch (const IoError& error) {
    EXPECT_EQ(error.code(), IoFault::kTimeout);
  }
}

TEST_F(FdReaderTest, AWriterThatFallsSilentTimesOut) {
  const std::string path = fifo();
  FdReader reader(path, 20ms, stop.get_token());
  const int silent = ::open(path.c_str(), O_WRONLY);
  ASSERT_EQ(::write(silent, "x", 1), 1);
  std::uint8_t byte = 0;
  EXPECT_EQ(reader.read(&byte, 1).bytes, 1u);
  EXPECT_THROW(reader.read(&byte, 1), IoError);
  ::close(silent);
}

// A socket with an entry in its error queue: poll() always calls it ready, and read() finds no
// data.
TEST_F(FdReaderTest, ADescriptorThatIsReadyWithoutDataTimesOut) {
  const int udp = ::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  const int on = 1;
  ASSERT_EQ(::setsockopt(udp, IPPROTO_IP, IP_RECVERR, &on, sizeof on), 0);
  sockaddr_in nobody{};
  nobody.sin_family = AF_INET;
  nobody.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  nobody.sin_port = htons(1);
  ASSERT_EQ(::connect(udp, reinterpret_cast<const sockaddr*>(&nobody), sizeof nobody), 0);
  ASSERT_EQ(::send(udp, "x", 1, 0), 1);
  pollfd refused{udp, 0, 0};
  ASSERT_EQ(::poll(&refused, 1, 10'000), 1);
  int error = 0;
  socklen_t size = sizeof error;
  ASSERT_EQ(::getsockopt(udp, SOL_SOCKET, SO_ERROR, &error, &size), 0);
  ASSERT_EQ(::poll(&refused, 1, 0), 1);

  const int input = ::dup(STDIN_FILENO);
  ASSERT_EQ(::dup2(udp, STDIN_FILENO), STDIN_FILENO);
  ::close(udp);
  {
    FdReader reader("-", 50ms, stop.get_token());
    std::uint8_t byte = 0;
    EXPECT_THROW(reader.read(&byte, 1), IoError);
  }
  ::dup2(input, STDIN_FILENO);
  ::close(input);
}

TEST_F(FdReaderTest, AStopEndsAWait) {
  FdReader reader(fifo(), 1h, stop.get_token());
  std::jthread stopper([&] { stop.request_stop(); });
  std::uint8_t byte = 0;
  EXPECT_EQ(reader.read(&byte, 1).status, FdReader::Status::kStopped);
}

TEST_F(FdReaderTest, AFifoGetsAPipeLargerThanTheUsual) {
  const std::string path = fifo();
  FdReader reader(path, 1s, stop.get_token());
  const int writer = ::open(path.c_str(), O_WRONLY | O_NONBLOCK);
  EXPECT_GT(::fcntl(writer, F_GETPIPE_SZ), 65536);
  ::close(writer);
}

TEST_F(FdReaderTest, AMissingFileSaysWhatToDo) {
  try {
    FdReader reader(folder / "missing", 1s, stop.get_token());
    FAIL() << "nothing was thrown";
  } catch (const IoError& error) {
    EXPECT_EQ(error.code(), IoFault::kIo);
    EXPECT_NE(std::string(error.what()).find("check input.url"), std::string::npos);
  }
}

}  // namespace
}  // namespace framelane
