// Longer than 400 lines: each call that can hang has its test, and all share one fixture.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <string>
#include <thread>
#include <utility>

#include "pipeline/base/abandoned_threads.hpp"
#include "pipeline/frames/host_buffer.hpp"
#include "pipeline/measure/busy_meter.hpp"
#include "pipeline/source/input_options.hpp"
#include "tests/pipeline/base/wait.hpp"
#include "tests/pipeline/encode/held_encoder.hpp"
#include "tests/pipeline/feed/feed_fixture.hpp"
#include "tests/pipeline/frames/held_registrar.hpp"
#include "tests/pipeline/overlay/held_fonts.hpp"
#include "tests/pipeline/source/held_decoder.hpp"
#include "tests/pipeline/stage/device_wrapper.hpp"

namespace framelane {
namespace {

using namespace testing;  // of framelane

/// Feeds of which a thread is in a call that does not return.
class StuckFeedTest : public FeedTest {
 protected:
  StuckFeedTest() { deadlines_ = {.after_cancel = 1s, .after_deadline = 1s, .stage_call = 500ms}; }

  /// Asks again and again, as the supervisor does, which is how a stuck call is noticed.
  std::optional<Feed::Outcome> outcome_while_watched(std::chrono::steady_clock::time_point until) {
    std::optional<Feed::Outcome> outcome;
    while (!(outcome = feed_->outcome()) && std::chrono::steady_clock::now() < until) {
      feed_->join_until(std::chrono::steady_clock::now() + 50ms);
    }
    return outcome;
  }

