#include "daemon/disk_readers.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <future>
#include <latch>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "daemon/query.hpp"
#include "pipeline/base/abandoned_threads.hpp"
#include "tests/pipeline/base/wait.hpp"

namespace framelane {
namespace {

using namespace std::chrono_literals;

/// Reads that are held up as by a disk that does not answer, until the test ends.
class DiskReadersTest : public ::testing::Test {
 protected:
  ~DiskReadersTest() override { disk_answers(); }

  void disk_answers() {
    if (!std::exchange(answers_, true)) gate_.set_value();
  }
  DiskReaders::Read that_hangs() {
    return [disk = disk_](const std::shared_ptr<DiskAnswer>& answer) {
      disk.wait();
      answer->answer({});
    };
  }
  /// Sends one piece, and hangs before the next.
  DiskReaders::Read that_hangs_later() {
    return [disk = disk_](const std::shared_ptr<DiskAnswer>& answer) {
      answer->begin({});
      answer->send("one");
      disk.wait();
      answer->send("two");
    };
  }
  static DiskReaders::Read at_once() {
    return [](const std::shared_ptr<DiskAnswer>& answer) { answer->answer({.status = 206}); };
  }
  static std::string code_of(DiskReaders& readers, const std::string& place,
                             DiskReaders::Read read) {
    try {
      readers.answer(place, std::move(read));
    } catch (const RequestError& error) {
      return error.code;
    }
    return "";
  }

  /// The next piece, when it is there.
  static std::optional<std::string> next(HttpStream& stream) {
    std::optional<std::string> piece;
    EXPECT_TRUE(testing::comes_true([&] {
      piece = stream.take();
      return !piece || !piece->empty();
    }));
    return piece;
  }

