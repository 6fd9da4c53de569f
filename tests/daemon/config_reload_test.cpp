#include "daemon/config_reload.hpp"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <spdlog/spdlog.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <fstream>
#include <future>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "daemon/api.hpp"
#include "daemon/disk_readers.hpp"
#include "daemon/event_hub.hpp"
#include "daemon/incidents.hpp"
#include "daemon/logging.hpp"
#include "daemon/trace_dumps.hpp"
#include "tests/config/tls_files.hpp"
#include "tests/daemon/notify_socket.hpp"
#include "tests/daemon/one_device.hpp"
#include "tests/pipeline/base/wait.hpp"
#include "tests/pipeline/source/media_files.hpp"

namespace framelane {
namespace {

using ::testing::_;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::MatchesRegex;
using ReloadKind = ConfigReload::Outcome::Kind;

std::string feed_text(const std::string& name, const std::string& more = "") {
  return "  " + name + ":\n    input: {url: /nonexistent/" + name +
         ".mp4, reconnect: {first: 1h, max: 1h}}\n" +
         "    encodes: {live: {video: {codec: mpeg4}}}\n    outputs: {x: {from: live, url: "
         "'null:'}}\n" +
         more;
}

/// A supervisor with the feeds of a file, and what reads that file again.
class ConfigReloadTest : public ::testing::Test {
 protected:
  ConfigReloadTest() {
    set_up_logging({});  // first, as the program does: later calls change level and format alone
    write("feeds:\n" + feed_text("gate"));
    Config config = std::get<Config>(load_config_file(file_));
    supervisor_.emplace(config.feeds, testing::one_device(make_cpu_device()),
                        Supervisor::Options{});
    reload_.emplace(file_, config, *supervisor_);
    supervisor_->start();
    EXPECT_TRUE(testing::comes_true([&] { return supervisor_->ready(); }));
  }
  void write(const std::string& text) const { std::ofstream(file_) << text; }
  ConfigReload::Outcome reload(const std::string& text) {
    write(text);
    return reload_->run();
  }

