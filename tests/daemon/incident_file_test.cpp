#include "daemon/incident_file.hpp"

#include <gmock/gmock.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <optional>
#include <string>

#include "daemon/incident_json.hpp"
#include "tests/pipeline/base/log_capture.hpp"
#include "tests/pipeline/base/wait.hpp"
#include "tests/temp_folder.hpp"

namespace framelane {
namespace {

using namespace std::chrono_literals;
using std::chrono::system_clock;
using ::testing::HasSubstr;

/// What one process has of incidents and their file.
struct Process {
  explicit Process(const std::string& path) : file(path, incidents, 1min) {
    earlier = file.load(system_clock::now());
  }
  std::uint64_t add(IncidentKind kind, bool lasts = false) {
    Incident incident{.kind = kind, .text = "what happened", .begin = system_clock::now()};
    if (!lasts) incident.end = incident.begin;
    return incidents.add(incident);
  }
  /// Saves until `done`.
  bool saves(const std::function<bool()>& done) {
    return testing::comes_true([&] {
      file.save(IncidentFile::Clock::now());
      return done();
    });
  }

  Incidents incidents;
  IncidentFile file;
  IncidentFile::Earlier earlier;
};

class IncidentFileTest : public ::testing::Test {
 protected:
  std::size_t lines() const {
    std::ifstream file(path_);
    std::size_t lines = 0;
    for (std::string line; std::getline(file, line);) ++lines;
    return lines;
  }

