// What `framelane healthcheck` reads of a configuration: where the daemon listens.
#include <gmock/gmock.h>
#include <stdlib.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "config/config.hpp"

namespace framelane {
namespace {

using ::testing::IsEmpty;

class AdminListenTest : public ::testing::Test {
 protected:
  std::string listen_of(const std::string& text) {
    std::string path = (std::filesystem::temp_directory_path() / "framelane-XXXXXX").string();
    const int fd = ::mkstemp(path.data());
    EXPECT_GE(fd, 0);
    ::close(fd);
    std::ofstream(path) << text;
    AdminAddress address = load_admin_address(path, problems_);
    std::filesystem::remove(path);
    tls_ = address.tls;
    return address.listen;
  }
  bool tls_ = false;
  std::vector<Problem> problems_;
};

TEST_F(AdminListenTest, IsReadWhateverElseIsWrong) {
  EXPECT_EQ(listen_of("admin: {listen: 'unix:/a', x: 1}\nlog: {level: loud}\ntypo: 1\ntypo: 2\n"),
            "unix:/a");
  EXPECT_THAT(problems_, IsEmpty());
}

TEST_F(AdminListenTest, IsTheDefaultWhereTheFileNamesNone) {
  EXPECT_EQ(listen_of("feeds: {a: {input: {url: x}}}"), "127.0.0.1:9853");
  EXPECT_THAT(problems_, IsEmpty());
}

TEST_F(AdminListenTest, TlsIsFoundWithoutItsFiles) {
  listen_of("admin: {tls: {certificate: /nonexistent, key: /nonexistent}}");
  EXPECT_TRUE(tls_);
  listen_of("admin: {insecure: true}");
  EXPECT_FALSE(tls_);
  EXPECT_THAT(problems_, IsEmpty());
}

TEST_F(AdminListenTest, MayBeEmpty) {
  EXPECT_EQ(listen_of("admin: {listen: ''}"), "");
  EXPECT_THAT(problems_, IsEmpty());
}

TEST_F(AdminListenTest, IsTheDefaultAndAProblemWhereItCannotBeRead) {
  for (const char* text : {"admin: {listen: 9853}", "admin: {listen: [", "admin: {listen: {}}"}) {
    EXPECT_EQ(listen_of(text), "127.0.0.1:9853") << text;
    EXPECT_EQ(problems_.size(), 1U) << text;
  }
  EXPECT_EQ(load_admin_address("/nonexistent/framelane.yaml", problems_).listen, "127.0.0.1:9853");
  ASSERT_EQ(problems_.size(), 1U);
  EXPECT_EQ(to_string(problems_[0]),
            "/nonexistent/framelane.yaml:1:1: cannot be read: No such file or directory; name "
            "another file with -c");
}

}  // namespace
}  // namespace framelane
