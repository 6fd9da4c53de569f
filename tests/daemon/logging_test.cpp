#include "daemon/logging.hpp"

#include <dlfcn.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <spdlog/spdlog.h>
#include <sys/stat.h>
#include <unistd.h>

extern "C" {
#include <libavcodec/avcodec.h>
#include <libavformat/avformat.h>
#include <libavutil/log.h>
}

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "pipeline/av/av_log_capture.hpp"
#include "pipeline/base/fault_log.hpp"
#include "pipeline/base/redact.hpp"

namespace framelane {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::MatchesRegex;
using ::testing::Not;
using ::testing::SizeIs;

/// What `write` sends to stderr, line by line.
template <typename Write>
std::vector<std::string> stderr_lines(Write write) {
  ::testing::internal::CaptureStderr();
  write();
  std::istringstream captured(::testing::internal::GetCapturedStderr());
  std::vector<std::string> lines;
  for (std::string line; std::getline(captured, line);) lines.push_back(line);
  return lines;
}

class LoggingTest : public ::testing::Test {
 protected:
  LoggingTest() { set_up_logging({}); }
};

TEST_F(LoggingTest, TextLinesBeginWithTimeAndLevel) {
  const auto lines = stderr_lines([] { spdlog::warn("feed gate: camera lost"); });
  EXPECT_THAT(lines, ElementsAre(MatchesRegex("[0-9-]+T[0-9:]+\\.[0-9]+Z warn  feed gate: camera "
                                              "lost")));
}

TEST_F(LoggingTest, LinesBelowTheLevelAreNotWritten) {
  set_up_logging({LogLevel::kWarn, LogFormat::kPlain});
  EXPECT_THAT(stderr_lines([] { spdlog::info("hello"); }), IsEmpty());
}

TEST_F(LoggingTest, JsonLinesAreObjects) {
  set_up_logging({LogLevel::kInfo, LogFormat::kJson});
  const auto lines = stderr_lines([] { spdlog::info("feed gate: \"quoted\""); });
  EXPECT_THAT(lines, ElementsAre(EndsWith(R"("level":"info","feed":"gate","msg":"\"quoted\""})")));
}

/// The function of libsrt, which FFmpeg may be linked to.
template <typename Function>
Function* srt(const char* name) {
  return reinterpret_cast<Function*>(dlsym(RTLD_DEFAULT, name));
}

TEST_F(LoggingTest, LibsrtsErrorsAreLinesOfOurs) {
  auto* const create = srt<int()>("srt_epoll_create");
  auto* const wait =
      srt<int(int, int*, int*, int*, int*, std::int64_t, int*, int*, int*, int*)>("srt_epoll_wait");
  if (create == nullptr || wait == nullptr) GTEST_SKIP() << "this FFmpeg has no SRT";
  const auto lines = stderr_lines([&] {
    int socket = 0;
    int sockets = 1;
    wait(create(), &socket, &sockets, nullptr, nullptr, -1, nullptr, nullptr, nullptr, nullptr);
  });
  EXPECT_THAT(lines,
              ElementsAre(MatchesRegex("[0-9-]+T[0-9:]+\\.[0-9]+Z warn  srt: .*no sockets to "
                                       "check.*")));
}

TEST_F(LoggingTest, OwnLinesAreRedacted) {
  const auto lines = stderr_lines([] { spdlog::info("opening rtsp://user:pw@10.0.0.4/s"); });
  EXPECT_THAT(lines, ElementsAre(EndsWith("opening rtsp://***@10.0.0.4/s")));
}

TEST_F(LoggingTest, FfmpegLinesAreRedacted) {
  const auto lines = stderr_lines([] {
    av_log(nullptr, AV_LOG_ERROR, "Did you mean file:rtsp://us.er:p%%40w@%s/s?\n", "10.0.0.4");
  });
  EXPECT_THAT(lines,
              ElementsAre(EndsWith("warn  ffmpeg: Did you mean file:rtsp://***@10.0.0.4/s?")));
}

TEST_F(LoggingTest, FfmpegWarningsShowAtDebugOnly) {
  const auto warn = [] { av_log(nullptr, AV_LOG_WARNING, "chatter\n"); };
  EXPECT_THAT(stderr_lines(warn), IsEmpty());
  set_up_logging({LogLevel::kDebug, LogFormat::kPlain});
  EXPECT_THAT(stderr_lines(warn), ElementsAre(EndsWith("debug ffmpeg: chatter")));
}

TEST_F(LoggingTest, FfmpegErrorsThatAreNotWrittenStillGiveReasons) {
  set_up_logging({LogLevel::kError, LogFormat::kPlain});
  std::string reason;
  const auto lines = stderr_lines([&] {
    av_log(nullptr, AV_LOG_ERROR, "nobody captures this\n");
    const AvLogCapture capture;
    av_log(nullptr, AV_LOG_ERROR, "moov atom not found\n");
    reason = capture.reason("Invalid data");
  });
  EXPECT_EQ(reason, "moov atom not found");
  EXPECT_THAT(lines, IsEmpty());
}

TEST_F(LoggingTest, PartsOfAFfmpegLineAreJoined) {
  const auto lines = stderr_lines([] {
    av_log(nullptr, AV_LOG_ERROR, "one ");
    av_log(nullptr, AV_LOG_ERROR, "two ");
    av_log(nullptr, AV_LOG_ERROR, "three\n");
  });
  EXPECT_THAT(lines, ElementsAre(EndsWith("ffmpeg: one two three")));
}

TEST_F(LoggingTest, ASecretInPartsOfAFfmpegLineIsBlanked) {
  register_secret("geheimwort");
  const auto lines = stderr_lines([] {
    av_log(nullptr, AV_LOG_ERROR, "key is gehe");
    av_log(nullptr, AV_LOG_ERROR, "imwort\n");
  });
  EXPECT_THAT(lines, ElementsAre(EndsWith("ffmpeg: key is ***")));
}

TEST_F(LoggingTest, RepeatsOfAFfmpegLineAreWrittenOnce) {
  const auto lines = stderr_lines([] {
    for (int i = 0; i < 50; ++i) av_log(nullptr, AV_LOG_ERROR, "error at block %d %d\n", i, 7 * i);
  });
  EXPECT_THAT(lines, ElementsAre(EndsWith("error at block 0 0")));
}

TEST_F(LoggingTest, RepeatsOfALineByTheNextComponentOfItsKindAreRepeats) {
  AVFormatContext* first = avformat_alloc_context();
  AVFormatContext* second = avformat_alloc_context();
  AVCodecContext* other = avcodec_alloc_context3(nullptr);
  const auto lines = stderr_lines([&] {
    av_log(first, AV_LOG_ERROR, "method DESCRIBE failed: 404\n");
    av_log(second, AV_LOG_ERROR, "method DESCRIBE failed: 404\n");
    av_log(second, AV_LOG_ERROR, "method SETUP failed: 404\n");
    av_log(other, AV_LOG_ERROR, "method DESCRIBE failed: 404\n");
  });
  EXPECT_THAT(lines, ElementsAre(EndsWith("method DESCRIBE failed: 404"),
                                 EndsWith("method SETUP failed: 404"),
                                 EndsWith("method DESCRIBE failed: 404")));
  avformat_free_context(first);
  avformat_free_context(second);
  avcodec_free_context(&other);
}

TEST_F(LoggingTest, OverlongFfmpegLinesAreCut) {
  const std::string text(10000, 'x');
  const auto lines = stderr_lines([&] {
    av_log(nullptr, AV_LOG_ERROR, "%s", text.c_str());
    av_log(nullptr, AV_LOG_ERROR, "after the long one\n");
  });
  ASSERT_THAT(lines, SizeIs(2));
  EXPECT_LT(lines[0].size(), 2200u);
  EXPECT_THAT(lines[1], EndsWith("ffmpeg: after the long one"));
}

// Cut first, the begin of a secret would be left, which is not known as one.
TEST_F(LoggingTest, ASecretWhereAnOverlongFfmpegLineIsCutIsBlanked) {
  register_secret("nachtigallenschlag");
  const auto lines = stderr_lines([] {
    for (std::size_t length = 2020; length < 2060; ++length) {
      const std::string before(length, 'x');
      av_log(nullptr, AV_LOG_ERROR, "%s nachtigallenschlag\n", before.c_str());
    }
  });
  EXPECT_GT(lines.size(), 10u);  // those that are cut in the same place are repeats
  EXPECT_THAT(lines, Each(Not(HasSubstr("nach"))));
  EXPECT_THAT(lines.front(), EndsWith("xx ***"));
}

TEST_F(LoggingTest, AFaultHasItsCodeInJsonAndSoHasTheSumOfItsRepeats) {
  set_up_logging({LogLevel::kInfo, LogFormat::kJson});
  FaultLog faults("feed gate: output hls");
  const auto now = FaultLog::Clock::now();
  const auto lines = stderr_lines([&] {
    faults.failed("refused", "nobody listens", "trying again", now);
    faults.failed("refused", "nobody listens", "trying again", now);
    faults.failed("timeout", "nobody answers", "trying again", now + std::chrono::seconds(61));
    spdlog::info("feed gate: running");
  });
  const std::string of_output = R"("feed":"gate","output":"hls",)";
  EXPECT_THAT(
      lines,
      ElementsAre(
          HasSubstr(of_output + R"("code":"refused","reason":"nobody listens","msg":"nobody l)"),
          HasSubstr(of_output + R"("code":"refused","reason":"nobody listens","msg":"nobody l)"),
          HasSubstr(of_output + R"("code":"timeout","reason":"nobody answers","msg":"nobody a)"),
          EndsWith(R"("feed":"gate","msg":"running"})")));
}

TEST_F(LoggingTest, LinesOfManyThreadsStayWhole) {
  constexpr int kThreads = 4;
  constexpr int kLines = 100;
  const auto lines = stderr_lines([] {
    std::vector<std::jthread> threads;
    for (int t = 0; t < kThreads; ++t) {
      threads.emplace_back([t] {
        for (int i = 0; i < kLines; ++i) {
          spdlog::info("own line {}", std::string(200, static_cast<char>('a' + t)));
          av_log(nullptr, AV_LOG_ERROR, "whole ");
          av_log(nullptr, AV_LOG_ERROR, "line\n");
        }
      });
    }
  });
  const auto own = std::count_if(lines.begin(), lines.end(), [](const std::string& line) {
    const auto at = line.find("own line ");
    return at != std::string::npos && line.substr(at + 9) == std::string(200, line[at + 9]);
  });
  const auto ffmpeg = std::count_if(lines.begin(), lines.end(), [](const std::string& line) {
    return line.ends_with("ffmpeg: whole line");
  });
  EXPECT_EQ(own, kThreads * kLines);
  EXPECT_EQ(ffmpeg, 1);
  EXPECT_EQ(static_cast<int>(lines.size()), kThreads * kLines + 1);
}

TEST_F(LoggingTest, JournalGetsPrioritiesInsteadOfTimes) {
  // The variable must name the file that stderr is, so stderr is redirected to a known file.
  FILE* file = std::tmpfile();
  ASSERT_NE(file, nullptr);
  const int saved = dup(STDERR_FILENO);
  dup2(fileno(file), STDERR_FILENO);
  struct stat status {};
  fstat(STDERR_FILENO, &status);
  const std::string stream = std::to_string(status.st_dev) + ":" + std::to_string(status.st_ino);
  setenv("JOURNAL_STREAM", stream.c_str(), 1);
  set_up_logging({});
  spdlog::error("feed gate: broken");
  dup2(saved, STDERR_FILENO);
  close(saved);
  unsetenv("JOURNAL_STREAM");
  std::rewind(file);
  char line[100] = {};
  EXPECT_NE(std::fgets(line, sizeof line, file), nullptr);
  std::fclose(file);
  EXPECT_STREQ(line, "<3>feed gate: broken\n");
}

}  // namespace
}  // namespace framelane
