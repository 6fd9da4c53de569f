#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include "pipeline/overlay/overlay_options.hpp"
#include "tests/config/support.hpp"

namespace framelane {
namespace {

std::vector<OverlayOptions> overlays(const std::string& list) {
  return test::load_feed("feeds: {gate: {input: {url: x}, encodes: {m: {overlay: " + list + "}}}}")
      .encodes.at(0)
      .overlays;
}

TEST(OverlayKeysTest, EachKeyOfATextSetsItsOption) {
  const auto read = overlays(
      "[{text: \"${feed} %T\", at: center, size: 7%, color: \"#10203040\", box: \"#506070\"}, "
      "{text: x, at: bottom-left, box: none}]");
  ASSERT_EQ(read.size(), 2u);
  OverlayOptions text;
  text.text = "gate %T";
  text.across = text.down = Along::kMiddle;
  text.size = 0.07;
  text.color = {{0x10, 0x20, 0x30}, 0x40};
  text.box = {{0x50, 0x60, 0x70}, 255};
  EXPECT_EQ(read[0], text);
  OverlayOptions other;
  other.text = "x";
  other.across = Along::kBegin;
  other.down = Along::kEnd;
  other.box = {{0, 0, 0}, 0};
  EXPECT_EQ(read[1], other);
}

/// A white pixel.
constexpr unsigned char kPng[] = {
    0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a, 0x00, 0x00, 0x00, 0x0d, 0x49, 0x48,
    0x44, 0x52, 0x00, 0x00, 0x00, 0x01, 0x00, 0x00, 0x00, 0x01, 0x08, 0x00, 0x00, 0x00,
    0x00, 0x3a, 0x7e, 0x9b, 0x55, 0x00, 0x00, 0x00, 0x0a, 0x49, 0x44, 0x41, 0x54, 0x78,
    0x9c, 0x63, 0xf8, 0x0f, 0x00, 0x01, 0x01, 0x01, 0x00, 0xb1, 0x38, 0xf6, 0x14, 0x00,
    0x00, 0x00, 0x00, 0x49, 0x45, 0x4e, 0x44, 0xae, 0x42, 0x60, 0x82};

TEST(OverlayKeysTest, EachKeyOfAnImageSetsItsOption) {
  std::string file = std::filesystem::temp_directory_path() / "overlay-XXXXXX";
  const int descriptor = ::mkstemp(file.data());
  ASSERT_EQ(::write(descriptor, kPng, sizeof kPng), static_cast<ssize_t>(sizeof kPng));
  ::close(descriptor);
  const auto read = overlays("{image: " + file + ", at: top-right, width: 12%, opacity: 0.25}");
  ASSERT_EQ(read.size(), 1u);
  OverlayOptions image;
  image.image = file;
  image.across = Along::kEnd;
  image.width = 0.12;
  image.opacity = 0.25;
  EXPECT_EQ(read[0], image);
  std::filesystem::remove(file);
}

}  // namespace
}  // namespace framelane