  const testing::TempFolder folder_;
  const std::string file_ = folder_ / "framelane.yaml";
  std::optional<Supervisor> supervisor_;
  std::optional<ConfigReload> reload_;
};

TEST_F(ConfigReloadTest, ARightFileComesIntoForce) {
  const ConfigReload::Status before = reload_->status();
  const auto outcome = reload("feeds:\n" + feed_text("gate") + feed_text("yard"));
  EXPECT_EQ(outcome.kind, ReloadKind::kDone);
  EXPECT_THAT(outcome.changes.added, ElementsAre("yard"));
  EXPECT_THAT(outcome.changes.unchanged, ElementsAre("gate"));
  EXPECT_THAT(outcome.next_start, IsEmpty());
  EXPECT_TRUE(reload_->status().successful);
  EXPECT_GT(reload_->status().loaded, before.loaded);
  EXPECT_EQ(supervisor_->feeds().size(), 2u);
}

TEST_F(ConfigReloadTest, AWrongFileChangesNothing) {
  const ConfigReload::Status before = reload_->status();
  const auto outcome = reload("feeds:\n" + feed_text("yard") + feed_text("roof", "    rings: 3\n"));
  EXPECT_EQ(outcome.kind, ReloadKind::kRefused);
  ASSERT_EQ(outcome.problems.size(), 1u);
  EXPECT_EQ(outcome.problems[0].line, 10);
  EXPECT_EQ(outcome.problems[0].key, "feeds.roof.rings");
  EXPECT_FALSE(reload_->status().successful);
  EXPECT_EQ(reload_->status().loaded, before.loaded);
  EXPECT_EQ(supervisor_->feeds().at(0).options->name, "gate");
  EXPECT_EQ(reload("feeds:\n" + feed_text("gate")).kind, ReloadKind::kDone);
  EXPECT_TRUE(reload_->status().successful);
}

TEST_F(ConfigReloadTest, AFileThatIsGoneChangesNothing) {
  ::unlink(file_.c_str());
  const auto outcome = reload_->run();
  EXPECT_EQ(outcome.kind, ReloadKind::kRefused);
  EXPECT_THAT(to_string(outcome.problems.at(0)), HasSubstr("cannot be read: No such file"));
}

TEST_F(ConfigReloadTest, AGpuThatIsNotOpenIsAProblem) {
  const auto of_feed = reload("feeds:\n" + feed_text("gate", "    device: cuda:3\n"));
  ASSERT_EQ(of_feed.problems.size(), 1u);
  EXPECT_THAT(to_string(of_feed.problems[0]),
              HasSubstr("framelane.yaml:6:13: feeds.gate.device: "));
  EXPECT_THAT(of_feed.problems[0].message, HasSubstr("only when framelane starts"));
  const auto of_all = reload("device: cuda\nfeeds:\n" + feed_text("gate") + feed_text("yard"));
  ASSERT_EQ(of_all.problems.size(), 1u);
  EXPECT_THAT(to_string(of_all.problems[0]), HasSubstr("framelane.yaml:1:9: device: "));
  const auto inherited =
      reload("defaults: {device: cuda}\nfeeds:\n" + feed_text("gate") + feed_text("yard"));
  ASSERT_EQ(inherited.problems.size(), 1u);
  EXPECT_THAT(to_string(inherited.problems[0]),
              HasSubstr("framelane.yaml:1:20: defaults.device: "));
}

// The next start would fail with it.
TEST_F(ConfigReloadTest, AGpuThatIsNotOpenIsAProblemEvenIfNothingIsConverted) {
  const std::string feed =
      "  gate: {input: {url: /nonexistent.mp4}, encodes: {live: {video: copy}}";
  EXPECT_EQ(reload("device: cuda\nfeeds:\n" + feed + "}\n").kind, ReloadKind::kRefused);
  EXPECT_EQ(reload("feeds:\n" + feed + ", device: cuda}\n").kind, ReloadKind::kDone);
}

TEST_F(ConfigReloadTest, AnotherDeviceIsForTheFeedsThatNameNone) {
  const auto outcome =
      reload("device: cpu\nfeeds:\n" + feed_text("gate") + feed_text("yard", "    device: auto\n"));
  EXPECT_THAT(outcome.changes.changed, ElementsAre("gate"));
  EXPECT_TRUE(testing::comes_true([&] {
    return supervisor_->feeds()[0].options->device == DeviceChoice{DeviceChoice::Kind::kCpu};
  }));
  EXPECT_EQ(supervisor_->feeds()[1].options->device, DeviceChoice{});
}

TEST_F(ConfigReloadTest, TheLogsLevelAndFormatChangeAtOnce) {
  const auto level = spdlog::get_level();
  reload("log: {level: error}\nfeeds:\n" + feed_text("gate"));
  EXPECT_EQ(spdlog::get_level(), spdlog::level::err);
  reload("log: {level: info}\nfeeds:\n" + feed_text("gate"));
  EXPECT_EQ(spdlog::get_level(), spdlog::level::info);
  spdlog::set_level(level);
}

TEST_F(ConfigReloadTest, AnotherLimitOfStuckThreadsIsInForceAtOnce) {
  EXPECT_EQ(reload_->watchdog(), WatchdogConfig{});
  reload("watchdog: {max_abandoned: 7}\nfeeds:\n" + feed_text("gate"));
  EXPECT_EQ(reload_->watchdog().max_abandoned, 7);
}

TEST_F(ConfigReloadTest, AnotherListenerWaitsForTheNextStart) {
  const auto outcome = reload("admin: {listen: 'localhost:9000'}\nfeeds:\n" + feed_text("gate"));
  EXPECT_EQ(outcome.kind, ReloadKind::kDone);
  EXPECT_THAT(outcome.next_start, ElementsAre("admin.listen"));
}

TEST_F(ConfigReloadTest, ACertificateWaitsWithTheListener) {
  const std::string certificate = folder_ / "cert.pem";
  const std::string key = folder_ / "key.pem";
  const auto renew = [&] {
    const test::TlsPair pair = test::make_tls_pair("framelane");
    std::ofstream(certificate) << pair.certificate;
    std::ofstream(key) << pair.key;
    ::chmod(key.c_str(), 0600);
  };
  const auto text = [&](const std::string& more) {
    return "admin: {tls: {certificate: " + certificate + ", key: " + key + "}" + more +
           "}\nfeeds:\n" + feed_text("gate");
  };
  renew();
  write(text(""));
  reload_.emplace(file_, std::get<Config>(load_config_file(file_)), *supervisor_);
  EXPECT_THAT(reload(text(", listen: 'localhost:9000'")).next_start, ElementsAre("admin.listen"));
  renew();
  EXPECT_THAT(reload(text(", listen: 'localhost:9000'")).next_start,
              ElementsAre("admin.listen", "admin.tls"));
  EXPECT_THAT(reload(text("")).next_start, IsEmpty());
  EXPECT_THAT(reload("feeds:\n" + feed_text("gate")).next_start, ElementsAre("admin.tls"));
}

/// A configuration that comes through a pipe, which the test writes.
class HeldReloadTest : protected testing::NotifySocket, public ConfigReloadTest {
 protected:
  HeldReloadTest() { EXPECT_EQ(::pipe2(ends_.data(), O_CLOEXEC), 0); }
  ~HeldReloadTest() override {
    finish("");
    ::close(ends_[0]);
  }
  std::string path() const { return "/dev/fd/" + std::to_string(ends_[0]); }
  void finish(const std::string& text) {
    if (ends_[1] < 0) return;
    EXPECT_EQ(::write(ends_[1], text.data(), text.size()), static_cast<ssize_t>(text.size()));
    ::close(std::exchange(ends_[1], -1));
  }

