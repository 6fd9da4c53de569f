// Not built for ThreadSanitizer: one thread uses it.
#include <dirent.h>
#include <dlfcn.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cerrno>
#include <filesystem>
#include <fstream>
#include <string>
#include <variant>
#include <vector>

#include "config/config.hpp"
#include "config/yaml_tree.hpp"
#include "tests/temp_folder.hpp"

namespace {

/// readdir() fails so after the first entry; 0: it does not.
int folder_error = 0;

}  // namespace

extern "C" dirent* readdir(DIR* folder) {
  static const auto real = reinterpret_cast<dirent* (*)(DIR*)>(dlsym(RTLD_NEXT, "readdir"));
  if (folder_error == 0 || telldir(folder) == 0) return real(folder);
  errno = folder_error;
  return nullptr;
}

namespace framelane {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

/// A configuration in a folder of its own, with the files that it includes.
class IncludeTest : public ::testing::Test {
 protected:
  IncludeTest() { std::filesystem::create_directory(path("feeds.d")); }
  void write(const std::string& name, const std::string& text) const {
    std::ofstream(path(name)) << text;
  }
  std::string path(const std::string& name) const { return folder_ / name; }
  LoadResult load(const std::string& text, const LoadOptions& options = {}) const {
    write("main.yaml", text);
    return load_config_file(path("main.yaml"), options);
  }
  Config good(const std::string& text) const {
    LoadResult result = load(text);
    if (auto* config = std::get_if<Config>(&result)) return std::move(*config);
    for (const Problem& problem : std::get<std::vector<Problem>>(result)) {
      ADD_FAILURE() << to_string(problem);
    }
    return {};
  }
  std::vector<std::string> problems(const std::string& text) const {
    std::vector<std::string> lines;
    const LoadResult result = load(text);
    if (const auto* found = std::get_if<std::vector<Problem>>(&result)) {
      for (const Problem& problem : *found) lines.push_back(to_string(problem));
    }
    return lines;
  }
  static std::vector<std::string> names(const Config& config) {
    std::vector<std::string> names;
    for (const FeedOptions& feed : config.feeds) names.push_back(feed.name);
    return names;
  }

