#include "daemon/request_reads.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <future>
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

class RequestReadsTest : public ::testing::Test {
 protected:
  ~RequestReadsTest() override { release(); }
  /// Lets those that are stuck go on.
  void release() {
    if (!std::exchange(released_, true)) go_on_.set_value();
  }
  RequestReads::Read stuck() const {
    return [gone_on = gone_on_]() -> std::optional<std::string> {
      gone_on.wait();
      return "late";
    };
  }
  /// "STATUS CODE" of the refusal, or what is read.
  static std::string ask(RequestReads& reads, const std::string& place, RequestReads::Read read) {
    try {
      return reads.read(place, std::move(read)).value_or("nothing");
    } catch (const RequestError& error) {
      return std::to_string(error.status) + " " + error.code;
    }
  }
  static RequestReads::Read text(const std::string& text) {
    return [text] { return std::optional(text); };
  }

  std::promise<void> go_on_;
  const std::shared_future<void> gone_on_ = go_on_.get_future().share();
  bool released_ = false;
};

TEST_F(RequestReadsTest, GivesWhatIsReadAndPassesOnWhatIsThrown) {
  RequestReads reads;
  EXPECT_EQ(ask(reads, "/a", text("bytes")), "bytes");
  EXPECT_EQ(ask(reads, "/a", [] { return std::optional<std::string>(); }), "nothing");
  EXPECT_THROW(
      reads.read("/a", []() -> std::optional<std::string> { throw std::logic_error("x"); }),
      std::logic_error);
}

TEST_F(RequestReadsTest, BesideOneThatIsStuckNoneBeginsInTheSamePlace) {
  RequestReads reads(100ms);
  const std::uint64_t before = threads_stuck();
  EXPECT_EQ(ask(reads, "/dead", stuck()), "503 no_answer");
  EXPECT_EQ(threads_stuck(), before + 1);
  std::atomic<int> begun = 0;
  for (int i = 0; i < 10; ++i) {
    EXPECT_EQ(ask(reads, "/dead",
                  [&begun] {
                    ++begun;
                    return std::optional<std::string>("x");
                  }),
              "503 no_answer");
  }
  EXPECT_EQ(begun, 0);
  EXPECT_EQ(threads_stuck(), before + 1);
  EXPECT_TRUE(testing::comes_true([&] { return ask(reads, "/fine", text("bytes")) == "bytes"; }));
  release();
  EXPECT_TRUE(testing::comes_true([&] { return ask(reads, "/dead", text("back")) == "back"; }));
  EXPECT_TRUE(testing::comes_true([&] { return threads_stuck() == before; }));
}

TEST_F(RequestReadsTest, NoMoreThanAFewAreStuckInOnePlace) {
  RequestReads reads(200ms);
  const std::uint64_t before = threads_stuck();
  std::atomic<std::size_t> begun = 0;
  std::vector<std::thread> clients;
  for (std::size_t i = 0; i < 3 * RequestReads::kMostOfPlace; ++i) {
    clients.emplace_back([&] {
      ask(reads, "/dead", [&begun, read = stuck()] {
        ++begun;
        return read();
      });
    });
  }
  for (std::thread& client : clients) client.join();
  EXPECT_LE(begun, RequestReads::kMostOfPlace);
  EXPECT_GE(threads_stuck(), before + 1);
  EXPECT_LE(threads_stuck(), before + RequestReads::kMostOfPlace);
  release();
  EXPECT_TRUE(testing::comes_true([&] { return threads_stuck() == before; }));
}

TEST_F(RequestReadsTest, NoMoreThanAFewAreStuckInAll) {
  RequestReads reads(1ms);
  const std::uint64_t before = threads_stuck();
  for (std::size_t i = 0; i < 2 * RequestReads::kMost; ++i) {
    const std::string answer = ask(reads, "/dead" + std::to_string(i), stuck());
    EXPECT_EQ(answer, i < RequestReads::kMost ? "503 no_answer" : "503 busy");
  }
  EXPECT_EQ(threads_stuck(), before + RequestReads::kMost);
  release();
  EXPECT_TRUE(testing::comes_true([&] { return threads_stuck() == before; }));
}

TEST_F(RequestReadsTest, ManyAtATimeWaitForEachOther) {
  RequestReads reads(1h);
  std::atomic<int> read = 0;
  std::vector<std::thread> clients;
  for (std::size_t i = 0; i < 3 * RequestReads::kMostOfPlace; ++i) {
    clients.emplace_back([&] { read += ask(reads, "/fine", text("bytes")) == "bytes" ? 1 : 0; });
  }
  for (std::thread& client : clients) client.join();
  EXPECT_EQ(read, 3 * RequestReads::kMostOfPlace);
}

}  // namespace
}  // namespace framelane
