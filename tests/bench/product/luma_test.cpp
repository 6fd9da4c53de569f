#include "bench/product/luma.hpp"

#include <gmock/gmock.h>

#include <tuple>

#include "tests/bench/session.hpp"

namespace framelane::bench {
namespace {

using ::testing::HasSubstr;

TEST(LumaWorkTest, AWrongByteIsSeenAndAWrongCount) {
  LumaWork work(cpu_session(), {"", 37, 23}, LumaPicture::kNoise);
  const std::vector<Contender> contenders = work.cpu_contenders();
  ASSERT_EQ(contenders.size(), 2u);
  const auto& [plain, counting] = std::tie(contenders[0], contenders[1]);
  counting.prepare();
  counting.work();
  EXPECT_EQ(counting.check(), "");
  counting.prepare();
  EXPECT_THAT(counting.check(), HasSubstr("row 0, byte 0 is 0 instead of "));
  plain.work();
  EXPECT_EQ(plain.check(), "");
  EXPECT_EQ(counting.check(), "its luma is counted wrongly");
}

TEST(LumaWorkTest, EveryPictureIsCountedRightly) {
  for (const LumaPicture picture : kLumaPictures) {
    LumaWork work(cpu_session(), {"", 37, 23}, picture);
    const std::vector<Contender> contenders = work.cpu_contenders();
    contenders[1].prepare();
    contenders[1].work();
    EXPECT_EQ(contenders[1].check(), "") << contenders[1].row.full_name();
  }
}

}  // namespace
}  // namespace framelane::bench