  /// Nothing is measured any more, though the call has not returned.
  static void expect_ended(const BusyMeter& busy) {
    const auto total = busy.total();
    EXPECT_EQ(busy.total(std::chrono::steady_clock::now() + 1h), total);
  }
};

// Inside "concat:" FFmpeg opens a FIFO by itself, and waits for its writer whatever the deadline
// is.
TEST_F(StuckFeedTest, SourceStuckInACallThatIgnoresItsDeadlineIsAbandoned) {
  const std::string fifo = file("fifo");
  ASSERT_EQ(::mkfifo(fifo.c_str(), 0600), 0);
  options_.once = false;
  options_.input.url = "concat:" + fifo;
  options_.input.timeout = 100ms;
  add_encode("live", "libx264");
  add_output("null", "live", "null:");
  start();
  const auto deadline = std::chrono::steady_clock::now() + 60s;
  const auto outcome = outcome_while_watched(deadline);
  ASSERT_TRUE(outcome);
  EXPECT_EQ(outcome->kind, Feed::Outcome::Kind::kFailed);
  EXPECT_EQ(outcome->fault, FeedFault::kInternal);
  EXPECT_NE(outcome->reason.find("input.timeout"), std::string::npos) << outcome->reason;
  const std::uint64_t abandoned = threads_abandoned();
  const std::uint64_t stuck = threads_stuck();
  feed_.reset();
  EXPECT_EQ(threads_abandoned(), abandoned + 1);
  EXPECT_EQ(threads_stuck(), stuck + 1);
  EXPECT_EQ(stats_->abandoned_runs, 1);
  // The call returns now, and the run that the thread kept alive goes.
  const int writer = ::open(fifo.c_str(), O_WRONLY);
  ::close(writer);
  while (stats_.use_count() > 1 && std::chrono::steady_clock::now() < deadline) {
    std::this_thread::yield();
  }
  EXPECT_EQ(stats_.use_count(), 1);
  EXPECT_EQ(stats_->abandoned_runs, 0);
  EXPECT_EQ(threads_stuck(), stuck);
  expect_every_frame_accounted_for();
}

// If the file of a segment is a FIFO, open() waits for its reader, as a
// call on a dead file server would wait for the server.
TEST_F(StuckFeedTest, OutputStuckInACallThatIgnoresItsDeadlineIsAbandoned) {
  const std::string fifo = file("part0.ts.tmp");
  ASSERT_EQ(::mkfifo(fifo.c_str(), 0600), 0);
  options_.once = false;
  options_.input.loop = true;  // a first segment ends, and is opened then
  add_encode("live", "libx264", {{"preset", "ultrafast"}, {"g", "10"}});
  add_output("hls", "live", file("list.m3u8"));
  options_.outputs.back().options = {{"hls_segment_filename", file("part%d.ts"), false},
                                     {"hls_time", "0.2", false}};
  options_.outputs.back().timeout = 100ms;
  start();
  const auto deadline = std::chrono::steady_clock::now() + 60s;
  const auto outcome = outcome_while_watched(deadline);
  ASSERT_TRUE(outcome);
  EXPECT_EQ(outcome->kind, Feed::Outcome::Kind::kFailed);
  EXPECT_EQ(outcome->fault, FeedFault::kInternal);
  EXPECT_NE(outcome->reason.find("output hls is stuck"), std::string::npos) << outcome->reason;
  EXPECT_EQ(stats_->outputs().front()->state(), std::pair(FeedState::kFailed, outcome->reason));
  EXPECT_FALSE(stats_->outputs().front()->up);
  const std::uint64_t abandoned = threads_abandoned();
  feed_.reset();
  EXPECT_EQ(threads_abandoned(), abandoned + 1);
  EXPECT_GT(stats_->outputs().front()->packets_dropped[index_of(PacketDrop::kWriteFailed)], 0U);
  EXPECT_EQ(stats_->outputs().front()->queue_packets, 0U);
  expect_ended(stats_->outputs().front()->busy);
  // The call returns now, and the run that the thread kept alive goes. The thread does not write
  // the playlist.
  const int reader = ::open(fifo.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC);
  while (stats_.use_count() > 1 && std::chrono::steady_clock::now() < deadline) {
    std::this_thread::yield();
  }
  ::close(reader);
  EXPECT_EQ(stats_.use_count(), 1);
  EXPECT_FALSE(std::filesystem::exists(file("list.m3u8")));
  expect_every_frame_accounted_for();
}

TEST_F(StuckFeedTest, AnEncoderThatDoesNotReturnIsAbandonedAndNothingOfItIsLeftInTheCounts) {
  HeldEncoder encoder;
  deadlines_.encode_call = 100ms;
  options_.once = false;
  options_.input.loop = true;
  options_.input.pace = InputOptions::Pace::kRealtime;  // a live feed
  add_encode("live", "libx264", {{"preset", "ultrafast"}, {"tune", "zerolatency"}});
  add_output("null", "live", "null:");
  start();
  ASSERT_TRUE(wait_out(2));
  encoder.hold();
  const auto deadline = std::chrono::steady_clock::now() + 60s;
  const auto outcome = outcome_while_watched(deadline);
  ASSERT_TRUE(outcome);
  EXPECT_EQ(outcome->kind, Feed::Outcome::Kind::kFailed);
  EXPECT_EQ(outcome->fault, FeedFault::kEncoder);
  EXPECT_NE(outcome->reason.find("encode live: a call of libx264"), std::string::npos)
      << outcome->reason;
  const std::uint64_t abandoned = threads_abandoned();
  feed_.reset();
  EXPECT_EQ(threads_abandoned(), abandoned + 1);
  expect_every_frame_accounted_for();
  expect_ended(stats_->encode(0).busy);
  // The call returns now. Nothing is counted twice.
  encoder.release();
  while (stats_.use_count() > 1 && std::chrono::steady_clock::now() < deadline) {
    std::this_thread::yield();
  }
  EXPECT_EQ(stats_.use_count(), 1);
  expect_every_frame_accounted_for();
}

TEST_F(StuckFeedTest, AFrameThatADecoderReturnsAfterItsRunWasAbandonedIsNotTakenForTheNextRuns) {
  HeldDecoder decoder;
  options_.once = false;
  options_.input.timeout = 100ms;
  add_encode("live", "libx264", {{"preset", "ultrafast"}});
  add_output("null", "live", "null:");
  start();
  const auto deadline = std::chrono::steady_clock::now() + 60s;
  ASSERT_TRUE(outcome_while_watched(deadline));
  feed_.reset();
  EXPECT_EQ(stats_->abandoned_runs, 1);
  stats_->set_state(FeedState::kBackoff, "its decoder was stuck");
  decoder.release();
  while (stats_.use_count() > 1 && std::chrono::steady_clock::now() < deadline) {
    std::this_thread::yield();
  }
  EXPECT_EQ(stats_.use_count(), 1);
  EXPECT_EQ(stats_->status().state, FeedState::kBackoff);
  EXPECT_EQ(stats_->status().reason, "its decoder was stuck");
  EXPECT_EQ(stats_->since_arrival(deadline), std::chrono::steady_clock::duration::max());
  EXPECT_EQ(stats_->ledger().frames_in, 0U);
  expect_every_frame_accounted_for();
}

TEST_F(StuckFeedTest, SoundThatIsStuckInACodecIsAbandonedAndNothingOfItIsLeftInTheCounts) {
  HeldEncoder encoder;
  deadlines_.encode_call = 100ms;
  use_camera_with_sound();
  add_copy("main");
  options_.encodes.back().audio_codecs = {{"aac"}};
  add_output("null", "main", "null:");
  start();
  ASSERT_TRUE(wait_sound_out(5));
  encoder.hold();
  const auto deadline = std::chrono::steady_clock::now() + 60s;
  const auto outcome = outcome_while_watched(deadline);
  ASSERT_TRUE(outcome);
  EXPECT_EQ(outcome->fault, FeedFault::kEncoder);
  EXPECT_EQ(outcome->reason.find("encode main: a call that transcodes its sound to aac does"), 0U)
      << outcome->reason;
  EXPECT_NE(outcome->reason.find("name another codec"), std::string::npos) << outcome->reason;
  feed_.reset();
  expect_every_frame_accounted_for();
  EXPECT_GT(stats_->encode(0).audio.counts().dropped[index_of(AudioDrop::kFeedFailed)], 0u);
  // The call returns now. Nothing is counted twice.
  encoder.release();
  while (stats_.use_count() > 1 && std::chrono::steady_clock::now() < deadline) {
    std::this_thread::yield();
  }
  EXPECT_EQ(stats_.use_count(), 1);
  expect_every_frame_accounted_for();
}

TEST_F(StuckFeedTest, FontsThatHangTakeTheirEncodeDownAloneUntilTheyAreRead) {
  HeldFonts fonts;
  fonts.hold();
  deadlines_.overlay_files = 200ms;
  options_.once = false;
  options_.input.loop = true;
  options_.input.pace = InputOptions::Pace::kRealtime;
  add_encode("plain", "libx264", {{"preset", "ultrafast"}});
  add_encode("drawn", "libx264", {{"preset", "ultrafast"}}).overlays.resize(1);
  options_.encodes[1].overlays[0].text = "gate %T";
  start();
  ASSERT_TRUE(wait_out(5));
  EXPECT_EQ(stats_->encode(1).reason().find("overlay: its fonts and images could not be read"), 0U)
      << stats_->encode(1).reason();
  EXPECT_EQ(stats_->ledger().encodes[1].out, 0U);
  fonts.release();
  EXPECT_TRUE(comes_true([this] { return stats_->ledger().encodes[1].out > 0; }));
  feed_->cancel(DropReason::kStop);
  wait();
  EXPECT_GT(dropped(DropReason::kEncoder, 1), 0U);
  EXPECT_EQ(dropped(DropReason::kEncoder, 0), 0U);
  expect_every_frame_accounted_for();
}

TEST_F(StuckFeedTest, AFontThatHangsWhileATextIsDrawnTakesItsEncodeDownAlone) {
  HeldFonts fonts;
  deadlines_.overlay_files = 1s;
  options_.once = false;
  options_.input.loop = true;
  options_.input.pace = InputOptions::Pace::kRealtime;
  add_encode("plain", "libx264", {{"preset", "ultrafast"}});
  add_encode("drawn", "libx264", {{"preset", "ultrafast"}}).overlays.resize(1);
  options_.encodes[1].overlays[0].text = "gate";
  start();
  ASSERT_TRUE(comes_true([this] { return stats_->ledger().encodes[1].out > 0; }));
  fonts.hold_font();
  FeedOptions restyled = options_;
  restyled.encodes[1].overlays[0].text = "yard";
  ASSERT_TRUE(change(restyled));
  EXPECT_TRUE(comes_true([this] { return !stats_->encode(1).reason().empty(); }));
  const std::uint64_t out = stats_->ledger().encodes[0].out;
  EXPECT_TRUE(wait_out(out + 10));
  EXPECT_EQ(stats_->status().state, FeedState::kRunning);
  fonts.release();
  EXPECT_TRUE(comes_true([this] { return stats_->encode(1).reason().empty(); }));
  feed_->cancel(DropReason::kStop);
  wait();
  EXPECT_GT(dropped(DropReason::kEncoder, 1), 0U);
  expect_every_frame_accounted_for();
}

/// The CPU, which says that it is a GPU.
class GpuInName : public DeviceWrapper {
 public:
  GpuInName() : DeviceWrapper(make_cpu_device()) {}
  const std::string& name() const override { return name_; }
  bool has_copy_engines() const override { return true; }
  bool lost() const override { return lost_; }
  void lose(const std::string& /*reason*/) override { lost_ = true; }

