// Not built for ThreadSanitizer: what it tests has one thread.
#include "pipeline/output/file_pattern.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <optional>

#include "pipeline/base/failure.hpp"
#include "pipeline/output/folder_walk.hpp"
#include "pipeline/output/part_file.hpp"
#include "tests/pipeline/source/media_files.hpp"

namespace framelane {
namespace {

using ::testing::ElementsAre;
using testing::TempFolder;
using testing::write_file;

void touch(const std::string& path) {
  std::filesystem::create_directories(std::filesystem::path(path).parent_path());
  write_file(path, {1});
}

/// The complete files on disk that the pattern could have named, in their names' order.
std::vector<std::string> complete_files(const FilePattern& pattern) {
  std::vector<std::string> names;
  FolderWalk walk(pattern, FolderWalk::Files::kComplete);
  for (auto what = walk.next(); what != FolderWalk::Found::kEnd; what = walk.next()) {
    if (what == FolderWalk::Found::kFile) names.push_back(walk.path());
  }
  std::sort(names.begin(), names.end());
  return names;
}

std::chrono::system_clock::time_point local_time(int year, int month, int day, int hour, int minute,
                                                 int second) {
  std::tm tm{};
  tm.tm_year = year - 1900;
  tm.tm_mon = month - 1;
  tm.tm_mday = day;
  tm.tm_hour = hour;
  tm.tm_min = minute;
  tm.tm_sec = second;
  tm.tm_isdst = -1;
  return std::chrono::system_clock::from_time_t(std::mktime(&tm));
}

TEST(NumberedNameTest, ANumberGoesBeforeTheLastExtension) {
  EXPECT_EQ(numbered_name("a.d/name.mp4", 1), "a.d/name.mp4");
  EXPECT_EQ(numbered_name("a.d/name.mp4", 2), "a.d/name.2.mp4");
  EXPECT_EQ(numbered_name("a.d/name", 3), "a.d/name.3");
}

TEST(FilePatternTest, NamesAreInLocalTime) {
  const FilePattern pattern("/rec/%Y-%m-%d/%H%M%S 100%%.mp4");
  EXPECT_EQ(pattern.name_at(local_time(2024, 2, 3, 4, 5, 6)), "/rec/2024-02-03/040506 100%.mp4");
}

TEST(FilePatternTest, AnyNumberOfFieldsFitsIntoAName) {
  std::string path, name;
  for (int i = 0; i < 200; ++i) {
    path += "%F";
    name += "2024-02-03";
  }
  EXPECT_EQ(FilePattern(path).name_at(local_time(2024, 2, 3, 4, 5, 6)), name);
}

/// The process's time zone while it lives.
class TimeZone {
 public:
  explicit TimeZone(const char* zone) {
    if (const char* before = std::getenv("TZ")) before_ = before;
    setenv("TZ", zone, 1);
    tzset();
  }
  ~TimeZone() {
    before_ ? setenv("TZ", before_->c_str(), 1) : unsetenv("TZ");
    tzset();
  }
  TimeZone(const TimeZone&) = delete;
  TimeZone& operator=(const TimeZone&) = delete;

