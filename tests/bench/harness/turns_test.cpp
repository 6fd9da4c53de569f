#include "bench/harness/turns.hpp"

#include <gmock/gmock.h>

namespace framelane::bench {
namespace {

using ::testing::ElementsAre;

Session short_session(int rounds) {
  Session session;
  session.rounds = rounds;
  session.seconds = 0;  // each contender works once a turn
  return session;
}

TEST(TurnsTest, ContendersTakeTurnsAndTheFirstRoundIsNotMeasured) {
  std::vector<std::string> done;
  const auto contender = [&done](std::string name, double sample) {
    return Contender{{.name = name},
                     [&done, name] { done.push_back("prepare " + name); },
                     [&done, name, sample] {
                       done.push_back("work " + name);
                       return sample;
                     },
                     [&done, name] {
                       done.push_back("check " + name);
                       return std::string();
                     }};
  };
  Result result;
  take_turns(short_session(1), {contender("a", 1), contender("b", 2)}, result);
  EXPECT_THAT(done,
              ElementsAre("prepare a", "work a", "check a", "prepare b", "work b", "check b",
                          "prepare a", "work a", "check a", "prepare b", "work b", "check b"));
  ASSERT_EQ(result.rows.size(), 2u);
  EXPECT_THAT(result.rows[0].samples, ElementsAre(1));
  EXPECT_THAT(result.rows[1].samples, ElementsAre(2));
  EXPECT_EQ(result.rows[0].checked, Checked::kRight);
  EXPECT_TRUE(result.problems.empty());
}

TEST(TurnsTest, AnotherBeginsEveryRoundForwardsAndBackwardsInTurn) {
  std::string order;
  const auto contender = [&order](char name) {
    return Contender{{.name = {name}},
                     {},
                     [&order, name] {
                       order += name;
                       return 1.0;
                     },
                     {}};
  };
  Result result;
  take_turns(short_session(4), {contender('a'), contender('b'), contender('c')}, result);
  EXPECT_EQ(order,
            "abc"
            "abc"
            "bac"
            "cab"
            "acb");
}

TEST(TurnsTest, AContenderThatIsWrongOnceIsAProblemAndGetsNoFurtherTurn) {
  int turns = 0;
  const Contender wrong{{.name = "wrong", .parameters = {{"streams", std::int64_t{4}}}},
                        [&turns] { ++turns; },
                        [] { return 1.0; },
                        [&turns] { return turns == 2 ? "byte 17 is 5" : ""; }};
  const Contender right{{.name = "right"}, {}, [] { return 1.0; }, {}};
  Result result;
  take_turns(short_session(5), {wrong, right}, result);
  EXPECT_EQ(turns, 2);
  EXPECT_EQ(result.rows[0].checked, Checked::kWrong);
  EXPECT_EQ(result.rows[1].checked, Checked::kNothing);
  EXPECT_EQ(result.rows[1].samples.size(), 5u);
  EXPECT_THAT(result.problems, ElementsAre("wrong result of wrong, streams 4: byte 17 is 5"));
}

TEST(TurnsTest, AContenderWithoutRoomIsAProblemAndTheOthersGoOn) {
  int tries = 0;
  const Contender large{{.name = "large", .parameters = {{"feeds", std::int64_t{64}}}},
                        [&tries] {
                          ++tries;
                          throw NoRoom("there is room for 60");
                        },
                        [] { return 1.0; },
                        {}};
  const Contender small{{.name = "small"}, {}, [] { return 1.0; }, {}};
  Result result;
  take_turns(short_session(3), {large, small}, result);
  EXPECT_EQ(tries, 1);
  EXPECT_THAT(result.rows[0].samples, ::testing::IsEmpty());
  EXPECT_EQ(result.rows[1].samples.size(), 3u);
  EXPECT_THAT(result.problems, ElementsAre("large, feeds 64: there is room for 60"));
}

TEST(TurnsTest, FurtherFiguresAreTakenOfEveryMeasuredWork) {
  double work = 0;
  const Contender contender{{.name = "a", .more = {{"twice", "ms"}, {"squared", "ms"}}},
                            {},
                            [&work] { return ++work; },
                            {},
                            [&work] {
                              return std::vector{2 * work, work * work};
                            }};
  Result result;
  take_turns(short_session(2), {contender}, result);
  EXPECT_THAT(result.rows[0].samples, ElementsAre(2, 3));
  EXPECT_THAT(result.rows[0].more[0].samples, ElementsAre(4, 6));
  EXPECT_THAT(result.rows[0].more[1].samples, ElementsAre(4, 9));
}

TEST(TurnsTest, WhoeverGivesTheWordForRoundsEndsThem) {
  Session session = short_session(100);
  int begun = 0, ended = 0;
  session.before_round = [&begun] { return ++begun <= 3; };
  session.after_round = [&ended] { ++ended; };
  Result result;
  take_turns(session, {{{.name = "a"}, {}, [] { return 1.0; }, {}}}, result);
  EXPECT_EQ(ended, 3);
  EXPECT_EQ(result.rows[0].samples.size(), 2u);
  EXPECT_TRUE(result.interrupted);
}

TEST(TurnsTest, AStopKeepsWhatWasMeasured) {
  std::atomic<int> stop{0};
  Session session = short_session(100);
  session.stop = &stop;
  int works = 0;
  const Contender first{{.name = "first"},
                        {},
                        [&] {
                          if (++works == 4) stop = 2;  // the third that is measured
                          return 1.0;
                        },
                        {}};
  const Contender second{{.name = "second"}, {}, [] { return 1.0; }, {}};
  Result result;
  take_turns(session, {first, second}, result);
  EXPECT_TRUE(result.interrupted);
  EXPECT_EQ(result.rows[0].samples.size(), 3u);
  EXPECT_EQ(result.rows[1].samples.size(), 2u);
}

TEST(TurnsTest, TheFirstDifferenceIsNamed) {
  const std::uint8_t expected[] = {1, 2, 3, 4};
  const std::uint8_t got[] = {1, 9, 3, 5};
  EXPECT_EQ(first_difference(expected, got, 4), "byte 1 is 9 instead of 2, and 1 more differ");
  EXPECT_EQ(first_difference(expected, expected, 4), "");
}

}  // namespace
}  // namespace framelane::bench
