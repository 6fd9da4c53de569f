// Longer than 400 lines: all kinds of incidents are watched by one class, and share its fixture.
// Not built for ThreadSanitizer: what it tests has one thread.
#include "daemon/incident_watch.hpp"

#include <gmock/gmock.h>

#include <memory>
#include <string>
#include <vector>

#include "daemon/burst_watch.hpp"
#include "daemon/outage_watch.hpp"
#include "tests/daemon/missing_source.hpp"
#include "tests/pipeline/measure/frame_lines.hpp"

namespace framelane {
namespace {

using namespace std::chrono_literals;
using std::chrono::milliseconds;
using std::chrono::system_clock;
using ::testing::HasSubstr;
using ::testing::StartsWith;

/// Two clocks that stand still until they are set.
class Watched : public ::testing::Test {
 protected:
  void pass(milliseconds time) {
    now_.steady += time;
    now_.wall += time;
  }
  Incident only() const {
    const std::vector<Incident> all = incidents_.since({});
    EXPECT_EQ(all.size(), 1u);
    return all.empty() ? Incident() : all.back();
  }
  std::size_t count() const { return incidents_.since({}).size(); }

  Moment now_{std::chrono::steady_clock::time_point(1h), system_clock::time_point(500'000h)};
  Incidents incidents_;
};

class OutageWatchTest : public Watched {
 protected:
  /// It fails, for the n-th time.
  void fail(const std::string& code, const std::string& reason = "why") {
    const auto worked = state_.works ? now_.wall : state_.faults.worked_until;
    state_.faults = {state_.faults.count + 1, code, reason, now_.wall, worked};
    state_.works = false;
    watch_.look(state_, now_);
  }
  void work() {
    state_.works = true;
    state_.works_since = now_.wall;
    watch_.look(state_, now_);
  }

  OutageWatch::State state_{.works = true, .records = true};
  OutageWatch watch_{incidents_, Incident{.feed = "gate"}};
};

TEST_F(OutageWatchTest, OneCauseIsOneIncidentHoweverOftenItIsTried) {
  const auto begin = now_.wall;
  for (int i = 0; i < 6; ++i) {
    fail("timeout", "the camera is silent");
    pass(42s);
  }
  EXPECT_EQ(only().text, "no data (timeout)");
  EXPECT_FALSE(only().end);
  work();
  const Incident incident = only();
  EXPECT_EQ(incident.kind, IncidentKind::kSourceLost);
  EXPECT_EQ(incident.feed, "gate");
  EXPECT_EQ(incident.code, "timeout");
  EXPECT_EQ(incident.reason, "the camera is silent");
  EXPECT_EQ(incident.text, "no data for 4 min 12 s (timeout)");
  EXPECT_EQ(incident.begin, begin);
  EXPECT_EQ(incident.end, begin + 252s);
  EXPECT_EQ(incident.lasted, 252s);
  EXPECT_EQ(incident.gap, 252s);
  EXPECT_EQ(incident.retries, 6u);
  EXPECT_EQ(incident.severity, Severity::kError);
}

TEST_F(OutageWatchTest, WhatWasOverBeforeItWasSeenHasItsTimesAllTheSame) {
  const auto begin = now_.wall - 3s;
  state_.faults = {2, "eof", "why", now_.wall - 2s, begin};
  state_.works_since = now_.wall - 1s;
  watch_.look(state_, now_);
  EXPECT_EQ(only().begin, begin);
  EXPECT_EQ(only().end, begin + 2s);
  EXPECT_EQ(only().lasted, 2s);
}

TEST_F(OutageWatchTest, WhatFailsAgainSoonIsTheSameIncident) {
  fail("timeout");
  pass(10s);
  work();
  pass(59s);
  fail("timeout");
  EXPECT_FALSE(only().end);
  pass(5s);
  work();
  EXPECT_EQ(only().lasted, 15s) << "what worked in between does not count";
  EXPECT_EQ(only().retries, 2u);
  EXPECT_EQ(*only().end - only().begin, 74s);
  pass(60s);
  fail("timeout");
  EXPECT_EQ(count(), 2u) << "it worked for a minute";
}

TEST_F(OutageWatchTest, WhatFailsAgainForAnotherCauseIsAnotherIncident) {
  fail("timeout");
  work();
  pass(1s);
  fail("auth");
  EXPECT_EQ(count(), 2u);
}

TEST_F(OutageWatchTest, OtherCausesOfOneOutageAreAllTold) {
  fail("timeout", "it is silent");
  fail("refused", "nobody listens");
  fail("timeout", "it is silent");
  fail("auth", "it wants a password");
  fail("dns", "it has no name");
  work();
  EXPECT_EQ(only().code, "timeout");
  EXPECT_THAT(only().text, HasSubstr("(timeout, then refused, then auth)"));
  EXPECT_EQ(only().reason, "it is silent; then nobody listens; then it wants a password");
  EXPECT_EQ(only().retries, 5u);
}

TEST_F(OutageWatchTest, AClockThatIsSetChangesNoDuration) {
  fail("timeout");
  pass(10s);
  now_.wall += 1h;
  work();
  EXPECT_EQ(only().lasted, 10s);
  now_.wall -= 24h;
  pass(2min);
  fail("timeout");
  work();
  for (const Incident& incident : incidents_.since({})) EXPECT_GE(*incident.end, incident.begin);
}

TEST_F(OutageWatchTest, WhatIsNotTriedAgainHasNoRetryForItsLastFault) {
  state_.final = true;
  fail("configuration");
  EXPECT_EQ(only().kind, IncidentKind::kFeedFailed);
  EXPECT_EQ(only().retries, 0u);
}

TEST_F(OutageWatchTest, AnEndSaysWhatEndedIt) {
  fail("refused");
  pass(3s);
  watch_.end(now_, "; then framelane was stopped");
  EXPECT_EQ(only().text, "no data for 3.0 s (refused); then framelane was stopped");
  watch_.end(now_, "; twice");
  EXPECT_THAT(only().text, ::testing::Not(HasSubstr("twice")));
}

TEST_F(OutageWatchTest, AFullDiskIsAnIncidentOfItsOwn) {
  watch_ = OutageWatch(incidents_, Incident{.feed = "gate", .output = "rec"});
  fail("disk_full");
  pass(2s);
  work();
  EXPECT_EQ(only().kind, IncidentKind::kDiskFull);
  EXPECT_EQ(only().text, "disk full: output rec was down for 2.0 s");
  fail("io");
  EXPECT_EQ(incidents_.since({}).back().kind, IncidentKind::kOutputLost);
  EXPECT_EQ(incidents_.since({}).back().text, "output rec is down (io)");
}

TEST_F(OutageWatchTest, AnOutputThatIsConnectedAgainIsWatchedForAMinute) {
  watch_ = OutageWatch(incidents_, Incident{.feed = "gate", .output = "wall"});
  for (int i = 0; i < 3; ++i) {
    fail("timeout");
    pass(1s);
    work();
    EXPECT_FALSE(only().end) << "a peer that takes nothing can be connected to";
    EXPECT_EQ(only().text, "output wall works again, for less than a minute (timeout)");
    pass(5s);
  }
  const auto works = now_.wall - 5s;
  pass(54s);
  work();
  EXPECT_FALSE(only().end);
  pass(1s);
  watch_.look(state_, now_);
  EXPECT_EQ(only().end, works) << "it was over when it worked again";
  EXPECT_EQ(only().text, "output wall was down for 3.0 s (timeout)");
  EXPECT_EQ(only().retries, 3u);
}

TEST_F(OutageWatchTest, AnotherCauseOrAStopEndsWhatIsWatched) {
  watch_ = OutageWatch(incidents_, Incident{.feed = "gate", .output = "wall"});
  fail("timeout");
  work();
  pass(1s);
  fail("refused");
  EXPECT_EQ(count(), 2u);
  EXPECT_EQ(incidents_.since({}).front().end, now_.wall - 1s);
  work();
  pass(1s);
  watch_.end(now_, "; then framelane was stopped");
  EXPECT_EQ(incidents_.since({}).back().end, now_.wall - 1s);
  EXPECT_THAT(incidents_.since({}).back().text, ::testing::EndsWith("(refused)"));
}

class BurstWatchTest : public Watched {
 protected:
  void lose(std::uint64_t frames, const std::string& reason = "ring_full",
            const std::string& encode = "live") {
    BurstWatch::Counts counts;
    if (frames > 0) counts = {{{reason, frames}}, {encode}};
    watch_.look(counts, now_);
  }

  BurstWatch watch_{incidents_, Incident{.kind = IncidentKind::kFramesDropped, .feed = "gate"}, 10};
};

TEST_F(BurstWatchTest, AFewAreNoIncident) {
  for (int i = 0; i < 20; ++i) {
    lose(9);
    pass(BurstWatch::kBurstTime);
  }
  EXPECT_EQ(count(), 0u);
}

TEST_F(BurstWatchTest, OneIncidentLastsFromTheFirstToTheLast) {
  const auto begin = now_.wall;
  for (int i = 0; i < 30; ++i) {
    lose(5, i % 3 == 0 ? "encoder" : "ring_full");
    pass(1s);
  }
  EXPECT_FALSE(only().end);
  EXPECT_THAT(only().text, HasSubstr(" frames dropped so far (encoder "));
  pass(BurstWatch::kCalm - 2s);
  lose(0);
  EXPECT_FALSE(only().end);
  pass(1s);
  lose(0);
  const Incident incident = only();
  EXPECT_EQ(incident.begin, begin);
  EXPECT_EQ(incident.end, begin + 29s);
  EXPECT_EQ(incident.lasted, 29s);
  EXPECT_EQ(incident.text, "150 frames dropped in 29 s (encoder 50, ring_full 100)");
  EXPECT_EQ(incident.code, "ring_full");
  EXPECT_EQ(incident.encode, "live");
  pass(1s);
  lose(10);
  EXPECT_EQ(count(), 2u);
  EXPECT_EQ(incidents_.since({}).back().text, "10 frames dropped so far (ring_full 10)");
}

TEST_F(BurstWatchTest, LossesOfSeveralEncodesAreOneIncident) {
  lose(6, "ring_full", "live");
  lose(6, "ring_full", "small");
  EXPECT_EQ(only().encode, "");
}

class IncidentWatchTest : public Watched {
 protected:
  IncidentWatchTest() {
    FeedOptions options = testing::feed_without_source();
    OutputOptions output;
    output.name = "rec";
    output.from = "live";
    output.url = "/srv/rec/x.mp4";
    options.outputs = {output};
    seen_.feeds = {{std::make_shared<const FeedOptions>(std::move(options)), stats_}};
    now_.wall = system_clock::now();  // what FeedStats reads
    look();
  }
  void look() { watch_.look(seen_, now_); }
  void drop(int frames, DropReason reason) {
    for (int i = 0; i < frames; ++i) {
      std::vector<FrameTicket> tickets(1);
      open_tickets(stats_, stats_->run(), testing::frame_lines(*stats_), tickets);
      tickets[0].drop(reason);
    }
  }

  const std::shared_ptr<FeedStats> stats_ =
      std::make_shared<FeedStats>("gate", std::vector<FeedStats::EncodeSpec>{{"live", false}},
                                  std::vector<std::string>{"rec"}, 1);
  Observation seen_;
  IncidentWatch watch_{incidents_};
};

TEST_F(IncidentWatchTest, ASourceThatIsLostBeganToBeWhenTheLastPictureCame) {
  stats_->arrived(0);
  stats_->set_state(FeedState::kRunning, "");
  stats_->set_state(FeedState::kBackoff, "it is silent", "timeout");
  look();
  EXPECT_EQ(only().begin, stats_->last_arrival());
  EXPECT_FALSE(only().end);
  stats_->set_state(FeedState::kConnecting, "it is silent");
  look();
  EXPECT_FALSE(only().end);
  stats_->set_state(FeedState::kRunning, "");
  look();
  EXPECT_EQ(only().end, stats_->status().since);
  EXPECT_EQ(only().gap, only().lasted);
}

TEST_F(IncidentWatchTest, ASilenceOfASourceThatRunsIsAnIncidentWithoutATry) {
  stats_->arrived(0);
  stats_->set_state(FeedState::kRunning, "");
  const auto last = stats_->last_arrival();
  stats_->set_state(FeedState::kRunning, "", "timeout");
  look();
  EXPECT_EQ(only().kind, IncidentKind::kSourceLost);
  EXPECT_EQ(only().begin, last);
  EXPECT_EQ(only().end, stats_->status().faults.at);
  EXPECT_EQ(only().retries, 0u);
  EXPECT_TRUE(only().gap);
}

TEST_F(IncidentWatchTest, FramesThatWereNotWantedAreNoLoss) {
  for (const DropReason reason : {DropReason::kRate, DropReason::kReload, DropReason::kStop}) {
    drop(100, reason);
  }
  look();
  EXPECT_EQ(count(), 0u);
  drop(10, DropReason::kRingFull);
  look();
  EXPECT_EQ(only().text, "10 frames dropped so far (ring_full 10)");
}

TEST_F(IncidentWatchTest, AnEncodeThatIsDownIsOneIncidentWithTheFramesThatItDrops) {
  stats_->encode(0).set_reason("no encoder");
  drop(100, DropReason::kEncoder);
  look();
  stats_->encode(0).set_reason("no encoder");
  look();
  EXPECT_EQ(only().kind, IncidentKind::kEncodeDown);
  EXPECT_EQ(only().encode, "live");
  EXPECT_EQ(only().retries, 2u);
  stats_->encode(0).set_reason({});
  pass(1s);
  look();
  EXPECT_THAT(only().text, StartsWith("encode live was down for 1."));
  EXPECT_TRUE(only().gap) << "its recording has one";
}

TEST_F(IncidentWatchTest, AnOutputThatIsLostComesBack) {
  OutputStats& output = *stats_->outputs()[0];
  const auto run = output.begin_run();
  output.set_state(run, FeedState::kBackoff, "no space left", "disk_full");
  look();
  EXPECT_EQ(only().kind, IncidentKind::kDiskFull);
  output.set_state(run, FeedState::kRunning, "");
  look();
  EXPECT_TRUE(only().end);
}

TEST_F(IncidentWatchTest, AFullQueueIsALossOfTheOutput) {
  OutputStats& output = *stats_->outputs()[0];
  output.drop(PacketDrop::kWaitKeyframe, 50);
  look();
  EXPECT_EQ(count(), 0u) << "it waits for its first keyframe";
  output.drop(PacketDrop::kQueueFull, 10);
  look();
  EXPECT_EQ(only().text, "10 packets dropped before output rec so far (queue_full 10)");
  EXPECT_EQ(only().output, "rec");
}

TEST_F(IncidentWatchTest, WhatIsLostUpToTheNextKeyframeBelongsToTheFullQueue) {
  OutputStats& output = *stats_->outputs()[0];
  output.drop(PacketDrop::kQueueFull, 1);
  look();
  for (int i = 0; i < 60; ++i) {
    pass(IncidentWatch::kEvery);
    output.drop(PacketDrop::kWaitKeyframe, 5);
    look();
  }
  pass(BurstWatch::kCalm);
  look();
  EXPECT_TRUE(only().end);
  EXPECT_THAT(only().text, ::testing::EndsWith("(queue_full 1, wait_keyframe 300)"));
  EXPECT_EQ(only().code, "queue_full") << "that is the cause";
}

TEST_F(IncidentWatchTest, AnotherFormatAndAJumpAreSeen) {
  stats_->set_format("h264 1920x1080");
  look();
  EXPECT_EQ(count(), 0u);
  stats_->set_format("h264 3840x2160");
  look();
  EXPECT_EQ(only().text, "the source sends h264 3840x2160, and no longer h264 1920x1080");
  stats_->count(TimestampRepair::kJump);
  look();
  EXPECT_EQ(incidents_.since({}).back().text, "the source's clock jumped");
  EXPECT_EQ(incidents_.since({}).back().kind, IncidentKind::kClockJumped);
}

TEST_F(IncidentWatchTest, AFeedThatIsRemovedLeavesNothingOpen) {
  stats_->set_state(FeedState::kBackoff, "why", "refused");
  look();
  seen_.feeds.clear();
  look();
  EXPECT_TRUE(only().end);
  EXPECT_THAT(only().text, HasSubstr("then the feed was removed"));
}

TEST_F(IncidentWatchTest, LostDevicesAndStuckThreadsAreSeen) {
  seen_.lost_devices = {"cuda:0"};
  look();
  look();
  EXPECT_EQ(only().device, "cuda:0");
  seen_.stuck_threads = 1;
  look();
  seen_.stuck_threads = 2;
  look();
  EXPECT_EQ(incidents_.since({}).back().text, "2 threads stuck in calls that do not return");
  EXPECT_FALSE(incidents_.since({}).back().end);
  seen_.stuck_threads = 0;
  look();
  EXPECT_TRUE(incidents_.since({}).back().end);
  EXPECT_EQ(count(), 2u);
}

TEST_F(IncidentWatchTest, AStopEndsWhatLasts) {
  stats_->set_state(FeedState::kBackoff, "why", "refused");
  seen_.lost_devices = {"cuda:0"};
  seen_.stuck_threads = 1;
  look();
  watch_.end(false, now_);
  ASSERT_EQ(count(), 4u);
  for (const Incident& incident : incidents_.since({})) EXPECT_TRUE(incident.end) << incident.text;
  EXPECT_EQ(incidents_.since({}).back().kind, IncidentKind::kStopped);
}

TEST_F(IncidentWatchTest, AStartSaysHowTheProcessBeforeItEnded) {
  watch_.begin({}, 1, now_);
  EXPECT_THAT(only().text, ::testing::EndsWith("has started, with 1 feed"));
  EXPECT_EQ(only().severity, Severity::kInfo);
  watch_.begin({now_.wall - 90s, true}, 2, now_);
  EXPECT_THAT(incidents_.since({}).back().text,
              ::testing::EndsWith("with 2 feeds; it had not run for 1 min 30 s"));
  watch_.begin({now_.wall - 90s, false}, 2, now_);
  EXPECT_THAT(incidents_.since({}).back().text, HasSubstr("it was killed, or the machine failed"));
  EXPECT_EQ(incidents_.since({}).back().severity, Severity::kWarning);
}

TEST_F(IncidentWatchTest, ReloadsAreToldWithWhatTheyChange) {
  ConfigReload::Outcome outcome;
  outcome.changes = {
      .added = {"yard", "door"}, .removed = {}, .changed = {"gate"}, .unchanged = {}};
  note_reload(incidents_, outcome);
  EXPECT_EQ(only().text, "another configuration is in force; added: yard, door; changed: gate");
  outcome.kind = ConfigReload::Outcome::Kind::kRefused;
  outcome.problems = {{.file = "f.yaml", .line = 3, .column = 5, .key = "feeds", .message = "no"}};
  note_reload(incidents_, outcome);
  const Incident refused = incidents_.since({}).back();
  EXPECT_EQ(refused.kind, IncidentKind::kReloadRefused);
  EXPECT_THAT(refused.text, ::testing::EndsWith("1 problem"));
  EXPECT_THAT(refused.reason, HasSubstr("f.yaml:3:5"));
  outcome.kind = ConfigReload::Outcome::Kind::kBusy;
  note_reload(incidents_, outcome);
  EXPECT_EQ(count(), 2u);
}

}  // namespace
}  // namespace framelane