  const testing::TempFolder folder_;
  const std::string path_ = folder_ / "state/incidents.jsonl";
  testing::LogCapture log_;
};

TEST_F(IncidentFileTest, WhatHasHappenedIsThereAfterARestart) {
  {
    Process first(path_);
    EXPECT_FALSE(first.earlier.seen);
    first.add(IncidentKind::kStarted);
    first.add(IncidentKind::kStopped);
    first.file.finish(10s);
  }
  Process second(path_);
  EXPECT_TRUE(second.earlier.seen);
  EXPECT_TRUE(second.earlier.was_stopped);
  EXPECT_EQ(second.incidents.since({}).size(), 2u);
  EXPECT_EQ(second.add(IncidentKind::kStarted), 3u);
}

TEST_F(IncidentFileTest, WhatLastedWhenTheProcessWasKilledEndsThen) {
  system_clock::time_point last;
  {
    Process first(path_);
    first.add(IncidentKind::kStarted);
    first.add(IncidentKind::kSourceLost, true);
    EXPECT_TRUE(first.saves([&] { return lines() == 2; }));
    last = first.incidents.since({}).back().begin;
  }
  Process second(path_);
  EXPECT_FALSE(second.earlier.was_stopped);
  const Incident lost = second.incidents.since({}).back();
  ASSERT_TRUE(lost.end);
  EXPECT_GE(*lost.end, lost.begin);
  EXPECT_LT(*lost.end - last, 10s);
  EXPECT_THAT(lost.text, HasSubstr("framelane was killed, or the machine failed, until 20"));
}

TEST_F(IncidentFileTest, AChangeIsAppendedAndTheFileStaysBounded) {
  Process process(path_);
  const std::uint64_t open = process.add(IncidentKind::kSourceLost, true);
  EXPECT_TRUE(process.saves([&] { return lines() == 1; }));
  Incident incident = *process.incidents.find(open);
  incident.end = incident.begin + 1s;
  process.incidents.put(incident);
  EXPECT_TRUE(process.saves([&] { return lines() == 2; }));
  for (std::size_t i = 0; i + 2 < IncidentFile::kMostLines; ++i) process.add(IncidentKind::kReload);
  process.file.finish(10s);
  EXPECT_EQ(lines(), Incidents::kKept + 2) << "only those that are still kept are written";
  for (std::size_t i = 0; i < Incidents::kKept; ++i) process.add(IncidentKind::kReload);
  process.file.finish(10s);
  EXPECT_EQ(lines(), Incidents::kKept) << "it has been written anew";
  EXPECT_EQ(Process(path_).incidents.since({}).size(), Incidents::kKept);
}

TEST_F(IncidentFileTest, CountsAreWrittenOnceAMinute) {
  Process process(path_);
  const std::uint64_t open = process.add(IncidentKind::kSourceLost, true);
  EXPECT_TRUE(process.saves([&] { return lines() == 1; }));
  process.file.finish(10s);
  Incident incident = *process.incidents.find(open);
  ++incident.retries;
  process.incidents.put(incident);
  const auto now = IncidentFile::Clock::now();
  process.file.save(now);
  process.file.save(now + 30s);
  EXPECT_EQ(lines(), 1u);
  process.file.save(now + 2min);
  EXPECT_TRUE(testing::comes_true([&] { return lines() == 2; }));
}

TEST_F(IncidentFileTest, DamagedLinesAreLeftOutWithOneWarning) {
  std::filesystem::create_directories(std::filesystem::path(path_).parent_path());
  Incident good{.text = "good", .begin = system_clock::now(), .end = system_clock::now()};
  good.id = 7;
  std::ofstream(path_, std::ios::binary) << "{\"id\":\n\n"
                                         << incident_json(good) << "\n"
                                         << std::string(100, '\0') << "\n\xff\xfe\n"
                                         << incident_json(good).substr(0, 40);
  Process process(path_);
  ASSERT_EQ(process.incidents.since({}).size(), 1u);
  EXPECT_EQ(process.incidents.since({})[0].id, 7u);
  EXPECT_EQ(log_.count("4 damaged lines are left out"), 1u);
  process.add(IncidentKind::kStarted);
  process.file.finish(10s);
  EXPECT_EQ(lines(), 2u) << "they are gone";
}

TEST_F(IncidentFileTest, TheLastLineOfAnIncidentCounts) {
  std::filesystem::create_directories(std::filesystem::path(path_).parent_path());
  Incident incident{.text = "it", .begin = system_clock::now()};
  incident.id = 3;
  std::ofstream file(path_);
  file << incident_json(incident) << "\n";
  incident.end = incident.begin;
  incident.text = "it is over";
  file << incident_json(incident) << "\n";
  file.close();
  Process process(path_);
  ASSERT_EQ(process.incidents.since({}).size(), 1u);
  EXPECT_EQ(process.incidents.since({})[0].text, "it is over");
}

TEST_F(IncidentFileTest, WhatCannotBeWrittenIsWarnedOfOnceAndKeptInMemory) {
  Process process("/proc/incidents.jsonl");
  process.add(IncidentKind::kStarted);
  process.file.finish(10s);
  process.add(IncidentKind::kReload);
  process.file.finish(10s);
  EXPECT_EQ(process.incidents.since({}).size(), 2u);
  EXPECT_EQ(log_.count("/proc/incidents.jsonl cannot be written"), 1u);
}

TEST_F(IncidentFileTest, WhatCannotBeReadIsLeftAlone) {
  std::filesystem::create_directories(path_);  // a folder
  Process process(path_);
  EXPECT_EQ(log_.count("cannot be read (it is no file)"), 1u);
  process.add(IncidentKind::kStarted);
  process.file.save(IncidentFile::Clock::now());
  process.file.finish(10s);
  EXPECT_TRUE(std::filesystem::is_directory(path_));
}

TEST_F(IncidentFileTest, WithoutAPathNothingIsWritten) {
  Process process("");
  process.add(IncidentKind::kStarted);
  process.file.save(IncidentFile::Clock::now());
  process.file.finish(10s);
  EXPECT_EQ(process.incidents.since({}).size(), 1u);
}

TEST(IncidentPathTest, IsInTheFirstStateDirectoryOrElseInTheRecorders) {
  ::unsetenv("STATE_DIRECTORY");
  EXPECT_EQ(incident_path(""), "");
  EXPECT_EQ(incident_path("/srv/traces"), "/srv/traces/incidents.jsonl");
  ::setenv("STATE_DIRECTORY", "/var/lib/a:/var/lib/b", 1);
  EXPECT_EQ(incident_path("/srv/traces"), "/var/lib/a/incidents.jsonl");
  ::unsetenv("STATE_DIRECTORY");
}

}  // namespace
}  // namespace framelane
