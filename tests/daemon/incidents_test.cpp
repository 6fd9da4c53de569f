// Not built for ThreadSanitizer: what it tests has one thread.
#include "daemon/incidents.hpp"

#include <gmock/gmock.h>

#include <string>

#include "daemon/incident_json.hpp"
#include "pipeline/base/redact.hpp"

namespace framelane {
namespace {

using namespace std::chrono_literals;
using std::chrono::system_clock;
using ::testing::HasSubstr;

const system_clock::time_point kBegin = system_clock::time_point(std::chrono::hours(500'000));

Incident over(const std::string& text = "it was so", std::chrono::seconds later = 0s) {
  return {.text = text, .begin = kBegin + later, .end = kBegin + later};
}

Incident lasting(const std::string& text = "it is so") {
  return {.kind = IncidentKind::kSourceLost, .text = text, .begin = kBegin};
}

std::vector<std::uint64_t> ids(const std::vector<Incident>& incidents) {
  std::vector<std::uint64_t> ids;
  for (const Incident& incident : incidents) ids.push_back(incident.id);
  return ids;
}

TEST(IncidentsTest, TheOldestThatIsOverGoesFirst) {
  Incidents incidents;
  const std::uint64_t open = incidents.add(lasting());
  for (std::size_t i = 0; i < Incidents::kKept; ++i) incidents.add(over());
  const std::vector<Incident> all = incidents.since({});
  EXPECT_EQ(all.size(), Incidents::kKept);
  EXPECT_EQ(all[0].id, open);
  EXPECT_EQ(all[1].id, open + 2);
}

TEST(IncidentsTest, IfAllLastTheOldestGoes) {
  Incidents incidents;
  for (std::size_t i = 0; i < Incidents::kKept + 1; ++i) incidents.add(lasting());
  const std::vector<Incident> all = incidents.since({});
  EXPECT_EQ(all.size(), Incidents::kKept);
  EXPECT_EQ(all[0].id, 2u);
  incidents.add(over());
  EXPECT_EQ(incidents.since({}).back().id, Incidents::kKept + 2) << "the newest is kept";
}

TEST(IncidentsTest, SinceHasWhatLastsAndWhatHasEndedSince) {
  Incidents incidents;
  incidents.add(over("old"));
  const auto open = incidents.add(lasting());
  const auto later = incidents.add(over("new", 10s));
  EXPECT_EQ(ids(incidents.since(kBegin + 10s)), (std::vector{open, later}));
  EXPECT_EQ(ids(incidents.since(kBegin + 11s)), (std::vector{open}));
}

TEST(IncidentsTest, ChangesAreToldOnceInTheirOrder) {
  Incidents incidents;
  std::uint64_t change = 0;
  const auto first = incidents.add(lasting());
  const auto second = incidents.add(lasting());
  EXPECT_EQ(ids(incidents.changed_since(change)), (std::vector{first, second}));
  EXPECT_TRUE(incidents.changed_since(change).empty());
  Incident changed = *incidents.find(first);
  changed.retries = 3;
  const auto turn = incidents.last_turn();
  incidents.put(changed);
  EXPECT_EQ(incidents.last_turn(), turn) << "only a count has changed";
  const auto third = incidents.add(over());
  EXPECT_EQ(ids(incidents.changed_since(change)), (std::vector{first, third}));
  changed.end = kBegin + 1s;
  incidents.put(changed);
  EXPECT_EQ(incidents.last_turn(), change + 1);
}

TEST(IncidentsTest, WhatHasGoneIsNotChanged) {
  Incidents incidents;
  const auto first = incidents.add(over());
  Incident gone = *incidents.find(first);
  for (std::size_t i = 0; i < Incidents::kKept; ++i) incidents.add(over());
  incidents.put(gone);
  EXPECT_FALSE(incidents.find(first));
  EXPECT_EQ(incidents.since({}).size(), Incidents::kKept);
}

TEST(IncidentsTest, NumbersGoOnAfterThoseThatWereRestored) {
  Incidents incidents;
  Incident earlier = over();
  earlier.id = 41;
  incidents.restore({earlier});
  EXPECT_EQ(incidents.add(over()), 42u);
}

TEST(IncidentsTest, TextsHaveNoSecretsAndNoControls) {
  Incidents incidents;
  Incident incident = lasting();
  incident.reason = "rtsp://viewer:pa55word@10.0.0.4/ says \x1b[2J\nno";
  const Incident kept = *incidents.find(incidents.add(incident));
  EXPECT_EQ(kept.reason, "rtsp://***@10.0.0.4/ says \\x1b[2J\\nno");
}

TEST(IncidentsTest, LongTextsAreCutBetweenCharacters) {
  Incidents incidents;
  Incident incident = lasting();
  for (std::size_t i = 0; i < Incidents::kMostText; ++i) incident.reason += "ä";
  incident.text = std::string(Incidents::kMostText - 1, 'x') + "ä and more";
  incident.id = incidents.add(incident);
  Incident kept = *incidents.find(incident.id);
  EXPECT_EQ(kept.reason.size(), Incidents::kMostText + 3);
  EXPECT_THAT(kept.text, ::testing::EndsWith("x…"));
  incidents.put(kept);
  EXPECT_EQ(incidents.find(incident.id)->reason, kept.reason) << "and only once";
}

TEST(IncidentJsonTest, WhatIsWrittenIsReadAgain) {
  Incident incident = lasting("\"no data\" <script>alert('x')</script> \xff");
  incident.id = 17;
  incident.severity = Severity::kError;
  incident.feed = "gate";
  incident.output = "hls";
  incident.code = "timeout";
  incident.retries = 6;
  incident.gap = 252'125ms;
  const std::string open = incident_json(incident);
  EXPECT_EQ(open.find('\n'), std::string::npos);
  EXPECT_THAT(open, HasSubstr(R"("end":null,"seconds":null)"));
  EXPECT_THAT(open, HasSubstr(R"("encode":null)"));
  incident.end = kBegin + 252s;
  incident.lasted = 252s;
  const std::string closed = incident_json(incident);
  EXPECT_THAT(closed, HasSubstr(R"("seconds":252.0,"retries":6,"gap_seconds":252.125)"));
  for (const std::string& text : {open, closed}) {
    const auto read = parse_incident(text);
    ASSERT_TRUE(read);
    EXPECT_EQ(incident_json(*read), text);
  }
}

TEST(IncidentJsonTest, WhatIsNoIncidentIsRefused) {
  Incident incident = over();
  incident.id = 1;
  const std::string right = incident_json(incident);
  ASSERT_TRUE(parse_incident(right));
  const auto with = [&](const std::string& from, const std::string& to) {
    std::string text = right;
    const auto place = text.find(from);
    EXPECT_NE(place, std::string::npos) << from;
    return text.replace(place, from.size(), to);
  };
  for (const std::string& wrong :
       {std::string(), std::string("null"), std::string("[]"), std::string("{}"),
        right.substr(0, right.size() - 1), right + "x", std::string(100'000, '['),
        with("\"id\":1", "\"id\":-1"), with("\"id\":1", "\"id\":1e30"),
        with("\"id\":1", "\"id\":\"1\""), with("started", "exploded"), with("info", "fatal"),
        with("\"retries\":0", "\"retries\":null"), with("\"seconds\":0.0", "\"seconds\":-1"),
        with("\"seconds\":0.0", "\"seconds\":1e300"), with("\"begin\":\"2", "\"begin\":\"x"),
        with("\"text\":", "\"txt\":"), with("\"feed\":null", "\"feed\":7")}) {
    EXPECT_FALSE(parse_incident(wrong)) << wrong.substr(0, 300);
  }
}

TEST(DurationTextTest, HasTwoUnitsAtMost) {
  EXPECT_EQ(duration_text(0ms), "0.0 s");
  EXPECT_EQ(duration_text(1'240ms), "1.2 s");
  EXPECT_EQ(duration_text(12'600ms), "13 s");
  EXPECT_EQ(duration_text(59'700ms), "1 min");
  EXPECT_EQ(duration_text(252s), "4 min 12 s");
  EXPECT_EQ(duration_text(2h + 5min + 59s), "2 h 5 min");
  EXPECT_EQ(duration_text(24h), "1 d");
  EXPECT_EQ(duration_text(76h + 10min), "3 d 4 h");
}

}  // namespace
}  // namespace framelane
