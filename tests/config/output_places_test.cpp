#include "config/output_places.hpp"

#include <gmock/gmock.h>

#include <string>
#include <vector>

namespace framelane {
namespace {

using ::testing::IsEmpty;
using ::testing::UnorderedElementsAre;

class OutputPlacesTest : public ::testing::Test {
 protected:
  void add(const std::string& pattern) {
    places_.add({pattern, FilePattern(pattern), "keep", "an output"});
  }

  std::vector<std::string> near(const std::string& pattern) const {
    std::vector<std::string> found;
    for (const OutputPlaces::Files* files : places_.near(FilePattern(pattern))) {
      found.push_back(files->place);
    }
    return found;
  }

  OutputPlaces places_;
};

TEST_F(OutputPlacesTest, FilesAreNearWhereNamesBeginAlike) {
  for (const char* pattern : {"/r/cam1/%s.ts", "/r/cam1/%s.mp4", "/r/cam1/a/%s.ts", "/r/%Y/%s.ts",
                              "/r/cam2/%s.ts", "/r/cam", "/q/cam1/%s.ts"}) {
    add(pattern);
  }
  EXPECT_THAT(near("/r/cam1/%d.ts"),
              UnorderedElementsAre("/r/cam1/%s.ts", "/r/cam1/%s.mp4", "/r/cam1/a/%s.ts",
                                   "/r/%Y/%s.ts", "/r/cam"));
}

TEST_F(OutputPlacesTest, NoneIsNearAnother) {
  for (int i = 10; i < 100; ++i) {
    const std::string pattern = "/r/cam" + std::to_string(i) + "-%s.ts";
    EXPECT_THAT(near(pattern), IsEmpty());
    add(pattern);
  }
}

TEST_F(OutputPlacesTest, APlaceHasTheOutputThatTookItFirst) {
  EXPECT_EQ(places_.take("/r/a.mp4", "one"), "one");
  EXPECT_EQ(places_.take("/r/a.mp4", "two"), "one");
  EXPECT_EQ(places_.take("/r/b.mp4", "two"), "two");
}

}  // namespace
}  // namespace framelane
