#include "daemon/api.hpp"

#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <utility>

#include "daemon/config_reload.hpp"
#include "daemon/disk_readers.hpp"
#include "daemon/event_hub.hpp"
#include "daemon/supervisor.hpp"
#include "daemon/trace_dumps.hpp"
#include "pipeline/base/redact.hpp"
#include "tests/daemon/fake_clock.hpp"
#include "tests/daemon/missing_source.hpp"
#include "tests/daemon/one_device.hpp"
#include "tests/daemon/stuck_device.hpp"
#include "tests/pipeline/base/wait.hpp"
#include "tests/pipeline/source/media_files.hpp"

namespace framelane {
namespace {

using Json = nlohmann::json;

/// A real supervisor with one feed, whose source does not exist.
class ApiTest : public ::testing::Test {
 protected:
  static std::vector<FeedOptions> feeds() {
    FeedOptions feed = testing::feed_without_source();
    EncodeOptions copy;
    copy.name = "main";
    copy.copy_video = true;
    feed.encodes.insert(feed.encodes.begin(), std::move(copy));
    OutputOptions output;
    output.name = "discard";
    output.from = "live";
    output.url = "null:";
    feed.outputs = {output};
    return {feed};
  }

  HttpResponse ask(const std::string& method, const std::string& path, bool with_header = true,
                   const std::map<std::string, std::string>& query = {}) {
    HttpRequest request;
    request.method = method;
    request.path = path;
    request.query = query;
    if (with_header) request.headers["x-framelane-request"] = "1";
    return answer(request, program_);
  }
  Json get_json(const std::string& path) { return Json::parse(ask("GET", path).body); }
  static void wait_until_ready(const Supervisor& supervisor) {
    ASSERT_TRUE(testing::comes_true([&] { return supervisor.ready(); }));
  }
  void start_and_wait_until_ready() {
    supervisor_.start();
    wait_until_ready(supervisor_);
  }

