#include "daemon/tune_write.hpp"

#include <gmock/gmock.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <stdexcept>

namespace framelane {
namespace {

using ::testing::ElementsAre;
using ::testing::Field;
using ::testing::HasSubstr;

TunedSettings settings(std::vector<TunedSettings::Feed> feeds) {
  return {"cuda", {"", 3, 8, std::nullopt}, std::move(feeds)};
}

std::string written(const std::string& text, const TunedSettings& wanted) {
  auto result = with_settings(text, "f.yaml", wanted);
  if (auto* problems = std::get_if<std::vector<Problem>>(&result)) {
    for (const Problem& problem : *problems) ADD_FAILURE() << to_string(problem);
    return {};
  }
  std::string once = std::get<std::string>(result);
  EXPECT_EQ(std::get<std::string>(with_settings(once, "f.yaml", wanted)), once);
  return once;
}

TEST(TuneWriteTest, SettingsOfAllFeedsGoUnderDefaults) {
  EXPECT_EQ(
      written("feeds:\n  a: {input: {url: \"lavfi:x\"}}\n", settings({{"a", 3, 8, std::nullopt}})),
      "device: cuda\ndefaults:\n  lanes: 3\n  ring: 8\n  slices: auto\n"
      "feeds:\n  a: {input: {url: \"lavfi:x\"}}\n");
}

TEST(TuneWriteTest, AFeedThatNeedsSomethingElseGetsThatAlone) {
  EXPECT_EQ(written("feeds:\n  a: {input: {url: x}}\n  b:\n    input: {url: y}\n",
                    settings({{"a", 3, 8, std::nullopt}, {"b", 6, 8, 4}})),
            "device: cuda\ndefaults:\n  lanes: 3\n  ring: 8\n  slices: auto\n"
            "feeds:\n  a: {input: {url: x}}\n  b:\n    lanes: 6\n    slices: 4\n"
            "    input: {url: y}\n");
}

TEST(TuneWriteTest, WhatAProfileSaysOtherwiseTheFeedSays) {
  EXPECT_EQ(written("device: cuda:0\n"
                    "profiles:\n  p: {lanes: 9}\n"
                    "feeds:\n  a: {profile: p, input: {url: x}}\n",
                    settings({{"a", 3, 8, std::nullopt}})),
            "device: cuda:0\n"
            "defaults:\n  lanes: 3\n  ring: 8\n  slices: auto\n"
            "profiles:\n  p: {lanes: 9}\n"
            "feeds:\n  a: {lanes: 3, profile: p, input: {url: x}}\n");
}

TEST(TuneWriteTest, AWrongConfigurationIsShownAndNotEdited) {
  const auto result = with_settings("feeds:\n  a: {inputs: {}}\n", "f.yaml", settings({}));
  EXPECT_THAT(std::get<std::vector<Problem>>(result),
              ::testing::Contains(Field(&Problem::key, "feeds.a.inputs")));
}

TEST(TuneWriteTest, AFeedThatHasGoneMeanwhileIsSaidSo) {
  try {
    with_settings("feeds:\n  a: {input: {url: x}}\n", "f.yaml",
                  settings({{"b", 3, 8, std::nullopt}}));
    FAIL();
  } catch (const std::runtime_error& error) {
    EXPECT_THAT(error.what(), HasSubstr("f.yaml: the feed b is no longer in it"));
  }
}

TEST(TuneWriteTest, SettingsAreReadFromTheirText) {
  const TunedSettings read =
      tuned_settings(R"({"device":"cpu","defaults":{"lanes":3,"ring":8,"slices":0},)"
                     R"("feeds":[{"name":"a","lanes":4,"ring":16,"slices":2}]})");
  EXPECT_EQ(read.device, "cpu");
  EXPECT_EQ(read.defaults.slices, std::nullopt);
  ASSERT_EQ(read.feeds.size(), 1u);
  EXPECT_EQ(read.feeds[0].name, "a");
  EXPECT_EQ(read.feeds[0].ring, 16);
  EXPECT_EQ(read.feeds[0].slices, 2);
  EXPECT_ANY_THROW(tuned_settings("{}"));
}

class ReplaceFileTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::filesystem::create_directory(folder_);
    std::ofstream(file_) << "old";
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }
  static std::string content(const std::filesystem::path& path) {
    std::ifstream file(path);
    return {std::istreambuf_iterator<char>(file), {}};
  }
  std::size_t files() const {
    return static_cast<std::size_t>(
        std::distance(std::filesystem::directory_iterator(folder_), {}));
  }

  const std::filesystem::path folder_ =
      std::filesystem::temp_directory_path() / ("framelane-replace-" + std::to_string(getpid()));
  const std::filesystem::path file_ = folder_ / "f.yaml";
};

TEST_F(ReplaceFileTest, TheModeIsKeptAndNothingElseIsLeft) {
  ASSERT_EQ(chmod(file_.c_str(), 0604), 0);
  replace_file(file_, "new");
  EXPECT_EQ(content(file_), "new");
  struct stat status {};
  ASSERT_EQ(stat(file_.c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 07777, 0604u);
  EXPECT_EQ(files(), 1u);
}

TEST_F(ReplaceFileTest, ALinkStaysOne) {
  const std::filesystem::path link = folder_ / "link.yaml";
  std::filesystem::create_symlink("f.yaml", link);
  replace_file(link, "new");
  EXPECT_TRUE(std::filesystem::is_symlink(link));
  EXPECT_EQ(content(file_), "new");
  EXPECT_EQ(files(), 2u);
}

TEST_F(ReplaceFileTest, WhatIsNoFileIsRefused) {
  EXPECT_THROW(replace_file(folder_, "new"), std::runtime_error);
  EXPECT_THROW(replace_file(folder_ / "none.yaml", "new"), std::runtime_error);
  EXPECT_EQ(content(file_), "old");
}

}  // namespace
}  // namespace framelane
