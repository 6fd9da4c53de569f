// Not built for ThreadSanitizer: one thread opens and closes.
#include <grp.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <fstream>

#include "tests/capture/capture_fixture.hpp"

namespace framelane::testing {
namespace {

class CaptureOpenTest : public CaptureTest {
 protected:
  /// A producer that is killed while it has a reader and a socket. The name of its area.
  std::string leave_a_killed_producer() {
    const std::filesystem::path told = folder / "area";
    const pid_t child = in_child([&] {
      const Capture capture = open();
      std::ofstream(told) << framelane_capture_area_name(capture.get()) << std::flush;
      return raise(SIGKILL);
    });
    EXPECT_EQ(wait_for_child(child), -SIGKILL);
    std::string name;
    std::ifstream(told) >> name;
    EXPECT_FALSE(name.empty());
    return name;
  }
  struct stat status_of(const std::string& file) const {
    struct stat status = {};
    EXPECT_EQ(lstat(file.c_str(), &status), 0) << file;
    return status;
  }
  /// The mistake's sentence has all of `words`.
  static void expect_said(std::initializer_list<const char*> words) {
    const std::string said = framelane_capture_explain();
    for (const char* word : words) EXPECT_NE(said.find(word), std::string::npos) << said;
  }
};

TEST_F(CaptureOpenTest, ClosingLeavesNothing) {
  Capture capture = open();
  const std::string area = framelane_capture_area_name(capture.get());
  EXPECT_TRUE(std::filesystem::exists("/dev/shm" + area));
  EXPECT_TRUE(std::filesystem::is_socket(path));
  capture.reset();
  EXPECT_FALSE(std::filesystem::exists("/dev/shm" + area));
  EXPECT_FALSE(std::filesystem::exists(path));
}

TEST_F(CaptureOpenTest, TheNameOfTheAreaSaysThatItHasCaptureTimes) {
  const Capture capture = open();
  const std::string area = framelane_capture_area_name(capture.get());
  EXPECT_TRUE(area.starts_with("/framelane1-")) << area;
}

TEST_F(CaptureOpenTest, ByDefaultTheGroupMayConnectAndReadAndNobodyElseMayWrite) {
  const Capture capture = open();
  EXPECT_EQ(status_of(path).st_mode & 07777U, 0660U);
  const auto area = status_of(std::string("/dev/shm") + framelane_capture_area_name(capture.get()));
  EXPECT_EQ(area.st_mode & 07777U, 0640U);
}

TEST_F(CaptureOpenTest, TheModeIsThatOfSocketAndArea) {
  auto wanted = options();
  wanted.mode = 0606;
  const Capture capture = open(wanted);
  EXPECT_EQ(status_of(path).st_mode & 07777U, 0606U);
  const auto area = status_of(std::string("/dev/shm") + framelane_capture_area_name(capture.get()));
  EXPECT_EQ(area.st_mode & 07777U, 0604U);
}

/// A group that this process may give files to: root any, others one of their own.
gid_t another_group() {
  if (geteuid() == 0) return 12345;
  std::vector<gid_t> groups(static_cast<std::size_t>(getgroups(0, nullptr)));
  if (getgroups(static_cast<int>(groups.size()), groups.data()) < 0) return getegid();
  const auto other =
      std::find_if(groups.begin(), groups.end(), [](gid_t group) { return group != getegid(); });
  return other == groups.end() ? getegid() : *other;
}

TEST_F(CaptureOpenTest, TheGroupIsThatOfSocketAndArea) {
  const std::string group = std::to_string(another_group());
  auto wanted = options();
  wanted.group = group.c_str();
  const Capture capture = open(wanted);
  EXPECT_EQ(std::to_string(status_of(path).st_gid), group);
  const auto area = status_of(std::string("/dev/shm") + framelane_capture_area_name(capture.get()));
  EXPECT_EQ(std::to_string(area.st_gid), group);
}

TEST_F(CaptureOpenTest, AFolderWithTheSetgidBitGivesItsGroupToTheAreaToo) {
  ASSERT_EQ(chown(folder.c_str(), static_cast<uid_t>(-1), another_group()), 0);
  ASSERT_EQ(chmod(folder.c_str(), 02770), 0);
  const Capture capture = open();
  const auto area = status_of(std::string("/dev/shm") + framelane_capture_area_name(capture.get()));
  EXPECT_EQ(area.st_gid, another_group());
}

TEST_F(CaptureOpenTest, TheSocketOfAKilledProducerIsTakenOver) {
  leave_a_killed_producer();
  ASSERT_TRUE(std::filesystem::is_socket(path));
  const Capture capture = open();
  EXPECT_TRUE(RawReader(path).is_connected());
}

TEST_F(CaptureOpenTest, TheAreaOfAKilledProducerIsRemoved) {
  const std::string left = leave_a_killed_producer();
  const Capture capture = open();
  EXPECT_FALSE(std::filesystem::exists("/dev/shm" + left));
}

TEST_F(CaptureOpenTest, TheAreaOfAProducerThatRunsIsKept) {
  const Capture first = open();
  const std::string other = path + "2";
  auto wanted = options();
  wanted.socket_path = other.c_str();
  const Capture second = open(wanted);
  EXPECT_TRUE(join(first)->area_size() > 0);
}

TEST_F(CaptureOpenTest, ASocketOnWhichAProducerListensIsNotTakenOver) {
  const Capture first = open();
  EXPECT_EQ(refusal(options()), -EADDRINUSE);
  expect_said({path.c_str(), "another program listens there", "use another path"});
  EXPECT_TRUE(join(first)->area_size() > 0);
}

TEST_F(CaptureOpenTest, ASocketWithAFullQueueIsNotTakenOver) {
  const int listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  path.copy(address.sun_path, sizeof address.sun_path - 1);
  ASSERT_EQ(bind(listener, reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
  ASSERT_EQ(::listen(listener, 0), 0);
  const RawReader in_the_queue(path);
  EXPECT_EQ(refusal(options()), -EADDRINUSE);
  close(listener);
}

TEST_F(CaptureOpenTest, AFileThatIsNoSocketIsKept) {
  std::ofstream(path) << "mine";
  EXPECT_EQ(refusal(options()), -EEXIST);
  expect_said({path.c_str(), "is no socket"});
  EXPECT_EQ(std::filesystem::file_size(path), 4U);
}

TEST_F(CaptureOpenTest, ClosingKeepsASocketThatAnotherHasMadeThere) {
  Capture first = open();
  std::filesystem::remove(path);
  const Capture second = open();
  first.reset();
  EXPECT_TRUE(join(second)->area_size() > 0);
}

TEST_F(CaptureOpenTest, AFolderThatIsMissingIsNamed) {
  const std::string nowhere = folder / "missing" / "cap.sock";
  auto wanted = options();
  wanted.socket_path = nowhere.c_str();
  EXPECT_EQ(refusal(wanted), -ENOENT);
  expect_said({nowhere.c_str(), "folder", "create it first"});
}

TEST_F(CaptureOpenTest, FramesThatAreLargerThanTheSharedMemoryAreRefusedAtOnce) {
  auto wanted = options();
  wanted.frame_size = std::size_t{1} << 50;
  EXPECT_EQ(refusal(wanted), -ENOSPC);
  expect_said({path.c_str(), "/dev/shm has no room", "fewer slots"});
  EXPECT_FALSE(std::filesystem::exists(path));
}

TEST_F(CaptureOpenTest, AFailureLeavesNoArea) {
  const auto before = own_areas();
  auto wanted = options();
  wanted.frame_size = std::size_t{1} << 50;
  EXPECT_EQ(refusal(wanted), -ENOSPC);
  EXPECT_EQ(own_areas(), before);
}

TEST_F(CaptureOpenTest, OptionsThatMakeNoSenseAreRefusedWithTheReason) {
  auto wanted = options();
  wanted.socket_path = nullptr;
  EXPECT_EQ(refusal(wanted), -EINVAL);
  expect_said({"socket_path is missing"});

  wanted = options();
  wanted.frame_size = 0;
  EXPECT_EQ(refusal(wanted), -EINVAL);
  expect_said({"frame_size is 0"});
  wanted.frame_size = SIZE_MAX;
  EXPECT_EQ(refusal(wanted), -EINVAL);

  for (const int slots : {-1, 1, 65}) {
    EXPECT_EQ(refusal(options(slots)), -EINVAL) << slots;
    expect_said({"slots is", "2 to 64"});
  }
  wanted = options();
  wanted.mode = 660;  // without the leading 0
  EXPECT_EQ(refusal(wanted), -EINVAL);
  expect_said({"mode is 1224", "0660"});

  wanted = options();
  wanted.group = "no-such-group";
  EXPECT_EQ(refusal(wanted), -EINVAL);
  expect_said({"no-such-group"});
}

TEST_F(CaptureOpenTest, ThePathMayHaveAsManyBytesAsASocketsMay) {
  std::string longest = folder / "";
  longest.append(107 - longest.size(), 'x');
  auto wanted = options();
  wanted.socket_path = longest.c_str();
  EXPECT_NE(open(wanted), nullptr);
  longest += 'x';
  wanted.socket_path = longest.c_str();
  EXPECT_EQ(refusal(wanted), -ENAMETOOLONG);
  expect_said({"108 bytes", "107"});
}

TEST_F(CaptureOpenTest, SixtyFourSlotsCanBeBorrowedAtOnce) {
  auto wanted = options(64);
  wanted.prefault = 1;
  const Capture capture = open(wanted);
  void* frame = nullptr;
  for (int i = 0; i < 64; ++i) {
    EXPECT_EQ(framelane_capture_borrow(capture.get(), 0, &frame), 0) << i;
  }
  EXPECT_EQ(framelane_capture_borrow(capture.get(), 0, &frame), -EAGAIN);
}

}  // namespace
}  // namespace framelane::testing
