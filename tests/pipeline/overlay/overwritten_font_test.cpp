#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <optional>
#include <string>
#include <thread>

#include "pipeline/base/failure.hpp"
#include "pipeline/overlay/text_painter.hpp"
#include "tests/pipeline/overlay/system_fonts.hpp"
#include "tests/pipeline/source/media_files.hpp"

namespace framelane {
namespace {

const std::string kFolder = "/usr/share/fonts/truetype/dejavu/";
constexpr PictureSize kFontRoom{4000, 3000};

/// A font file that is overwritten in place.
class OverwrittenFontTest : public ::testing::Test {
 protected:
  OverwrittenFontTest() {
    std::filesystem::create_directory(folder_ / "fonts");
    write(font_);
  }

  static std::string read(const std::string& file) {
    std::ifstream stream(kFolder + file, std::ios::binary);
    return {std::istreambuf_iterator<char>(stream), {}};
  }
  void write(const std::string& bytes) const {
    std::ofstream(file_, std::ios::binary | std::ios::trunc) << bytes;
  }
  OverlayOptions with_file() const {
    OverlayOptions options;
    options.font = file_;
    return options;
  }
  /// The system has this font alone.
  void make_it_the_systems() {
    system_fonts_.emplace("<dir>" + (folder_ / "fonts") + "</dir><cachedir>" + (folder_ / "cache") +
                          "</cachedir>");
  }

  static RgbaPicture painted(const OverlayOptions& options) {
    return TextPainter(options, 40, kFontRoom).paint("12:00");
  }

  const testing::TempFolder folder_;
  const std::string file_ = folder_ / "fonts/font.ttf";
  const std::string font_ = read("DejaVuSans.ttf");
  std::optional<testing::SystemFonts> system_fonts_;
};

TEST_F(OverwrittenFontTest, OneThatIsOverwrittenIsAnErrorAndANewPainterReadsIt) {
  std::string damaged = font_;
  std::fill(damaged.begin() + 1000, damaged.end(), '\x5a');
  make_it_the_systems();
  for (const OverlayOptions& options : {with_file(), OverlayOptions{}}) {
    for (const std::string& bytes : {std::string(), read("DejaVuSansMono.ttf"), damaged}) {
      TextPainter painter(options, 40, kFontRoom);
      const RgbaPicture before = painter.paint("12:00");
      write(bytes);
      try {
        painter.paint("12:01");
        ADD_FAILURE() << bytes.size();
      } catch (const FeedError& error) {
        EXPECT_THAT(error.what(), ::testing::HasSubstr("the font " + file_ + " was overwritten"));
      }
      write(font_);
      EXPECT_EQ(painted(options).pixels, before.pixels);
    }
  }
}

TEST_F(OverwrittenFontTest, OneThatIsReplacedByRenamingStaysAsItWasRead) {
  const OverlayOptions options = with_file();
  TextPainter painter(options, 40, kFontRoom);
  const RgbaPicture before = painter.paint("12:00");
  std::filesystem::copy_file(kFolder + "DejaVuSansMono.ttf", folder_ / "new.ttf");
  std::filesystem::rename(folder_ / "new.ttf", file_);
  painter.paint("34:56");
  EXPECT_EQ(painter.paint("12:00").pixels, before.pixels);
  EXPECT_NE(painted(options).pixels, before.pixels);
}

TEST_F(OverwrittenFontTest, OneThatOnlyHarfBuzzCanReadIsAnError) {
  make_it_the_systems();
  painted(OverlayOptions{});
  std::string damaged = font_;
  damaged.replace(damaged.find("hmtx"), 4, "none");
  write(damaged);
  try {
    painted(OverlayOptions{});
    ADD_FAILURE();
  } catch (const FeedError& error) {
    EXPECT_THAT(error.what(), ::testing::HasSubstr("the font " + file_ + " is no font that can"));
  }
}

TEST_F(OverwrittenFontTest, OneMayBeOverwrittenAtAnyTime) {
  make_it_the_systems();
  painted(OverlayOptions{});  // from now on fontconfig's cache has it
  for (const OverlayOptions& options : {with_file(), OverlayOptions{}}) {
    std::atomic<bool> done{false};
    std::thread writer([&] {
      while (!done) write(font_);
    });
    for (int i = 0; i < 50; ++i) {
      try {
        TextPainter painter(options, 40, kFontRoom);
        for (const char* text : {"12:00", "34", "56789"}) painter.paint(text);
      } catch (const FeedError&) {
        continue;
      }
    }
    done = true;
    writer.join();
    EXPECT_NO_THROW(painted(options));
  }
}

}  // namespace
}  // namespace framelane