 private:
  std::array<int, 2> ends_{};
};

TEST_F(HeldReloadTest, AFileThatCannotBeReadInTimeHoldsUpNothingForLong) {
  ConfigReload silent(path(), Config{}, *supervisor_, std::chrono::milliseconds(200));
  for (const char* when : {"at first", "while the first thread is stuck"}) {
    const auto outcome = silent.run();
    ASSERT_EQ(outcome.kind, ReloadKind::kRefused) << when;
    EXPECT_THAT(to_string(outcome.problems.at(0)), HasSubstr("could not be read in 0.2 s")) << when;
  }
}

TEST_F(HeldReloadTest, AnotherReloadMeanwhileIsRefusedAndSystemdHearsOfOne) {
  ConfigReload held(path(), Config{}, *supervisor_, std::chrono::minutes(1));
  auto first = std::async(std::launch::async, [&] { return held.run(); });
  std::vector<std::string> said;
  const auto listen = [&] {
    for (std::string& message : heard()) said.push_back(std::move(message));
    return !said.empty();
  };
  EXPECT_TRUE(testing::comes_true(listen));
  EXPECT_THAT(said, ElementsAre(MatchesRegex("RELOADING=1\nMONOTONIC_USEC=[0-9]+")));
  EXPECT_EQ(held.run().kind, ReloadKind::kBusy);
  HttpRequest request;
  request.method = "POST";
  request.path = "/api/v1/reload";
  request.headers.emplace("x-framelane-request", "1");
  Incidents incidents;
  const TraceDumps traces("", *supervisor_, incidents);
  EventHub events(*supervisor_);
  DiskReaders readers;
  Program program{*supervisor_, held, traces, incidents, events, readers};
  EXPECT_EQ(answer(request, program).status, 409);
  finish("feeds:\n" + feed_text("gate"));
  EXPECT_EQ(first.get().kind, ReloadKind::kDone);
  listen();
  EXPECT_THAT(said, ElementsAre(_, "READY=1"));
}

TEST_F(ConfigReloadTest, AFileIsReadBesideTwoReadsThatAreStuck) {
  std::vector<int> pipe_ends(2);
  ASSERT_EQ(::pipe(pipe_ends.data()), 0);
  const std::string good = "feeds:\n" + feed_text("gate");
  const std::string bad =
      "include: [/dev/fd/" + std::to_string(pipe_ends[0]) + "]\nfeeds:\n" + feed_text("gate");
  write(good);
  ConfigReload hasty(file_, std::get<Config>(load_config_file(file_)), *supervisor_,
                     std::chrono::milliseconds(200));
  write(bad);
  for (int i = 0; i < 2; ++i) {
    EXPECT_THAT(to_string(hasty.run().problems.at(0)), HasSubstr("could not be read in 0.2 s"));
  }
  write(good);
  EXPECT_EQ(hasty.run().kind, ReloadKind::kDone);
  write(bad);
  EXPECT_THAT(to_string(hasty.run().problems.at(0)), HasSubstr("could not be read in 0.2 s"));
  write(good);
  const std::string problem = to_string(hasty.run().problems.at(0));
  EXPECT_THAT(problem, HasSubstr("is not read again: 3 earlier reads are stuck"));
  ::close(pipe_ends[1]);  // the abandoned threads read to the end
  EXPECT_TRUE(testing::comes_true([&] { return hasty.run().kind == ReloadKind::kDone; }));
}

class SecretReloadTest : public ConfigReloadTest {
 protected:
  static std::string text(const std::string& secret) {
    return "feeds:\n  gate:\n    input: {url: 'http://u:${file:" + secret +
           "}@127.0.0.1:1/x', reconnect: {first: 1h, max: 1h}}\n"
           "    encodes: {live: {video: {codec: mpeg4}}}\n    outputs: {x: {from: live, url: "
           "'null:'}}\n";
  }
};

TEST_F(SecretReloadTest, SecretsAreReadAgain) {
  const std::string secret = folder_ / "password";
  std::ofstream(secret) << "pa55-one";
  EXPECT_THAT(reload(text(secret)).changes.changed, ElementsAre("gate"));
  EXPECT_THAT(reload(text(secret)).changes.unchanged, ElementsAre("gate"));
  std::ofstream(secret) << "pa55-two";
  EXPECT_THAT(reload(text(secret)).changes.changed, ElementsAre("gate"));
  EXPECT_TRUE(testing::comes_true([&] {
    return supervisor_->feeds()[0].options->input.url == "http://u:pa55-two@127.0.0.1:1/x";
  }));
}

}  // namespace
}  // namespace framelane