  Supervisor supervisor_{feeds(), testing::one_device(make_cpu_device()), {}};
  const testing::TempFolder folder_;
  ConfigReload config_{folder_ / "framelane.yaml", Config{}, supervisor_};
  Incidents incidents_;
  const TraceDumps traces_{"", supervisor_, incidents_};
  EventHub events_{supervisor_};
  DiskReaders readers_;
  Program program_{supervisor_, config_, traces_, incidents_, events_, readers_};
};

TEST_F(ApiTest, IsNotReadyBeforeTheStart) { EXPECT_EQ(ask("GET", "/readyz").status, 503); }

TEST_F(ApiTest, IsReadyOnceEveryFeedIsCreated) {
  start_and_wait_until_ready();
  EXPECT_EQ(ask("GET", "/readyz").status, 200);
}

TEST_F(ApiTest, IsNotReadyWhileStopping) {
  start_and_wait_until_ready();
  supervisor_.request_stop();
  EXPECT_EQ(ask("GET", "/readyz").status, 503);
}

TEST_F(ApiTest, IsHealthyWhileTheLoopTurns) {
  start_and_wait_until_ready();
  EXPECT_EQ(ask("GET", "/healthz").status, 200);
}

TEST_F(ApiTest, IsUnhealthyWhileTheLoopIsStuckAndHealthyOnceItTurnsAgain) {
  FakeClock clock;
  const auto device = std::make_shared<StuckDevice>();
  Supervisor supervisor(feeds(), testing::one_device(device), {.now = clock.function()});
  ConfigReload config("", Config{}, supervisor);
  const TraceDumps traces("", supervisor, incidents_);
  EventHub events(supervisor);
  Program program{supervisor, config, traces, incidents_, events, readers_};
  HttpRequest probe;
  probe.method = "GET";
  probe.path = "/healthz";
  supervisor.start();
  EXPECT_EQ(answer(probe, program).status, 200);
  clock.advance(Supervisor::kMaxHeartbeatAge);
  EXPECT_EQ(answer(probe, program).status, 503);
  EXPECT_FALSE(supervisor.ready());
  device->let_go();
  wait_until_ready(supervisor);
  EXPECT_EQ(answer(probe, program).status, 200);
}

TEST_F(ApiTest, IsUnhealthyWhileMoreThreadsAreStuckThanAllowed) {
  start_and_wait_until_ready();
  Config config;
  config.watchdog.max_abandoned = static_cast<int>(threads_stuck());
  ConfigReload reload("", config, supervisor_);
  Program program{supervisor_, reload, traces_, incidents_, events_, readers_};
  HttpRequest probe;
  probe.method = "GET";
  probe.path = "/healthz";
  EXPECT_EQ(answer(probe, program).status, 200);
  AbandonableThread thread;
  thread.abandon();
  EXPECT_EQ(answer(probe, program).status, 503);
  thread.end();
  EXPECT_EQ(answer(probe, program).status, 200);
}

TEST_F(ApiTest, ListsTheFeedsWithTheirEncodesAndOutputs) {
  const Json feeds = get_json("/api/v1/feeds");
  ASSERT_EQ(feeds["feeds"].size(), 1u);
  const Json& feed = feeds["feeds"][0];
  EXPECT_EQ(feed["name"], "gate");
  EXPECT_EQ(feed["state"], "connecting");
  EXPECT_TRUE(feed["decoder_reason"].is_null());
  EXPECT_EQ(feed["encodes"]["main"], Json({{"codec", "copy"}}));
  EXPECT_EQ(feed["encodes"]["live"]["in"], 0);
  EXPECT_EQ(feed["encodes"]["live"]["dropped"].size(), kDropReasonNames.size());
  EXPECT_EQ(feed["outputs"]["discard"]["bytes"], 0);
}

TEST_F(ApiTest, ShowsOneFeed) {
  EXPECT_EQ(get_json("/api/v1/feeds/gate"), get_json("/api/v1/feeds")["feeds"][0]);
}

TEST_F(ApiTest, AnUnknownFeedIsNotFoundAndNamesItsKey) {
  const HttpResponse response = ask("GET", "/api/v1/feeds/barn");
  EXPECT_EQ(response.status, 404);
  EXPECT_EQ(Json::parse(response.body)["error"]["key"], "feeds.barn");
}

TEST_F(ApiTest, AnUnknownPathIsNotFound) {
  for (const std::string path :
       {"/nothing", "/api/v1/feeds/gate/nothing", "/api/v1/feeds/gate/x/y"}) {
    const HttpResponse response = ask("GET", path);
    EXPECT_EQ(response.status, 404);
    EXPECT_EQ(Json::parse(response.body)["error"]["code"], "not_found");
  }
}

TEST_F(ApiTest, ASecretThatIsAskedForIsNotRepeated) {
  register_secret("a-token-in-the-wrong-place");
  for (const char* path : {"/", "/api/v1/feeds/"}) {
    const HttpResponse response = ask("GET", std::string(path) + "a-token-in-the-wrong-place");
    EXPECT_EQ(response.status, 404);
    EXPECT_EQ(response.body.find("a-token"), std::string::npos) << response.body;
  }
}

TEST_F(ApiTest, RestartIsAccepted) {
  start_and_wait_until_ready();
  EXPECT_EQ(ask("POST", "/api/v1/feeds/gate/restart").status, 202);
  EXPECT_EQ(ask("POST", "/api/v1/feeds/barn/restart").status, 404);
}

TEST_F(ApiTest, RestartNeedsTheHeaderThatForeignPagesCannotSend) {
  EXPECT_EQ(ask("POST", "/api/v1/feeds/gate/restart", false).status, 403);
}

TEST_F(ApiTest, OtherMethodsAreNotAllowedAndTheRightOnesNamed) {
  const HttpResponse restart = ask("GET", "/api/v1/feeds/gate/restart");
  EXPECT_EQ(restart.status, 405);
  EXPECT_EQ(restart.headers.find("Allow")->second, "POST");
  const HttpResponse metrics = ask("DELETE", "/metrics");
  EXPECT_EQ(metrics.status, 405);
  EXPECT_EQ(metrics.headers.find("Allow")->second, "GET, HEAD");
}

TEST(NeededRoleTest, ProbesNeedNoneAndWhatIsNotReadNeedsControl) {
  const auto needed = [](const std::string& method, const std::string& path) {
    HttpRequest request;
    request.method = method;
    request.path = path;
    return needed_role(request);
  };
  for (const char* path : {"/healthz", "/readyz"}) {
    EXPECT_EQ(needed("GET", path), std::nullopt);
    EXPECT_EQ(needed("HEAD", path), std::nullopt);
    EXPECT_EQ(needed("POST", path), AdminRole::kControl);
  }
  for (const char* path : {"/", "/metrics", "/api/v1/feeds", "/healthz/", "/nothing"}) {
    EXPECT_EQ(needed("GET", path), AdminRole::kRead);
    EXPECT_EQ(needed("HEAD", path), AdminRole::kRead);
    for (const char* method : {"POST", "PUT", "DELETE", "OPTIONS", "get"}) {
      EXPECT_EQ(needed(method, path), AdminRole::kControl);
    }
  }
}

TEST_F(ApiTest, HeadIsAnsweredLikeGet) { EXPECT_EQ(ask("HEAD", "/metrics").status, 200); }

TEST_F(ApiTest, MetricsHaveTheExpositionFormatsType) {
  EXPECT_EQ(ask("GET", "/metrics").content_type, "text/plain; version=0.0.4; charset=utf-8");
}

TEST_F(ApiTest, ListsTheDevices) {
  const Json device = get_json("/api/v1/devices")["devices"][0];
  EXPECT_EQ(device["device"], "cpu");
  EXPECT_EQ(device["up"], true);
}

/// A GPU that was lost before it decoded a frame.
class LostGpu : public Device {
 public:
  const std::string& name() const override { return name_; }
  const std::string& model() const override { return model_; }
  const std::string& uuid() const override { return uuid_; }
  bool has_copy_engines() const override { return true; }
  std::size_t memory_bytes() const override { return 0; }
  bool lost() const override { return true; }
  const EngineMeters& busy() const override { return cpu_->busy(); }
  std::shared_ptr<const Device> fallback() const override { return cpu_; }
  std::unique_ptr<Stage> make_stage(FeedStats& stats, std::optional<int> slices) override {
    return std::make_unique<NoDecoder>(cpu_->make_stage(stats, slices));
  }

