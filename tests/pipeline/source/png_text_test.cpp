// Not built for ThreadSanitizer: one thread uses it.
#include "pipeline/source/png_text.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <string>

#include "pipeline/av/av_ptr.hpp"

namespace framelane {
namespace {

const std::string kSignature("\x89PNG\r\n\x1a\n", 8);

/// A chunk as PNG has it, with any check sum.
std::string chunk(const std::string& type, const std::string& data) {
  std::string text;
  for (int shift = 24; shift >= 0; shift -= 8) text += static_cast<char>(data.size() >> shift);
  return text + type + data + "SUM!";
}

std::string without_texts(const std::string& png) {
  const PacketPtr packet = make_packet();
  EXPECT_EQ(av_new_packet(packet.get(), static_cast<int>(png.size())), 0);
  std::memcpy(packet->data, png.data(), png.size());
  drop_png_texts(*packet);
  return {reinterpret_cast<const char*>(packet->data), static_cast<std::size_t>(packet->size)};
}

TEST(PngTextTest, TextsAndProfilesAreTakenOut) {
  const std::string begin = kSignature + chunk("IHDR", "size") + chunk("gAMA", "45");
  const std::string end = chunk("IDAT", "pixels") + chunk("IEND", "");
  EXPECT_EQ(without_texts(begin + chunk("zTXt", "packed") + chunk("tEXt", "a") +
                          chunk("iCCP", std::string(300, 'x')) + chunk("iTXt", "") + end),
            begin + end);
}

TEST(PngTextTest, APictureWithoutThemStaysAsItIs) {
  const std::string png =
      kSignature + chunk("IHDR", "size") + chunk("IDAT", "zTXt") + chunk("IEND", "");
  EXPECT_EQ(without_texts(png), png);
}

TEST(PngTextTest, AChunkThatIsCutOffEndsThePicture) {
  const std::string begin = kSignature + chunk("IHDR", "size");
  EXPECT_EQ(without_texts(begin + chunk("IDAT", "pixels").substr(0, 10)),
            begin + chunk("IDAT", "pixels").substr(0, 10));
  EXPECT_EQ(without_texts(begin + "\xff\xff\xff\xffzTXtpacked"), begin);
  EXPECT_EQ(without_texts(begin + std::string(3, '\0')), begin + std::string(3, '\0'));
  EXPECT_EQ(without_texts("\x89PNG"), "\x89PNG");
}

TEST(PngTextTest, WhoSharesThePacketKeepsItAsItWas) {
  const std::string png = kSignature + chunk("zTXt", "packed") + chunk("IEND", "");
  const PacketPtr packet = make_packet();
  ASSERT_EQ(av_new_packet(packet.get(), static_cast<int>(png.size())), 0);
  std::memcpy(packet->data, png.data(), png.size());
  const PacketPtr other = make_packet();
  ASSERT_EQ(av_packet_ref(other.get(), packet.get()), 0);
  drop_png_texts(*packet);
  EXPECT_EQ(packet->size, static_cast<int>((kSignature + chunk("IEND", "")).size()));
  EXPECT_EQ(std::memcmp(other->data, png.data(), png.size()), 0);
}

}  // namespace
}  // namespace framelane