 private:
  const std::string name_ = "cuda:0";
  std::atomic<bool> lost_{false};
};

/// An encoder that does not open, of a feed with a GPU.
class HeldOpeningTest : public StuckFeedTest {
 protected:
  HeldOpeningTest() {
    deadlines_.prepare = 100ms;
    deadlines_.after_deadline = 100ms;
    options_.once = false;
    device_ = std::make_shared<GpuInName>();
    encoder_.hold_opening();
  }
  Feed::Outcome outcome_with(const std::string& codec) {
    add_encode("live", codec);
    start();
    const auto deadline = std::chrono::steady_clock::now() + 60s;
    auto outcome = outcome_while_watched(deadline);
    const std::uint64_t abandoned = threads_abandoned();
    feed_.reset();
    EXPECT_EQ(threads_abandoned(), abandoned + 1);
    encoder_.release();
    while (stats_.use_count() > 1 && std::chrono::steady_clock::now() < deadline) {
      std::this_thread::yield();
    }
    EXPECT_EQ(stats_.use_count(), 1);
    expect_every_frame_accounted_for();
    return outcome.value_or(Feed::Outcome());
  }

  HeldEncoder encoder_;
};

TEST_F(HeldOpeningTest, ASoftwareEncoderIsItsEncodesFaultAndLeavesTheGpuToTheOthers) {
  const Feed::Outcome outcome = outcome_with("libx264");
  EXPECT_EQ(outcome.fault, FeedFault::kEncoder);
  EXPECT_EQ(outcome.reason.find("encode live: the call that opens its encoder"), 0U)
      << outcome.reason;
  EXPECT_FALSE(device_->lost());
}

TEST_F(HeldOpeningTest, AnEncoderOnTheGpuIsTheGpusFault) {
  const Feed::Outcome outcome = outcome_with("h264_nvenc");
  EXPECT_EQ(outcome.fault, FeedFault::kDevice);
  EXPECT_TRUE(device_->lost());
}

/// A feed of raw frames from a FIFO, and a GPU that may hold up all threads that ask for memory.
class HeldMemoryTest : public StuckFeedTest {
 protected:
  HeldMemoryTest() {
    ::mkfifo(file("fifo").c_str(), 0600);
    options_.once = false;
    options_.input.url = file("fifo");
    options_.input.timeout = 100ms;
    options_.input.raw = {.pixel_format = "bgra", .width = 64, .height = 48};
    add_encode("live", "libx264");
    device_ = std::make_shared<GpuInName>();
  }
  void expect_abandoned(FeedFault fault, const std::string& reason) {
    const auto deadline = std::chrono::steady_clock::now() + 60s;
    const auto outcome = outcome_while_watched(deadline);
    ASSERT_TRUE(outcome);
    EXPECT_EQ(outcome->fault, fault);
    EXPECT_NE(outcome->reason.find(reason), std::string::npos) << outcome->reason;
    const std::uint64_t abandoned = threads_abandoned();
    feed_.reset();
    EXPECT_EQ(threads_abandoned(), abandoned + 1);
    registrar_.release();
    while (stats_.use_count() > 1 && std::chrono::steady_clock::now() < deadline) {
      std::this_thread::yield();
    }
    EXPECT_EQ(stats_.use_count(), 1);
    expect_every_frame_accounted_for();
  }