 private:
  std::optional<std::string> before_;
};

// At the end of summer time, 27 October 2024, 01:30 UTC is half past two for the second time.
const auto kSecondHalfPastTwo = std::chrono::system_clock::from_time_t(1'729'992'600);

TEST(FilePatternTest, NamesFollowSummerTime) {
  const TimeZone zone("CET-1CEST,M3.5.0,M10.5.0/3");
  const FilePattern pattern("%H%M%S %z.ts");
  EXPECT_EQ(pattern.name_at(kSecondHalfPastTwo - std::chrono::hours(1)), "023000 +0200.ts");
  EXPECT_EQ(pattern.name_at(kSecondHalfPastTwo), "023000 +0100.ts");
}

TEST(FilePatternTest, NamesAreInUtcWhereThatIsTheTimeZone) {
  const TimeZone zone("UTC0");
  EXPECT_EQ(FilePattern("%F %T.ts").name_at(kSecondHalfPastTwo), "2024-10-27 01:30:00.ts");
}

TEST(FilePatternTest, AnHourThatComesTwiceOverwritesNothing) {
  const TimeZone zone("CET-1CEST,M3.5.0,M10.5.0/3");
  const TempFolder folder;
  const FilePattern pattern(folder / "%H%M%S.ts");
  PartFile first = PartFile::create(pattern.name_at(kSecondHalfPastTwo - std::chrono::hours(1)), 1,
                                    Existing::kNumber);
  EXPECT_EQ(first.complete(false), folder / "023000.ts");
  PartFile second = PartFile::create(pattern.name_at(kSecondHalfPastTwo), 1, Existing::kNumber);
  EXPECT_EQ(second.complete(false), folder / "023000.2.ts");
}

using std::chrono::hours;
using std::chrono::milliseconds;
using std::chrono::seconds;

TEST(FilePatternTest, ANameTellsItsTime) {
  const auto time = local_time(2024, 2, 3, 14, 5, 6);
  for (const char* const pattern :
       {"/rec/%Y-%m-%d/%H%M%S.mp4", "%F %T.ts", "%s.mkv", "%Y%j-%R-%S.mp4"}) {
    const FilePattern files(pattern);
    const std::string name = files.name_at(time);
    EXPECT_EQ(files.time_of(name, time + hours(1000)), time) << name;
    EXPECT_EQ(files.time_of(numbered_name(name, 12), time + hours(1000)), time) << name;
    // What the name does not tell.
    EXPECT_EQ(files.time_of(name, time + milliseconds(250)), time + milliseconds(250)) << name;
    EXPECT_EQ(files.time_of("other", time), std::nullopt);
  }
  EXPECT_EQ(FilePattern("/rec/out.mp4").time_of("/rec/out.mp4", time), std::nullopt);
}

TEST(FilePatternTest, OfSeveralTimesOfOneNameItIsTheNextOne) {
  const TimeZone zone("CET-1CEST,M3.5.0,M10.5.0/3");
  const FilePattern pattern("%H%M%S.ts");
  for (const auto time : {kSecondHalfPastTwo, kSecondHalfPastTwo - hours(1)}) {
    EXPECT_EQ(pattern.time_of("023000.ts", time + seconds(9)), time);
  }
  const auto time = local_time(2024, 2, 3, 23, 59, 59);
  EXPECT_EQ(pattern.time_of("235959.ts", time + seconds(9)), time);
  EXPECT_EQ(FilePattern("%I%M%S.ts").time_of("115959.2.ts", time + seconds(9)), time);
}

TEST(FilePatternTest, APathIsOneThatItMakes) {
  const FilePattern pattern("/rec/gate/%Y/day-%d/%H%M%S.mp4");
  EXPECT_TRUE(pattern.is_path("2024/day-03/140506.mp4"));
  EXPECT_TRUE(pattern.is_path("2024/day-03/140506.2.mp4"));
  for (const char* const path :
       {"", "140506.mp4", "2024/140506.mp4", "2024/day-03/", "2024/day-03/140506.mp4/",
        "2024/day-03/140506.mp4.part", "2024/day-03/../day-03/140506.mp4", "../day-03/140506.mp4",
        "2024/other/140506.mp4", "2024//140506.mp4", "/2024/day-03/140506.mp4"}) {
    EXPECT_FALSE(pattern.is_path(path)) << path;
  }
  EXPECT_TRUE(FilePattern("/rec/out.mp4").is_path("out.mp4"));
  EXPECT_FALSE(FilePattern("/rec/out.mp4").is_path("rec/out.mp4"));
}

TEST(FilePatternTest, NumbersThatAreNoTimeAreNoName) {
  const FilePattern names("%Y%m%d-%H%M%S.mp4");
  for (const char* const name : {"20241231-235960.mp4", "20240229-000000.2.mp4"}) {
    EXPECT_TRUE(names.is_name(name)) << name;
  }
  for (const char* const name :
       {"20241301-000000.mp4", "20240001-000000.mp4", "20240132-000000.mp4", "20240100-000000.mp4",
        "20240101-250000.mp4", "20240101-006100.mp4", "20240101-000061.2.mp4"}) {
    EXPECT_FALSE(names.is_name(name)) << name;
  }
  EXPECT_TRUE(FilePattern("%s%H.ts").is_name("12345623.ts"));
  EXPECT_FALSE(FilePattern("%s%H.ts").is_name("12345624.ts"));
  EXPECT_TRUE(FilePattern("%F %T %z.ts").is_name("2024-12-31 23:59:59 +1400.ts"));
  EXPECT_FALSE(FilePattern("%F %T.ts").is_name("2024-12-31 23:60:59.ts"));
  EXPECT_FALSE(FilePattern("%j-%V-%I.ts").is_name("367-53-12.ts"));
  EXPECT_FALSE(FilePattern("%j-%V-%I.ts").is_name("366-54-12.ts"));
  EXPECT_FALSE(FilePattern("%j-%V-%I.ts").is_name("366-53-13.ts"));
}

TEST(FilePatternTest, ADayThatItsMonthDoesNotHaveIsNoPath) {
  const FilePattern pattern("/rec/100%%/%Y/%m/%d/%H%M%S.mp4");
  EXPECT_TRUE(pattern.is_path("2024/02/29/140506.2.mp4"));
  EXPECT_FALSE(pattern.is_path("2023/02/29/140506.mp4"));
  EXPECT_FALSE(pattern.is_path("2024/04/31/140506.2.mp4"));
  EXPECT_TRUE(FilePattern("%m-%d.mp4").is_path("02-29.mp4"));  // of some year
  // A time that there was in another time zone.
  const TimeZone zone("CET-1CEST,M3.5.0,M10.5.0/3");
  EXPECT_TRUE(FilePattern("%F-%H%M%S.mp4").is_path("2024-03-31-023000.mp4"));
}

TEST(FilePatternTest, AnUnknownFieldIsNamed) {
  try {
    FilePattern("/rec/%Q.mp4");
    FAIL() << "accepted";
  } catch (const FeedError& error) {
    EXPECT_EQ(error.code(), FeedFault::kConfiguration);
    EXPECT_THAT(error.what(), ::testing::HasSubstr("%Q"));
  }
}

TEST(FilePatternTest, APercentSignAtTheEndIsAnError) {
  EXPECT_THROW(FilePattern("/rec/100%"), FeedError);
}

TEST(FilePatternTest, OnlyItsOwnCompleteFilesAreFound) {
  const TempFolder folder;
  for (const char* name :
       {"2024-02-03/040506.mp4", "2024-02-03/040506.2.mp4", "2024-02-03/040507.mp4.part",
        "2024-02-03/holiday.mp4", "2024-02-03/040506.mkv", "2024-02-03/0405067.mp4",
        "old/040506.mp4", "040506.mp4"}) {
    touch(folder / name);
  }
  const FilePattern pattern(folder / "%Y-%m-%d/%H%M%S.mp4");
  EXPECT_THAT(complete_files(pattern),
              ElementsAre(folder / "2024-02-03/040506.2.mp4", folder / "2024-02-03/040506.mp4"));
}

TEST(FilePatternTest, AYearHasFourDigits) {
  const TempFolder folder;
  touch(folder / "cam20261121-101010.mp4");
  touch(folder / "cam120261121-101010.mp4");  // of "cam1"
  const FilePattern pattern(folder / "cam%Y%m%d-%H%M%S.mp4");
  EXPECT_THAT(complete_files(pattern), ElementsAre(folder / "cam20261121-101010.mp4"));
  EXPECT_FALSE(FilePattern("cam%F.mp4").is_name("cam12026-11-21.mp4"));
}

TEST(FilePatternTest, AFieldBesideDigitsTakesAsManyAsFit) {
  EXPECT_TRUE(FilePattern("%s1.ts").is_name("1234511.ts"));
  EXPECT_TRUE(FilePattern("1%s1.ts").is_name("111.ts"));
  EXPECT_FALSE(FilePattern("1%s1.ts").is_name("11.ts"));
  EXPECT_TRUE(FilePattern("%s%Y.ts").is_name("12026.ts"));
  EXPECT_FALSE(FilePattern("%s%Y.ts").is_name("2026.ts"));
  EXPECT_FALSE(FilePattern("%s%Y.ts").is_name("1202x.ts"));
  EXPECT_TRUE(FilePattern("%u%z.ts").is_name("7-0330.ts"));
  EXPECT_FALSE(FilePattern("%u%z.ts").is_name("8-0330.ts"));
}

// An expression that tries one way after the other would never come to an end here.
TEST(FilePatternTest, ManyFieldsOfAnyLengthAreMatchedInOneGo) {
  std::string path;
  for (int i = 0; i < 100; ++i) path += "%s";
  EXPECT_TRUE(FilePattern(path + ".ts").is_name(std::string(250, '1') + ".ts"));
  EXPECT_FALSE(FilePattern(path + ".ts").is_name(std::string(250, '1') + ".tx"));
}

bool meet(const char* pattern, const char* other) {
  const bool met = FilePattern(pattern).meets(FilePattern(other));
  EXPECT_EQ(met, FilePattern(other).meets(FilePattern(pattern)));
  return met;
}

TEST(FilePatternMeetsTest, WhereAFieldFitsAnothersDigits) {
  EXPECT_TRUE(meet("/rec/cam%s.mp4", "/rec/cam1%s.mp4"));
  EXPECT_TRUE(meet("/rec/cam1%s.mp4", "/rec/cam%s.mp4"));
  EXPECT_TRUE(meet("/rec/%H%M.ts", "/rec/%d%m.ts"));
  EXPECT_TRUE(meet("/rec/%Y/a-%H.ts", "/rec/%Y/a-12.ts"));
  EXPECT_TRUE(meet("/rec/a.ts", "/rec/a.2.ts"));
  EXPECT_TRUE(meet("/rec/%Y/%H.ts", "/rec/%s/%H.ts"));
}

TEST(FilePatternMeetsTest, WhereEachHasAFieldThatFitsTheOthersDigits) {
  EXPECT_TRUE(meet("/rec/%u-7.ts", "/rec/3-%u.ts"));
  EXPECT_FALSE(meet("/rec/%u-7.ts", "/rec/8-%u.ts"));
  EXPECT_TRUE(meet("/rec/2026-%d.ts", "/rec/%Y-24.ts"));
  EXPECT_TRUE(meet("/rec/1%s.ts", "/rec/%s2.ts"));
  EXPECT_TRUE(meet("/rec/%s9.ts", "/rec/1%u9.ts"));
  EXPECT_FALSE(meet("/rec/%s-9.ts", "/rec/1%u9.ts"));
  EXPECT_TRUE(meet("/rec/3.%s.ts", "/rec/%u.ts"));  // which has a number
}

TEST(FilePatternMeetsTest, NotWhereTheNamesTellThemApart) {
  EXPECT_FALSE(meet("/rec/cam%Y%m%d.mp4", "/rec/cam1%Y%m%d.mp4"));
  EXPECT_FALSE(meet("/rec/cam-%s.mp4", "/rec/cam1-%s.mp4"));
  EXPECT_FALSE(meet("/rec/%s.mp4", "/rec/%s.mkv"));
  EXPECT_FALSE(meet("/rec/cam/%s.mp4", "/rec/cam1/%s.mp4"));
  EXPECT_FALSE(meet("/rec/%s.mp4", "/rec/%Y/%s.mp4"));
  EXPECT_FALSE(meet("a.mp4", "b.mp4"));
}

TEST(FilePatternTest, AllNamesBeginWithItsLiteralStart) {
  const auto start = [](const char* pattern) {
    return std::string(FilePattern(pattern).literal_start());
  };
  EXPECT_EQ(start("/rec/cam-%s.mp4"), "/rec/cam-");
  EXPECT_EQ(start("/rec/%Y/cam.mp4"), "/rec/");
  EXPECT_EQ(start("/rec.d/cam.mp4"), "/rec.d/cam");  // "cam.2.mp4" is a name as well
  EXPECT_EQ(start("/rec/50%%.mp4"), "/rec/50");
  EXPECT_EQ(start("/rec/cam"), "/rec/cam");
}

TEST(FilePatternTest, ANameAsAPatternIsItsOnlyName) {
  const FilePattern pattern(pattern_of("/a%b/100%%.mp4"));
  EXPECT_EQ(pattern.name_at({}), "/a%b/100%%.mp4");
  EXPECT_EQ(pattern.fixed_folder(), "/a%b/");
}

TEST(FilePatternTest, OnlyItsOwnPartFilesAreFound) {
  const TempFolder folder;
  for (const char* name : {"out.mp4.part", "out.2.mp4.part", "out.mp4", "other.mp4.part"}) {
    touch(folder / name);
  }
  std::vector<UnreadableFolder> unreadable;
  EXPECT_THAT(find_part_files(FilePattern(folder / "out.mp4"), unreadable),
              ElementsAre(folder / "out.2.mp4.part", folder / "out.mp4.part"));
}

TEST(FilePatternTest, CharactersOfRegularExpressionsInAPathMeanThemselves) {
  const TempFolder folder;
  touch(folder / "a+(b)[c]/x^1.mp4");
  touch(folder / "a+(b)[c]/x^1xmp4");
  const FilePattern pattern(folder / "a+(b)[c]/x^%u.mp4");
  EXPECT_THAT(complete_files(pattern), ElementsAre(folder / "a+(b)[c]/x^1.mp4"));
}

TEST(FilePatternTest, FoldersNamedByAFieldGoWhenEmpty) {
  const TempFolder folder;
  touch(folder / "keep/2024/02/a.mp4");
  const FilePattern pattern(folder / "keep/%Y/%m/a.mp4");
  std::filesystem::remove(folder / "keep/2024/02/a.mp4");
  pattern.remove_empty_directories(folder / "keep/2024/02/a.mp4");
  EXPECT_FALSE(std::filesystem::exists(folder / "keep/2024"));
  EXPECT_TRUE(std::filesystem::exists(folder / "keep"));
}

TEST(FilePatternTest, FoldersThatHoldSomethingStay) {
  const TempFolder folder;
  touch(folder / "2024/02/a.mp4");
  touch(folder / "2024/notes.txt");
  const FilePattern pattern(folder / "%Y/%m/a.mp4");
  std::filesystem::remove(folder / "2024/02/a.mp4");
  pattern.remove_empty_directories(folder / "2024/02/a.mp4");
  EXPECT_TRUE(std::filesystem::exists(folder / "2024/notes.txt"));
  EXPECT_FALSE(std::filesystem::exists(folder / "2024/02"));
}

}  // namespace
}  // namespace framelane
