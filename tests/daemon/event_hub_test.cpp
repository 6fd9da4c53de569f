#include "daemon/event_hub.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <string>

#include "daemon/supervisor.hpp"
#include "tests/daemon/missing_source.hpp"
#include "tests/daemon/one_device.hpp"
#include "tests/pipeline/base/wait.hpp"

namespace framelane {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

/// What the page is told, once there is something.
std::string next_of(HttpStream& page) {
  std::string text;
  EXPECT_TRUE(testing::comes_true([&] {
    text = page.take().value();
    return !text.empty();
  }));
  return text;
}

TEST(EventHubTest, ANewPageGetsTheNewestStatusAndNoOtherPageASecondOne) {
  Supervisor supervisor({testing::feed_without_source()}, testing::one_device(make_cpu_device()),
                        {});
  EventHub hub(supervisor, std::chrono::hours(1));
  const std::shared_ptr<HttpStream> first = hub.subscribe();
  const std::string told = next_of(*first);
  EXPECT_THAT(told, StartsWith("event: history\n"));
  EXPECT_THAT(told, HasSubstr("event: status\n"));
  for (int i = 0; i < 3; ++i) {
    const std::shared_ptr<HttpStream> another = hub.subscribe();
    EXPECT_EQ(next_of(*another), told);
  }
  EXPECT_EQ(first->take(), "");
}

}  // namespace
}  // namespace framelane
