#include "daemon/watchdog.hpp"

#include <gtest/gtest.h>
#include <poll.h>
#include <spdlog/spdlog.h>
#include <stdlib.h>
#include <sys/socket.h>

#include <array>
#include <atomic>
#include <filesystem>
#include <functional>
#include <string>
#include <thread>

#include "daemon/socket_address.hpp"
#include "tests/daemon/stuck_device.hpp"

namespace framelane {
namespace {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

/// The socket that systemd would listen on, and a watchdog's interval, in the environment.
class WatchdogTest : public ::testing::Test {
 protected:
  static constexpr auto kInterval = 90ms;

  WatchdogTest() {
    // Made here and not by the first thread that logs, which TSan, blind inside libspdlog, takes
    // for a race with the next.
    spdlog::set_level(spdlog::level::off);
    std::string pattern = (std::filesystem::temp_directory_path() / "framelane-XXXXXX").string();
    if (::mkdtemp(pattern.data()) == nullptr) throw std::runtime_error("mkdtemp failed");
    folder_ = pattern;
    const std::string path = folder_ / "notify";
    const UnixAddress address = unix_address(path);
    socket_ = FileDescriptor(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    if (::bind(socket_.get(), reinterpret_cast<const sockaddr*>(&address.storage),
               address.length) != 0) {
      throw std::runtime_error("cannot bind " + path);
    }
    ::setenv("NOTIFY_SOCKET", path.c_str(), 1);
    ::setenv("WATCHDOG_USEC", std::to_string(std::chrono::microseconds(kInterval).count()).c_str(),
             1);
  }
  ~WatchdogTest() override {
    ::unsetenv("NOTIFY_SOCKET");
    ::unsetenv("WATCHDOG_USEC");
    std::error_code ignored;
    std::filesystem::remove_all(folder_, ignored);
  }

  static std::vector<FeedOptions> feeds() {
    FeedOptions feed;
    feed.name = "gate";
    feed.input.url = "/nonexistent/clip.mp4";
    feed.input.reconnect = {1h, 1h};
    EncodeOptions live;
    live.name = "live";
    live.codecs = {{"mpeg4", {}}};
    feed.encodes = {live};
    return {feed};
  }

  /// Whether the manager has heard the word since it was asked last; forgets all it has heard.
  bool heard() {
    bool any = false;
    std::array<char, 256> message;
    for (;;) {
      const ssize_t got = ::recv(socket_.get(), message.data(), message.size(), 0);
      if (got < 0) return any;
      any |= std::string_view(message.data(), static_cast<std::size_t>(got)) == "WATCHDOG=1";
    }
  }
  /// Feeds until the manager hears it.
  bool is_heard(Watchdog& watchdog) {
    return feeds_until(watchdog, 30s, [this] { return heard(); });
  }
  /// Feeds through several intervals without the manager hearing it.
  bool is_silent(Watchdog& watchdog) {
    return !feeds_until(watchdog, 5 * kInterval, [this] { return heard(); });
  }
  static bool feeds_until(Watchdog& watchdog, Clock::duration time,
                          const std::function<bool()>& condition) {
    const auto deadline = Clock::now() + time;
    do {
      watchdog.feed();
      if (condition()) return true;
      std::this_thread::sleep_for(10ms);
    } while (Clock::now() < deadline);
    return false;
  }

 private:
  std::filesystem::path folder_;
  FileDescriptor socket_;
};

TEST_F(WatchdogTest, IsNotFedWhileTheSupervisorIsStuckAndFedAgainAfterwards) {
  const auto device = std::make_shared<StuckDevice>();
  Supervisor supervisor(feeds(), device, {});
  Watchdog watchdog(supervisor, nullptr);
  supervisor.start();
  EXPECT_TRUE(is_heard(watchdog));
  EXPECT_TRUE(feeds_until(watchdog, 60s, [&] {
    heard();  // a full socket would hold up who notifies
    return supervisor.heartbeat_age() > Supervisor::kMaxHeartbeatAge;
  }));
  heard();  // what came before
  EXPECT_TRUE(is_silent(watchdog));
  device->let_go();
  EXPECT_TRUE(is_heard(watchdog));
}

TEST_F(WatchdogTest, IsNotFedWhileTheAdminListenerFailsAndFedAgainAfterwards) {
  Supervisor supervisor(feeds(), make_cpu_device(), {});
  std::atomic<int> status = 200;
  const AdminServer admin("127.0.0.1:0", [&](const HttpRequest& request) {
    HttpResponse response;
    response.status = request.path == "/healthz" ? status.load() : 404;
    return response;
  });
  Watchdog watchdog(supervisor, &admin);
  supervisor.start();
  EXPECT_TRUE(is_heard(watchdog));
  status = 503;
  heard();  // what came before
  EXPECT_TRUE(is_silent(watchdog));
  status = 200;
  EXPECT_TRUE(is_heard(watchdog));
}

TEST_F(WatchdogTest, SaysNothingWhereNobodyWatches) {
  ::unsetenv("WATCHDOG_USEC");
  Supervisor supervisor(feeds(), make_cpu_device(), {});
  Watchdog watchdog(supervisor, nullptr);
  supervisor.start();
  EXPECT_TRUE(is_silent(watchdog));
}

}  // namespace
}  // namespace framelane
