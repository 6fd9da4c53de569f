// Not built for ThreadSanitizer: processes, not threads.
#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <set>

#include "tests/capture/capture_fixture.hpp"

namespace framelane::testing {
namespace {

using CaptureProcessTest = CaptureTest;

std::set<int> open_descriptors() {
  std::set<int> descriptors;
  for (int fd = 0; fd < 256; ++fd) {
    if (fcntl(fd, F_GETFD) >= 0) descriptors.insert(fd);
  }
  return descriptors;
}

TEST_F(CaptureProcessTest, EveryCallButCloseIsRefusedInAForkedChild) {
  const Capture capture = open();
  void* frame = nullptr;
  ASSERT_EQ(framelane_capture_borrow(capture.get(), 0, &frame), 0);
  const pid_t child = in_child([&] {
    void* other = nullptr;
    framelane_capture_counts counts;
    const int results[] = {framelane_capture_borrow(capture.get(), -1, &other),
                           framelane_capture_publish(capture.get(), frame, 0),
                           framelane_capture_give_back(capture.get(), frame),
                           framelane_capture_readers(capture.get(), 0, 0),
                           framelane_capture_drain(capture.get(), -1),
                           framelane_capture_get_counts(capture.get(), &counts)};
    for (const int result : results) {
      if (result != -ECHILD) return 1;
    }
    return std::strstr(framelane_capture_explain(), "a forked child may only") ? 0 : 2;
  });
  EXPECT_EQ(wait_for_child(child), 0);
}

TEST_F(CaptureProcessTest, WhatAForkedChildClosesGoesOnInItsParent) {
  const Capture capture = open();
  const auto reader = join(capture);
  const pid_t child = in_child([&] {
    framelane_capture_close(capture.get());
    return 0;
  });
  EXPECT_EQ(wait_for_child(child), 0);
  EXPECT_EQ(publish(capture, 3), 1);
  EXPECT_EQ(reader->frame(*reader->next())[0], 3);
  EXPECT_TRUE(join(capture)->area_size() > 0);
}

TEST_F(CaptureProcessTest, AForkedChildMayWriteIntoABorrowedFrame) {
  const Capture capture = open();
  const auto reader = join(capture);
  void* frame = nullptr;
  ASSERT_EQ(framelane_capture_borrow(capture.get(), 0, &frame), 0);
  const pid_t child = in_child([&] {
    std::memset(frame, 77, kFrameSize);
    return 0;
  });
  ASSERT_EQ(wait_for_child(child), 0);
  framelane_capture_publish(capture.get(), frame, 0);
  EXPECT_EQ(reader->frame(*reader->next())[kFrameSize - 1], 77);
}

TEST_F(CaptureProcessTest, AReaderSeesTheEndWhenItsProducerIsKilled) {
  int ready[2];
  ASSERT_EQ(pipe2(ready, O_CLOEXEC), 0);
  const pid_t child = in_child([&] {
    const Capture capture = open();
    if (write(ready[1], "", 1) != 1) return 1;
    return framelane_capture_readers(capture.get(), 2,
                                     -1);  // one comes: it waits until it is killed
  });
  char byte = 0;
  ASSERT_EQ(read(ready[0], &byte, 1), 1);
  RawReader reader(path);
  ASSERT_TRUE(reader.read_area());
  kill(child, SIGKILL);
  EXPECT_FALSE(reader.next());
  EXPECT_EQ(wait_for_child(child), -SIGKILL);
  close(ready[0]);
  close(ready[1]);
  const Capture successor = open();  // also removes the area
  EXPECT_FALSE(std::filesystem::exists("/dev/shm" + reader.area_name()));
}

TEST_F(CaptureProcessTest, OfManyThatTakeOverADeadSocketAtOnceOneGetsIt) {
  ASSERT_EQ(wait_for_child(in_child([this] {
              const Capture capture = open();
              return raise(SIGKILL);
            })),
            -SIGKILL);
  std::array<int, 2> start{};
  std::array<int, 2> said{};
  std::array<int, 2> end{};
  for (auto* ends : {&start, &said, &end}) ASSERT_EQ(pipe2(ends->data(), O_CLOEXEC), 0);
  const int processes = 8;
  std::vector<pid_t> children;
  for (int i = 0; i < processes; ++i) {
    children.push_back(in_child([&] {
      close(start[1]);
      close(end[1]);
      char byte = 0;
      while (read(start[0], &byte, 1) > 0) {
      }
      const auto wanted = options();
      framelane_capture* capture = nullptr;
      const int status = framelane_capture_open(&wanted, &capture);
      const char answer = status == 0 ? 'y' : status == -EADDRINUSE ? 'n' : '?';
      if (write(said[1], &answer, 1) != 1) return 1;
      while (read(end[0], &byte, 1) > 0) {
      }
      framelane_capture_close(capture);
      return 0;
    }));
  }
  close(start[1]);
  std::string answers;
  for (char answer = 0; answers.size() < processes && read(said[0], &answer, 1) == 1;) {
    answers += answer;
  }
  close(end[1]);
  for (const pid_t child : children) EXPECT_EQ(wait_for_child(child), 0);
  for (const int fd : {start[0], said[0], said[1], end[0]}) close(fd);
  EXPECT_EQ(std::multiset<char>(answers.begin(), answers.end()),
            (std::multiset<char>{'n', 'n', 'n', 'n', 'n', 'n', 'n', 'y'}));
}

TEST_F(CaptureProcessTest, NoDescriptorSurvivesExec) {
  const auto before = open_descriptors();
  const Capture capture = open();
  RawReader reader(path);
  ASSERT_EQ(framelane_capture_readers(capture.get(), 1, 60'000), 1);
  int ours = 0;
  for (const int fd : open_descriptors()) {
    if (before.count(fd)) continue;
    ++ours;
    EXPECT_TRUE(fcntl(fd, F_GETFD) & FD_CLOEXEC) << fd;
  }
  EXPECT_GE(ours, 5);
}

TEST_F(CaptureProcessTest, ClosingLeavesNoDescriptor) {
  const auto before = open_descriptors();
  {
    const Capture capture = open();
    const auto reader = join(capture);
    publish(capture);
    EXPECT_EQ(refusal(options()), -EADDRINUSE);
  }
  EXPECT_EQ(open_descriptors(), before);
}

}  // namespace
}  // namespace framelane::testing
