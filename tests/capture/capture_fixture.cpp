#include "tests/capture/capture_fixture.hpp"

#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <span>

namespace framelane::testing {

CaptureTest::CaptureTest() {
  std::string name = std::filesystem::temp_directory_path() / "capture.XXXXXX";
  if (!mkdtemp(name.data())) throw std::filesystem::filesystem_error("mkdtemp", name, {});
  folder = name;
  path = folder / "cap.sock";
}

CaptureTest::~CaptureTest() {
  std::error_code ignored;
  std::filesystem::remove_all(folder, ignored);
}

framelane_capture_options CaptureTest::options(int slots) const {
  framelane_capture_options options = {};
  options.socket_path = path.c_str();
  options.frame_size = kFrameSize;
  options.slots = slots;
  return options;
}

Capture CaptureTest::open(const framelane_capture_options& options) {
  framelane_capture* capture = nullptr;
  EXPECT_EQ(framelane_capture_open(&options, &capture), 0) << framelane_capture_explain();
  return Capture(capture);
}

int CaptureTest::refusal(const framelane_capture_options& options) {
  framelane_capture* capture = nullptr;
  const int status = framelane_capture_open(&options, &capture);
  EXPECT_EQ(capture, nullptr);
  framelane_capture_close(capture);
  return status;
}

std::unique_ptr<RawReader> CaptureTest::join(const Capture& capture) const {
  const int before = framelane_capture_readers(capture.get(), 0, 0);
  auto reader = std::make_unique<RawReader>(path);
  EXPECT_EQ(framelane_capture_readers(capture.get(), before + 1, 60'000), before + 1);
  EXPECT_TRUE(reader->read_area());
  return reader;
}

int publish(const Capture& capture, std::uint8_t fill, std::int64_t time) {
  void* frame = nullptr;
  const int status = framelane_capture_borrow(capture.get(), 0, &frame);
  EXPECT_EQ(status, 0) << framelane_capture_explain();
  if (status != 0) return status;
  std::memset(frame, fill, 1003);
  return framelane_capture_publish(capture.get(), frame, time);
}

int try_borrow(const Capture& capture) {
  void* frame = nullptr;
  const int status = framelane_capture_borrow(capture.get(), 0, &frame);
  if (status == 0) framelane_capture_give_back(capture.get(), frame);
  return status;
}

framelane_capture_counts counts(const Capture& capture) {
  framelane_capture_counts counts = {};
  EXPECT_EQ(framelane_capture_get_counts(capture.get(), &counts), 0);
  return counts;
}

std::vector<std::string> own_areas() {
  const std::string prefix = FRAMELANE_CAPTURE_AREA_PREFIX + std::to_string(getpid()) + "-";
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator("/dev/shm")) {
    const std::string name = "/" + entry.path().filename().string();
    if (name.starts_with(prefix)) names.push_back(name);
  }
  return names;
}

pid_t in_child(const std::function<int()>& body) {
  const pid_t child = fork();
  if (child == 0) _exit(body());
  return child;
}

int wait_for_child(pid_t child) {
  int status = 0;
  EXPECT_EQ(waitpid(child, &status, 0), child);
  return WIFSIGNALED(status) ? -WTERMSIG(status) : WEXITSTATUS(status);
}

}  // namespace framelane::testing