  HeldRegistrar registrar_;
};

TEST_F(HeldMemoryTest, ASourceThatWaitsForItIsAbandoned) {
  registrar_.hold();
  start();
  expect_abandoned(FeedFault::kInternal, "input.timeout");
}

TEST_F(HeldMemoryTest, AFrameThatWaitsForItsTargetIsFoundToBeStuckAndTheGpuLost) {
  options_.input.timeout = 1h;
  const std::size_t before = host_memory_bytes();
  start();
  const int writer = ::open(file("fifo").c_str(), O_WRONLY | O_CLOEXEC);
  while (host_memory_bytes() == before) std::this_thread::yield();
  registrar_.hold();
  const std::string frame(64 * 48 * 4, '\x40');
  EXPECT_EQ(::write(writer, frame.data(), frame.size()), static_cast<ssize_t>(frame.size()));
  expect_abandoned(FeedFault::kDevice, "does not come to an end");
  EXPECT_TRUE(device_->lost());  // other feeds leave it at once
  ::close(writer);
}

TEST_F(HeldMemoryTest, OfTwoCallsThatAreStuckTheReasonAndTheFaultAreThoseOfOne) {
  HeldEncoder encoder;
  encoder.hold();
  deadlines_.encode_call = 0ms;
  deadlines_.stage_call = 0ms;
  device_ = make_cpu_device();
  options_.input.timeout = 1h;
  options_.input.pace = InputOptions::Pace::kRealtime;  // a live feed
  start();
  const int writer = ::open(file("fifo").c_str(), O_WRONLY | O_CLOEXEC);
  const std::string frame(64 * 48 * 4, '\x40');
  EXPECT_EQ(::write(writer, frame.data(), frame.size()), static_cast<ssize_t>(frame.size()));
  // The first frame and its target, and the buffer for the second frame.
  EXPECT_TRUE(comes_true([&] { return encoder.waiting() == 1 && registrar_.added() == 3; }));
  registrar_.hold();
  EXPECT_EQ(::write(writer, frame.data(), frame.size()), static_cast<ssize_t>(frame.size()));
  EXPECT_TRUE(comes_true([&] { return registrar_.waiting() == 1; }));
  const auto now = std::chrono::steady_clock::now();
  EXPECT_FALSE(feed_->outcome(now));
  const auto outcome = feed_->outcome(now + 1h);
  ASSERT_TRUE(outcome);
  EXPECT_EQ(outcome->reason.find("a call on " + device_->name()), 0U) << outcome->reason;
  EXPECT_EQ(outcome->fault, FeedFault::kInternal);
  registrar_.release();
  encoder.release();
  feed_.reset();
  ::close(writer);
  expect_every_frame_accounted_for();
}

}  // namespace
}  // namespace framelane