  std::promise<void> gate_;
  const std::shared_future<void> disk_ = gate_.get_future();
  bool answers_ = false;
};

TEST_F(DiskReadersTest, PlacesThatHangLeaveRoomForOthers) {
  DiskReaders readers(1h, 1h);
  std::vector<std::jthread> askers;
  std::atomic<std::size_t> refused = 0;
  const auto ask_often = [&](const std::string& place) {
    for (std::size_t i = 0; i < DiskReaders::kMostWaiting; ++i) {
      askers.emplace_back([&, place] {
        if (code_of(readers, place, that_hangs()) == "busy") ++refused;
      });
    }
  };
  ask_often("dead");
  EXPECT_TRUE(testing::comes_true([&] { return refused == DiskReaders::kLeftForOthers; }));
  ask_often("dead, too");  // it has one of those that are left
  EXPECT_TRUE(testing::comes_true(
      [&] { return refused == DiskReaders::kLeftForOthers + DiskReaders::kMostWaiting - 1; }));
  EXPECT_EQ(readers.answer("well", at_once()).status, 206);
  disk_answers();
}

TEST_F(DiskReadersTest, ManyInOnePlaceTakeTurns) {
  constexpr std::size_t kMany = DiskReaders::kMostWaiting - DiskReaders::kLeftForOthers;
  static_assert(kMany > DiskReaders::kMostReadingOfPlace);
  DiskReaders readers(1h, 1h);
  std::vector<std::jthread> askers;
  std::latch asked(kMany);
  std::atomic<std::size_t> answered = 0;
  for (std::size_t i = 0; i < kMany; ++i) {
    askers.emplace_back([&] {
      asked.arrive_and_wait();
      if (readers.answer("well", at_once()).status == 206) ++answered;
    });
  }
  askers.clear();
  EXPECT_EQ(answered, kMany);
}

TEST_F(DiskReadersTest, WhoHasNoTurnInTimeIsToldSo) {
  DiskReaders readers(1h, 1ms);
  std::vector<std::jthread> askers;
  std::latch reading(DiskReaders::kMostReadingOfPlace);
  for (std::size_t i = 0; i < DiskReaders::kMostReadingOfPlace; ++i) {
    askers.emplace_back([&] {
      readers.answer("slow", [&, disk = disk_](const std::shared_ptr<DiskAnswer>& answer) {
        reading.count_down();
        disk.wait();
        answer->answer({});
      });
    });
  }
  reading.wait();
  EXPECT_EQ(code_of(readers, "slow", at_once()), "busy");
  disk_answers();
}

TEST_F(DiskReadersTest, RequestsThatWaitLeaveThreadsOfTheListenerToOthers) {
  static_assert(DiskReaders::kMostWaiting < AdminServer::kMaxAnswering);
  DiskReaders readers(1h, 1h);
  std::vector<std::jthread> askers;
  std::latch reading(DiskReaders::kMostWaiting);
  for (std::size_t i = 0; i < DiskReaders::kMostWaiting; ++i) {
    askers.emplace_back([&, i] {
      const auto read = [&, disk = disk_](const std::shared_ptr<DiskAnswer>& answer) {
        reading.count_down();
        disk.wait();
        answer->answer({});
      };
      readers.answer("dead " + std::to_string(i), read);
    });
  }
  reading.wait();
  EXPECT_EQ(code_of(readers, "well", at_once()), "busy");
  disk_answers();
}

TEST_F(DiskReadersTest, ThePatienceForAPieceBeginsWithTheAnswer) {
  DiskReaders readers(2s);
  const auto asked = std::chrono::steady_clock::now();
  const HttpResponse response =
      readers.answer("slow", [disk = disk_](const std::shared_ptr<DiskAnswer>& answer) {
        std::this_thread::sleep_for(1s);
        answer->begin({});
        disk.wait();
      });
  const std::uint64_t before = threads_abandoned();
  std::this_thread::sleep_until(asked + 2100ms);
  readers.watch();
  EXPECT_EQ(threads_abandoned(), before);
  disk_answers();
}

TEST_F(DiskReadersTest, ClientsThatDoNotReadLeaveRoomForShortAnswers) {
  DiskReaders readers;
  std::vector<HttpResponse> paused;
  for (std::size_t i = 0; i < DiskReaders::kMostSending; ++i) {
    paused.push_back(readers.answer("feed", that_hangs_later()));
  }
  EXPECT_EQ(code_of(readers, "feed", that_hangs_later()), "busy");
  EXPECT_EQ(readers.answer("feed", at_once()).status, 206);
  disk_answers();
  EXPECT_TRUE(
      testing::comes_true([&] { return code_of(readers, "feed", that_hangs_later()).empty(); }));
}

TEST_F(DiskReadersTest, WhatHangsIsRefusedWithoutReadingItAgain) {
  DiskReaders readers(50ms);
  EXPECT_EQ(code_of(readers, "dead", that_hangs()), "no_answer");
  bool read = false;
  EXPECT_EQ(code_of(readers, "dead", [&](const auto&) { read = true; }), "no_answer");
  EXPECT_FALSE(read);
}

TEST_F(DiskReadersTest, AThreadThatHangsAfterItsClientHasLeftIsCounted) {
  DiskReaders readers(50ms);
  HttpResponse response = readers.answer("dead", that_hangs_later());
  EXPECT_EQ(next(*response.stream), "one");
  const std::uint64_t before = threads_abandoned();
  response.stream.reset();
  EXPECT_TRUE(testing::comes_true([&] {
    readers.watch();
    return threads_abandoned() > before;
  }));
}

TEST_F(DiskReadersTest, AnAnswerThatAStopCutsOffIsNoWholeOne) {
  DiskReaders readers;
  const HttpResponse response = readers.answer("well", that_hangs_later());
  EXPECT_EQ(next(*response.stream), "one");
  readers.stop();
  EXPECT_THROW(response.stream->take(), std::runtime_error);
}

TEST_F(DiskReadersTest, AnAnswerThatWasReadBeforeAStopIsWhole) {
  DiskReaders readers;
  const HttpResponse response = readers.answer("well", [](const auto& answer) {
    answer->begin({});
    answer->send("all");
  });
  EXPECT_EQ(next(*response.stream), "all");
  EXPECT_EQ(next(*response.stream), std::nullopt);
  readers.stop();
  EXPECT_EQ(response.stream->take(), std::nullopt);
}

}  // namespace
}  // namespace framelane