  testing::TempFolder folder_;
};

TEST_F(IncludeTest, FeedsComeFromManyFilesInTheOrderOfTheirNames) {
  write("feeds.d/b.yaml", "feeds: {yard: {input: {url: b.mp4}}}\n");
  write("feeds.d/a.yaml", "feeds: {gate: {input: {url: a.mp4}}}\n");
  write("feeds.d/note.txt", "not a configuration");
  const Config config =
      good("defaults: {ring: 5}\ninclude: feeds.d/*.yaml\nfeeds: {door: {input: {url: d.mp4}}}\n");
  EXPECT_THAT(names(config), ElementsAre("door", "gate", "yard"));
  EXPECT_EQ(config.feeds[2].ring, 5);
  EXPECT_THAT(config.files,
              ElementsAre(path("main.yaml"), path("feeds.d/a.yaml"), path("feeds.d/b.yaml")));
  EXPECT_FALSE(config.names_files);
}

TEST_F(IncludeTest, TheMainFileNeedsNoFeedsAndProfilesMayBeIncluded) {
  write("profiles.yaml", "profiles: {slow: {input: {timeout: 1m}}}\n");
  write("feeds.d/a.yaml", "feeds: {gate: {profile: slow, input: {url: a.mp4}}}\n");
  const Config config = good("include: [profiles.yaml, feeds.d/*, feeds.d/a.yaml]\n");
  ASSERT_THAT(names(config), ElementsAre("gate"));
  EXPECT_EQ(config.feeds[0].input.timeout, std::chrono::minutes(1));
}

TEST_F(IncludeTest, AFolderMayBeEmptyAndAFileMayNot) {
  EXPECT_THAT(names(good("include: feeds.d/*.yaml\nfeeds: {door: {input: {url: d.mp4}}}\n")),
              ElementsAre("door"));
  EXPECT_THAT(problems("include: feeds.d/*.yaml\n"),
              ElementsAre(HasSubstr("no file that is included has feeds")));
  EXPECT_THAT(problems("include: [more.yaml]\nfeeds: {door: {input: {url: d.mp4}}}\n"),
              ElementsAre(HasSubstr("main.yaml:1:11: include[0]: there is no file \"more.yaml\"; "
                                    "make it, or correct the name")));
}

TEST_F(IncludeTest, FoldersMayBeMissingAndHaveAnyName) {
  write("a.yaml", "feeds: {gate: {input: {url: a.mp4}}}\n");
  EXPECT_THAT(names(good("include: [a.yaml, none.d/*.yaml]\n")), ElementsAre("gate"));
  std::filesystem::create_directories(path("q[1]*/feeds.d"));
  write("q[1]*/feeds.d/a.yaml", "feeds: {gate: {input: {url: a.mp4}}}\n");
  write("q[1]*/main.yaml", "include: feeds.d/*.yaml\n");
  const LoadResult odd = load_config_file(path("q[1]*/main.yaml"));
  ASSERT_TRUE(std::holds_alternative<Config>(odd));
  EXPECT_THAT(names(std::get<Config>(odd)), ElementsAre("gate"));
  EXPECT_THAT(problems("include: '*.yaml'\n"),
              ElementsAre(HasSubstr("main.yaml:1:10: include: names this file itself")));
}

// Root may search every folder, so these are links that lead nowhere.
TEST_F(IncludeTest, AFolderThatCannotBeSearchedIsAProblem) {
  std::filesystem::create_directories(path("e/a"));
  write("e/a/x.yaml", "feeds: {gate: {input: {url: a.mp4}}}\n");
  EXPECT_THAT(names(good("include: e/*/x.yaml\n")), ElementsAre("gate"));
  std::filesystem::create_symlink("loop", path("e/loop"));
  for (const char* pattern : {"e/*/x.yaml", "e/loop/*.yaml"}) {
    EXPECT_THAT(
        problems("include: '" + std::string(pattern) + "'\nfeeds: {door: {input: {url: d}}}"),
        ElementsAre(HasSubstr("include: a folder of \"" + std::string(pattern) +
                              "\" cannot be read: Too many levels of symbolic links; mend that, "
                              "or name other files")));
  }
}

// As on a file server whose folder is gone: what was read of it must not pass for all of it.
TEST_F(IncludeTest, AFolderThatBreaksOffIsAProblem) {
  write("feeds.d/a.yaml", "feeds: {gate: {input: {url: a.mp4}}}\n");
  write("feeds.d/b.yaml", "feeds: {yard: {input: {url: b.mp4}}}\n");
  folder_error = ESTALE;
  const auto found = problems("include: feeds.d/*.yaml\nfeeds: {door: {input: {url: d.mp4}}}\n");
  folder_error = 0;
  EXPECT_THAT(found, ElementsAre(HasSubstr("include: a folder of \"feeds.d/*.yaml\" cannot be "
                                           "read: Stale file handle; mend that")));
}

TEST_F(IncludeTest, AFeedWhoseProfilesNameCannotBeReadAnyMoreIsStillShown) {
  write("name", "slow");
  write("feeds.d/a.yaml",
        "feeds: {gate: {profile: '${file:" + path("name") + "}', input: {url: a.mp4}}}\n");
  const Config config = good("profiles: {slow: {ring: 5}}\ninclude: feeds.d/*.yaml\n");
  ASSERT_THAT(names(config), ElementsAre("gate"));
  EXPECT_NE(merged_feed(*config.tree, "gate", config.files).find("ring"), nullptr);
  std::filesystem::remove(path("name"));
  const Node feed = merged_feed(*config.tree, "gate", config.files);
  EXPECT_NE(feed.find("profile"), nullptr);
  EXPECT_EQ(feed.find("ring"), nullptr);
}

TEST_F(IncludeTest, AFileThatCannotBeReadIsAProblem) {
  std::filesystem::create_directory(path("feeds.d/a.yaml"));
  EXPECT_THAT(problems("include: feeds.d/*\nfeeds: {door: {input: {url: d.mp4}}}\n"),
              ElementsAre(HasSubstr("include: includes " + path("feeds.d/a.yaml") +
                                    ", which cannot be read: Is a directory; mend that, or name "
                                    "other files")));
}

TEST_F(IncludeTest, ProblemsHaveTheFileInWhichTheyAre) {
  write("feeds.d/a.yaml", "feeds:\n  gate: {inputs: {url: a.mp4}}\n");
  write("feeds.d/b.yaml", "feeds: [\n");
  write("feeds.d/c.yaml", "feeds: {yard: {input: {url: c.mp4}, rings: 3}}\n");
  EXPECT_THAT(problems("include: feeds.d/*\nfeeds: {yard: {input: {url: y.mp4, tiemout: 1s}}}\n"),
              ElementsAre(HasSubstr("main.yaml:2:36: feeds.yard.input.tiemout: "),
                          HasSubstr("a.yaml:2:3: feeds.gate"),
                          HasSubstr("a.yaml:2:10: feeds.gate.inputs: "), HasSubstr("b.yaml:2:1: "),
                          HasSubstr("c.yaml:1:9: feeds.yard: is already in " + path("main.yaml") +
                                    ", line 2")));
}

TEST_F(IncludeTest, OtherKeysStayInTheMainFile) {
  write("a.yaml", "log: {level: debug}\ninclude: b.yaml\nfeeds: {gate: {input: {url: a.mp4}}}\n");
  EXPECT_THAT(
      problems("include: a.yaml\n"),
      ElementsAre(HasSubstr("a.yaml:1:1: log: an included file has feeds and profiles only"),
                  HasSubstr("a.yaml:2:1: include: an included file has")));
  write("a.yaml", "- feeds\n");
  EXPECT_THAT(problems("include: a.yaml\nfeeds: {door: {input: {url: d.mp4}}}\n"),
              ElementsAre(HasSubstr("a.yaml:1:1: the file must be a map of keys")));
}

TEST_F(IncludeTest, ASecretInAnIncludedFileIsReadAgain) {
  write("password", "pa55-one");
  write("a.yaml",
        "feeds: {gate: {input: {url: 'rtsp://u:${file:" + path("password") + "}@h/'}}}\n");
  const Config config = good("include: a.yaml\n");
  ASSERT_TRUE(config.names_files);
  write("password", "pa55-two");
  const FeedResult again = reread_feed(*config.tree, "gate", config.files);
  EXPECT_EQ(std::get<FeedOptions>(again).input.url, "rtsp://u:pa55-two@h/");
  std::filesystem::remove(path("password"));
  const FeedResult gone = reread_feed(*config.tree, "gate", config.files);
  EXPECT_THAT(to_string(std::get<std::vector<Problem>>(gone).at(0)),
              HasSubstr("a.yaml:1:29: feeds.gate.input.url: "));
}

}  // namespace
}  // namespace framelane
