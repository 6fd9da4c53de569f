// Not built for ThreadSanitizer: what it tests has one thread.
#include "daemon/log_line.hpp"

#include <gtest/gtest.h>

#include <chrono>

namespace framelane {
namespace {

constexpr std::chrono::system_clock::time_point kTime{std::chrono::milliseconds(1767323045678)};

std::string line(LogStyle style, std::string_view message, LogLevel level = LogLevel::kInfo) {
  return format_log_line(style, {.level = level, .time = kTime, .message = message});
}

TEST(LogLineTest, TextHasTimeAndPaddedLevel) {
  EXPECT_EQ(line(LogStyle::kPlain, "up"), "2026-01-02T03:04:05.678Z info  up\n");
  EXPECT_EQ(line(LogStyle::kPlain, "up", LogLevel::kError), "2026-01-02T03:04:05.678Z error up\n");
}

TEST(LogLineTest, JsonTakesTheFeedOutOfTheMessage) {
  EXPECT_EQ(line(LogStyle::kJson, "feed gate: up: 25 fps"),
            R"({"ts":"2026-01-02T03:04:05.678Z","level":"info","feed":"gate","msg":"up: 25 fps"})"
            "\n");
}

TEST(LogLineTest, JsonSaysWhatALineIsAboutAndTheFaultsCodeAndReason) {
  const LogLine fault{.level = LogLevel::kWarn,
                      .time = kTime,
                      .message = "feed gate: output hls: refused rtsp://u:p@h/; trying again",
                      .fault = {"refused", "refused rtsp://u:p@h/"}};
  EXPECT_EQ(format_log_line(LogStyle::kJson, fault),
            R"({"ts":"2026-01-02T03:04:05.678Z","level":"warn","feed":"gate","output":"hls",)"
            R"("code":"refused","reason":"refused rtsp://***@h/",)"
            R"("msg":"refused rtsp://***@h/; trying again"})"
            "\n");
  EXPECT_EQ(line(LogStyle::kJson, "feed gate: encode live: sound: slow"),
            R"({"ts":"2026-01-02T03:04:05.678Z","level":"info","feed":"gate","encode":"live",)"
            R"("msg":"sound: slow"})"
            "\n");
  EXPECT_EQ(line(LogStyle::kJson, "feed gate: output web (small): writing a.m3u8"),
            R"({"ts":"2026-01-02T03:04:05.678Z","level":"info","feed":"gate","encode":"small",)"
            R"("output":"web","msg":"writing a.m3u8"})"
            "\n");
  EXPECT_EQ(line(LogStyle::kJson, "feed gate: output web (so to say): x"),
            R"({"ts":"2026-01-02T03:04:05.678Z","level":"info","feed":"gate",)"
            R"("msg":"output web (so to say): x"})"
            "\n");
}

TEST(LogLineTest, JsonKeepsMessagesThatOnlyLookLikeAFeeds) {
  EXPECT_EQ(line(LogStyle::kJson, "feed count is wrong: 3"),
            R"({"ts":"2026-01-02T03:04:05.678Z","level":"info","msg":"feed count is wrong: 3"})"
            "\n");
}

TEST(LogLineTest, JsonSurvivesInvalidUtf8) {
  EXPECT_NE(line(LogStyle::kJson, "caf\xe9").find("caf\xef\xbf\xbd"), std::string::npos);
}

TEST(LogLineTest, JournalLinesCarryPriorities) {
  EXPECT_EQ(line(LogStyle::kJournal, "up", LogLevel::kDebug), "<7>up\n");
  EXPECT_EQ(line(LogStyle::kJournal, "up", LogLevel::kWarn), "<4>up\n");
}

TEST(LogLineTest, ControlCharactersCannotForgeALine) {
  EXPECT_EQ(line(LogStyle::kJournal, "a\n<0>b\x1b[2J\x7f"), "<6>a\\n<0>b\\x1b[2J\\x7f\n");
}

// A terminal takes U+009B for ESC [, and U+202E turns what follows round.
TEST(LogLineTest, ControlsBeyondAsciiAreWrittenOutAndOtherTextStays) {
  EXPECT_EQ(line(LogStyle::kJournal,
                 "a\xc2\x9b"
                 "2J \xe2\x80\xae\xe2\x81\xa6 \xc2\xa9\xe2\x82\xac"),
            "<6>a\\xc2\\x9b2J \\xe2\\x80\\xae\\xe2\\x81\\xa6 \xc2\xa9\xe2\x82\xac\n");
  EXPECT_EQ(line(LogStyle::kJournal, "\xe2\x80"), "<6>\xe2\x80\n");
}

TEST(LogLineTest, JsonEscapesThemToo) {
  const std::string json = line(LogStyle::kJson,
                                "a\x7f\x1b \xc2\x9b"
                                "2J \xe2\x80\xae \xe2\x82\xac");
  EXPECT_NE(json.find("a\\u007f\\u001b \\u009b2J \\u202e \xe2\x82\xac"), std::string::npos) << json;
}

TEST(LogLineTest, ARecordOfTheJournalHasTheWholeMessageAndItsFields) {
  const LogLine fault{.level = LogLevel::kWarn,
                      .time = kTime,
                      .message = "feed gate: output hls: refused rtsp://u:p@h/\nFEED=b\n",
                      .fault = {"refused", "refused"}};
  EXPECT_EQ(journal_record(fault),
            "MESSAGE=feed gate: output hls: refused rtsp://***@h/\\nFEED=b\n"
            "PRIORITY=4\n"
            "SYSLOG_IDENTIFIER=framelane\n"
            "FEED=gate\n"
            "OUTPUT=hls\n"
            "CODE=refused\n");
}

TEST(LogLineTest, WhatIsAboutNoFeedIsNoRecord) {
  EXPECT_EQ(journal_record({.time = kTime, .message = "ready"}), "");
  EXPECT_EQ(journal_record({.time = kTime, .message = "ffmpeg: feed gate: x"}), "");
}

TEST(LogLineTest, TrailingNewlinesGo) { EXPECT_EQ(line(LogStyle::kJournal, "a\r\n"), "<6>a\n"); }

}  // namespace
}  // namespace framelane
