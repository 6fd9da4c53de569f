#include "daemon/watchdog.hpp"

#include <gtest/gtest.h>
#include <spdlog/spdlog.h>
#include <stdlib.h>

#include <atomic>
#include <string>

#include "daemon/admin_server.hpp"
#include "daemon/supervisor.hpp"
#include "pipeline/base/abandoned_threads.hpp"
#include "tests/daemon/fake_clock.hpp"
#include "tests/daemon/missing_source.hpp"
#include "tests/daemon/notify_socket.hpp"
#include "tests/daemon/one_device.hpp"
#include "tests/daemon/stuck_device.hpp"
#include "tests/pipeline/base/wait.hpp"

namespace framelane {
namespace {

using namespace std::chrono_literals;

/// Sets up what systemd does: a socket and a watchdog's interval, both in the environment.
class WatchdogTest : public ::testing::Test {
 protected:
  static constexpr auto kInterval = 90ms;

  WatchdogTest() {
    // spdlog makes its logger on first use. Made by one of several threads, it looks like a race to
    // TSan, which does not see inside libspdlog.
    spdlog::set_level(spdlog::level::off);
    ::setenv("WATCHDOG_USEC", std::to_string(std::chrono::microseconds(kInterval).count()).c_str(),
             1);
  }
  ~WatchdogTest() override { ::unsetenv("WATCHDOG_USEC"); }

  /// Whether systemd was told anything since this was asked last.
  bool told() const { return !systemd_.heard().empty(); }
  /// Lets an interval pass and feeds the watchdog; whether systemd was told.
  bool tells(Watchdog& watchdog) {
    clock_.advance(kInterval);
    watchdog.feed(clock_.now());
    return told();
  }

  FakeClock clock_;

 private:
  const testing::NotifySocket systemd_;
};

TEST_F(WatchdogTest, IsNotFedWhileTheSupervisorIsStuckAndFedAgainAfterwards) {
  const auto device = std::make_shared<StuckDevice>();
  Supervisor supervisor({testing::feed_without_source()}, testing::one_device(device),
                        {.now = clock_.function()});
  Watchdog watchdog(supervisor, nullptr);
  supervisor.start();
  EXPECT_TRUE(tells(watchdog));
  clock_.advance(Supervisor::kMaxHeartbeatAge);
  EXPECT_FALSE(tells(watchdog));
  EXPECT_FALSE(tells(watchdog));
  device->let_go();
  EXPECT_TRUE(testing::comes_true([&] { return supervisor.ready(); }));
  EXPECT_TRUE(tells(watchdog));
}

TEST_F(WatchdogTest, IsNotFedWhileTheAdminListenerFailsAndFedAgainAfterwards) {
  Supervisor supervisor({testing::feed_without_source()}, testing::one_device(make_cpu_device()),
                        {.now = clock_.function()});
  std::atomic<int> status = 200;
  const AdminServer admin("127.0.0.1:0", [&](const HttpRequest& request) {
    HttpResponse response;
    response.status = request.path == "/healthz" ? status.load() : 404;
    return response;
  });
  Watchdog watchdog(supervisor, &admin);
  supervisor.start();
  EXPECT_TRUE(tells(watchdog));
  status = 503;
  EXPECT_FALSE(tells(watchdog));
  EXPECT_FALSE(tells(watchdog));
  status = 200;
  EXPECT_TRUE(tells(watchdog));
}

// framelane is about to end, and has yet to complete its files.
TEST_F(WatchdogTest, IsFedAlthoughTheAdminListenerFailsOnceThatIsForgotten) {
  Supervisor supervisor({testing::feed_without_source()}, testing::one_device(make_cpu_device()),
                        {.now = clock_.function()});
  const AdminServer admin("127.0.0.1:0", [](const HttpRequest&) {
    HttpResponse response;
    response.status = 503;
    return response;
  });
  Watchdog watchdog(supervisor, &admin);
  supervisor.start();
  EXPECT_FALSE(tells(watchdog));
  watchdog.forget_listener();
  EXPECT_TRUE(tells(watchdog));
}

TEST(TooManyStuckTest, WithoutALimitAnyNumberMayBeStuck) {
  AbandonableThread thread;
  thread.abandon();
  const int stuck = static_cast<int>(threads_stuck());
  EXPECT_FALSE(too_many_stuck({}));
  EXPECT_FALSE(too_many_stuck({.max_abandoned = stuck}));
  EXPECT_TRUE(too_many_stuck({.max_abandoned = stuck - 1}));
  thread.end();
  EXPECT_FALSE(too_many_stuck({.max_abandoned = stuck - 1}));
}

TEST_F(WatchdogTest, TellsSystemdThreeTimesInAnInterval) {
  Supervisor supervisor({testing::feed_without_source()}, testing::one_device(make_cpu_device()),
                        {.now = clock_.function()});
  Watchdog watchdog(supervisor, nullptr);
  supervisor.start();
  int times = 0;
  for (auto passed = 0ms; passed < kInterval; passed += 10ms) {
    watchdog.feed(clock_.now());
    if (told()) ++times;
    clock_.advance(10ms);
  }
  EXPECT_EQ(times, 3);
}

TEST_F(WatchdogTest, SaysNothingWhereNobodyWatches) {
  ::unsetenv("WATCHDOG_USEC");
  Supervisor supervisor({testing::feed_without_source()}, testing::one_device(make_cpu_device()),
                        {.now = clock_.function()});
  Watchdog watchdog(supervisor, nullptr);
  supervisor.start();
  EXPECT_FALSE(tells(watchdog));
}

}  // namespace
}  // namespace framelane
