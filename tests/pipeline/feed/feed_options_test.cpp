// Not built for ThreadSanitizer: what it tests has one thread.
#include "pipeline/feed/feed_options.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <string>

namespace framelane {
namespace {

TEST(BlocksWhenFullTest, FollowsTheSourceUnlessToldOtherwise) {
  EXPECT_TRUE(blocks_when_full(OnFull::kAuto, false));
  EXPECT_FALSE(blocks_when_full(OnFull::kAuto, true));
  EXPECT_TRUE(blocks_when_full(OnFull::kBlock, true));
  EXPECT_FALSE(blocks_when_full(OnFull::kDrop, false));
}

TEST(FeedOptionsTest, OutputsAreChangedAloneUnlessTheyAreRenditions) {
  FeedOptions a;
  a.outputs.resize(2);
  a.outputs[0].master = "master.m3u8";
  FeedOptions b = a;
  EXPECT_TRUE(can_change_in_run(a, b));
  b.outputs[1].url = "another";
  b.outputs.emplace_back();
  b.outputs[0].queue = 3;
  EXPECT_TRUE(can_change_in_run(a, b));
  b.outputs[0].url = "another";
  EXPECT_FALSE(can_change_in_run(a, b));
}

TEST(FeedOptionsTest, WhatTheSourceIsReadWithIsNotChangedInARun) {
  const FeedOptions a;
  FeedOptions b = a;
  b.input.mask.emplace_back();
  b.input.reconnect.max = std::chrono::seconds(5);
  b.on_full = OnFull::kDrop;
  EXPECT_TRUE(can_change_in_run(a, b));
  b.ring = 3;
  EXPECT_FALSE(can_change_in_run(a, b));
  b = a;
  b.input.timeout = std::chrono::seconds(1);
  EXPECT_FALSE(can_change_in_run(a, b));
}

EncodeOptions named(const std::string& name) {
  EncodeOptions encode;
  encode.name = name;
  encode.codecs.push_back({.name = "libx264"});
  return encode;
}

TEST(FeedOptionsTest, EncodesComeGoAndChangeWhileTheSourceIsReadAsBefore) {
  FeedOptions a;
  a.encodes = {named("main"), named("sub")};
  FeedOptions b = a;
  b.encodes[0].bitrate = 1'000'000;
  b.encodes[1] = named("other");
  EXPECT_TRUE(can_change_in_run(a, b));
  b.encodes[0].copy_video = true;
  EXPECT_TRUE(can_change_in_run(a, b));
  b.encodes[0].copy_audio = true;
  EXPECT_FALSE(can_change_in_run(a, b)) << "nobody wanted sound before";
  b.encodes = {named("copy")};
  b.encodes[0].copy_video = true;
  EXPECT_FALSE(can_change_in_run(a, b)) << "nobody decodes any more";
}

TEST(FeedOptionsTest, TheEncodeThatIsAnalysedStaysTheFirstOne) {
  FeedOptions a;
  a.encodes = {named("main"), named("sub")};
  a.analyse = true;
  FeedOptions b = a;
  b.encodes[1].name = "other";
  b.encodes[0].bitrate = 1'000'000;
  EXPECT_TRUE(can_change_in_run(a, b));
  b.encodes[0].name = "first";
  EXPECT_FALSE(can_change_in_run(a, b));
}

TEST(FeedOptionsTest, AnEncodeOfARenditionChangesNoMoreThanWhatIsDrawn) {
  FeedOptions a;
  a.encodes = {named("main"), named("sub")};
  a.outputs.resize(1);
  a.outputs[0].from = "main";
  a.outputs[0].master = "master.m3u8";
  FeedOptions b = a;
  b.encodes[0].overlays.emplace_back();
  b.encodes[1].bitrate = 1'000'000;
  EXPECT_TRUE(can_change_in_run(a, b));
  b.encodes[0].bitrate = 1'000'000;
  EXPECT_FALSE(can_change_in_run(a, b));
}

}  // namespace
}  // namespace framelane
