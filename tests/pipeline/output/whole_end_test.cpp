// Not built for ThreadSanitizer: what it tests has one thread.
#include "pipeline/output/whole_end.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <optional>
#include <set>
#include <stop_token>
#include <string>

#include "pipeline/base/failure.hpp"
#include "pipeline/output/playable.hpp"
#include "tests/pipeline/output/output_fixture.hpp"

namespace framelane {
namespace {

using namespace testing;  // of framelane

using Clock = std::chrono::steady_clock;

class WholeEndTest : public ::testing::TestWithParam<const char*> {
 protected:
  WholeEndTest() { TestOutput(output_to(path_)).write(encode_clip({})); }
  std::optional<std::int64_t> end(std::istream& file, const std::stop_token& stop = {},
                                  Clock::time_point deadline = Clock::time_point::max()) const {
    return whole_end(file, container_of(output_to(path_)), stop, deadline);
  }
  std::optional<std::int64_t> end() const {
    std::ifstream file(path_, std::ios::binary);
    return end(file);
  }
  /// Where the second part with media begins.
  std::ptrdiff_t second_part(const Bytes& bytes) const {
    const Bytes moof{'m', 'o', 'o', 'f'};
    const Bytes cluster{0x1f, 0x43, 0xb6, 0x75};
    const bool mp4 = path_.ends_with("mp4");
    const Bytes& tag = mp4 ? moof : cluster;
    const auto first = std::search(bytes.begin(), bytes.end(), tag.begin(), tag.end());
    const auto second = std::search(first + 1, bytes.end(), tag.begin(), tag.end());
    return second - bytes.begin() - (mp4 ? 4 : 0);
  }
  const TempFolder folder_;
  const std::string path_ = folder_ / GetParam();
};

TEST_P(WholeEndTest, AWholeFileIsNotCut) { EXPECT_FALSE(end()); }

TEST_P(WholeEndTest, WhereverAFileBreaksOffItIsCutToWhatItHadWhole) {
  const Bytes whole = read_file(path_);
  std::set<std::int64_t> ends;
  constexpr std::size_t kStep = 61;
  for (std::size_t size = whole.size() - 1; size > kStep; size -= kStep) {
    std::filesystem::resize_file(path_, size);
    const std::optional<std::int64_t> cut = end();
    if (!cut) continue;  // it breaks off where a part ends, or before the first one has ended
    ASSERT_LT(*cut, static_cast<std::int64_t>(size));
    ends.insert(*cut);
  }
  EXPECT_GE(ends.size(), 2u);
  for (const std::int64_t cut : ends) {
    write_file(path_, Bytes(whole.begin(), whole.begin() + cut));
    EXPECT_FALSE(end());
    EXPECT_EQ(contents_of(path_, container_of(output_to(path_)), {}), Contents::kPlayable);
  }
}

// As after a power cut: what follows may still be saved.
TEST_P(WholeEndTest, AFileThatIsDamagedInItsMiddleIsNotCut) {
  const Bytes whole = read_file(path_);
  const std::ptrdiff_t damage = second_part(whole);
  ASSERT_LT(damage, std::ssize(whole) - 8);
  for (const int byte : {0x00, 0x47, 0xff}) {
    Bytes damaged = whole;
    std::fill_n(damaged.begin() + damage, 8, static_cast<std::uint8_t>(byte));
    write_file(path_, damaged);
    EXPECT_FALSE(end()) << byte;
  }
}

/// A file of which nothing can be read from `bad` on.
class FileOnABadDisk : public std::filebuf {
 public:
  FileOnABadDisk(const std::string& path, std::ptrdiff_t bad) : bad_(bad) {
    pubsetbuf(nullptr, 0);
    open(path, std::ios::in | std::ios::binary);
  }

 protected:
  int_type underflow() override {
    if (seekoff(0, std::ios::cur, std::ios::in) < bad_) return std::filebuf::underflow();
    throw std::ios_base::failure("error reading the file");
  }

 private:
  std::streamoff bad_;
};

TEST_P(WholeEndTest, AFileThatCannotBeReadToItsEndIsNotCut) {
  FileOnABadDisk disk(path_, second_part(read_file(path_)));
  std::istream file(&disk);
  EXPECT_FALSE(end(file));
}

TEST_P(WholeEndTest, TheLookEndsAtTheStopAndAtTheDeadline) {
  std::stop_source stop;
  stop.request_stop();
  std::ifstream file(path_, std::ios::binary);
  EXPECT_THROW(end(file, stop.get_token()), IoError);
  EXPECT_THROW(end(file, {}, Clock::now()), IoError);
}

INSTANTIATE_TEST_SUITE_P(Containers, WholeEndTest, ::testing::Values("a.mp4", "a.mkv"),
                         [](const auto& test) { return std::string(test.param).substr(2); });

}  // namespace
}  // namespace framelane