 private:
  class NoDecoder : public Stage {
   public:
    explicit NoDecoder(std::unique_ptr<Stage> stage) : stage_(std::move(stage)) {}
    BufferRef decode_context(std::string& why) override {
      why = "the feed has left the GPU";
      return {};
    }
    PlanRef prepare(std::span<const Conversion> conversions, FrameMemory memory, bool analyse,
                    std::span<const FrameMemory> targets,
                    std::shared_ptr<const PictureMask> mask) override {
      return stage_->prepare(conversions, memory, analyse, targets, std::move(mask));
    }
    void submit(FrameJob& job) override { stage_->submit(job); }
    Wait wait(FrameJob& job, std::stop_token stop, Deadline deadline) override {
      return stage_->wait(job, std::move(stop), deadline);
    }

   private:
    const std::unique_ptr<Stage> stage_;
  };

  const std::string name_ = "cuda:0";
  const std::string model_ = "GPU";
  const std::string uuid_ = "GPU-1234";
  const std::shared_ptr<Device> cpu_ = make_cpu_device();
};

TEST_F(ApiTest, ALostGpuIsDownAndTheFeedSaysWhyItDecodesInSoftware) {
  std::vector<FeedOptions> options = feeds();
  options[0].input.url = testing::clip("street_h264.mp4");
  const auto gpu = std::make_shared<LostGpu>();
  const auto gpus =
      std::make_shared<DeviceSet>(DeviceChoice{DeviceChoice::Kind::kCuda},
                                  std::vector<std::shared_ptr<Device>>{gpu}, make_cpu_device());
  Supervisor supervisor(std::move(options), gpus, {.once = true});
  ConfigReload config("", Config{}, supervisor);
  const TraceDumps traces("", supervisor, incidents_);
  EventHub events(supervisor);
  Program program{supervisor, config, traces, incidents_, events, readers_};
  const auto get = [&](const std::string& path) {
    HttpRequest request;
    request.method = "GET";
    request.path = path;
    return Json::parse(answer(request, program).body);
  };
  supervisor.start();
  ASSERT_TRUE(supervisor.wait_done(std::chrono::seconds(60)));
  EXPECT_EQ(get("/api/v1/feeds/gate")["decoder_reason"], "the feed has left the GPU");
  const NvencSession session("cuda:0");
  const Json devices = get("/api/v1/devices")["devices"];
  ASSERT_EQ(devices.size(), 2u);
  EXPECT_EQ(devices[0],
            Json({{"device", "cuda:0"}, {"name", "GPU"}, {"up", false}, {"encoder_sessions", 1}}));
  EXPECT_EQ(devices[1]["device"], "cpu");
  EXPECT_EQ(devices[1]["up"], true);
}

TEST_F(ApiTest, AReloadSaysWhatChangesAndWhatIsWrong) {
  start_and_wait_until_ready();
  std::ofstream(folder_ / "framelane.yaml")
      << "feeds:\n  yard:\n    input: {url: /nonexistent/yard.mp4}\n"
         "    encodes: {live: {video: {codec: mpeg4}}}\n    outputs: {x: {from: live, url: "
         "'null:'}}\n";
  const HttpResponse done = ask("POST", "/api/v1/reload");
  EXPECT_EQ(done.status, 200) << done.body;
  EXPECT_EQ(Json::parse(done.body), Json({{"added", {"yard"}},
                                          {"changed", Json::array()},
                                          {"removed", {"gate"}},
                                          {"unchanged", Json::array()},
                                          {"next_start", Json::array()}}));
  std::ofstream(folder_ / "framelane.yaml") << "feeds:\n  yard:\n    inputs: {}\n";
  const HttpResponse refused = ask("POST", "/api/v1/reload");
  EXPECT_EQ(refused.status, 422);
  const Json error = Json::parse(refused.body)["error"];
  EXPECT_EQ(error["code"], "wrong_configuration");
  EXPECT_EQ(error["problems"][1]["line"], 3);
  EXPECT_EQ(error["problems"][1]["key"], "feeds.yard.inputs");
  EXPECT_EQ(ask("POST", "/api/v1/reload", false).status, 403);
  EXPECT_EQ(ask("GET", "/api/v1/reload").status, 405);
}

TEST_F(ApiTest, IncidentsAreThoseOfAFeedSinceATime) {
  const auto get = [&](const std::map<std::string, std::string>& query) {
    return ask("GET", "/api/v1/incidents", false, query);
  };
  const auto ids = [&](const std::map<std::string, std::string>& query) {
    std::string found;
    const Json answer = Json::parse(get(query).body);
    for (const Json& one : answer["incidents"]) found += std::to_string(one["id"].get<int>());
    return found;
  };
  const auto begin = std::chrono::system_clock::from_time_t(1'000);
  incidents_.add({.feed = "gate", .text = "\"<script>\"", .begin = begin, .end = begin});
  incidents_.add({.feed = "gone", .begin = begin});
  incidents_.add({.begin = begin, .end = begin + std::chrono::seconds(5)});
  EXPECT_EQ(ids({}), "123");
  EXPECT_EQ(ids({{"since", "1001"}}), "23");
  EXPECT_EQ(ids({{"since", "1970-01-01T00:16:46Z"}}), "2");
  EXPECT_EQ(ids({{"feed", "gate"}}), "1");
  EXPECT_EQ(ids({{"feed", "gone"}}), "2") << "it is no longer in the configuration";
  EXPECT_EQ(ids({{"feed", "gate"}, {"since", "1001"}}), "");
  EXPECT_EQ(get_json("/api/v1/incidents")["incidents"][0]["text"], "\"<script>\"");
  EXPECT_EQ(get({{"feed", "barn"}}).status, 404);
  EXPECT_EQ(get({{"since", "yesterday"}}).status, 400);
  EXPECT_EQ(Json::parse(get({{"until", "1"}}).body)["error"]["key"], "until");
}

TEST_F(ApiTest, ABrowserGetsTheStatusPageAndItsFiles) {
  HttpRequest request;
  request.method = "GET";
  request.path = "/";
  request.headers["accept"] = "text/html,*/*;q=0.8";
  EXPECT_EQ(answer(request, program_).content_type, "text/html; charset=utf-8");
  EXPECT_EQ(ask("GET", "/web/main.js").content_type, "text/javascript");
  EXPECT_EQ(ask("POST", "/web/main.js").status, 405);
}

TEST_F(ApiTest, TheIndexNamesEveryEndpoint) {
  const std::string index = ask("GET", "/").body;
  for (const std::string path : {"/metrics", "/healthz", "/readyz", "/api/v1/feeds", "/restart",
                                 "/api/v1/devices", "/api/v1/incidents", "/api/v1/reload"}) {
    EXPECT_NE(index.find(path), std::string::npos) << path;
  }
}

TEST(TakesLongTest, WhatReadsFilesOrIsLongIsAnsweredBesideTheListener) {
  const auto asks = [](const std::string& path) {
    HttpRequest request;
    request.path = path;
    return takes_long(request);
  };
  for (const char* path :
       {"/api/v1/reload", "/api/v1/trace", "/api/v1/incidents", "/api/v1/feeds/gate/config",
        "/api/v1/feeds/gate/snapshot.jpg", "/api/v1/feeds/gate/hls/live/index.m3u8"}) {
    EXPECT_TRUE(asks(path)) << path;
  }
  for (const char* path : {"/", "/metrics", "/healthz", "/api/v1/feeds", "/api/v1/events",
                           "/api/v1/feeds/gate", "/api/v1/feeds/gate/restart", "/nothing"}) {
    EXPECT_FALSE(asks(path)) << path;
  }
}

}  // namespace
}  // namespace framelane
