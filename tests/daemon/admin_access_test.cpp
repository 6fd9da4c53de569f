// Not built for ThreadSanitizer: one thread uses it here; admin_tls_test.cpp has several.
#include "daemon/admin_access.hpp"

#include <gtest/gtest.h>

#include <string>

namespace framelane {
namespace {

constexpr const char* kReader = "reader-0123456789";
constexpr const char* kController = "controller-0123456789";

AdminConfig with_tokens() {
  AdminConfig config;
  config.tokens = {{AdminRole::kRead, kReader}, {AdminRole::kControl, kController}};
  return config;
}

class AdminAccessTest : public ::testing::Test {
 protected:
  /// The status of the refusal of a request with this header; 200 if it is not refused.
  int status(const std::string& authorization, AdminRole needed = AdminRole::kRead) {
    HttpRequest request;
    request.method = "GET";
    request.path = "/metrics";
    if (!authorization.empty()) request.headers["authorization"] = authorization;
    refusal_ = access_.refuse(request, needed);
    return refusal_ ? refusal_->status : 200;
  }

  AdminAccess access_{with_tokens()};
  std::optional<HttpResponse> refusal_;
};

TEST_F(AdminAccessTest, WithoutTokensNothingIsRefused) {
  access_.replace({});
  EXPECT_EQ(status("", AdminRole::kControl), 200);
  EXPECT_EQ(status("Bearer whatever", AdminRole::kControl), 200);
}

TEST_F(AdminAccessTest, ABearerTokenHasItsRole) {
  EXPECT_EQ(status(std::string("Bearer ") + kReader), 200);
  EXPECT_EQ(status(std::string("bearer   ") + kController), 200);
  EXPECT_EQ(status(std::string("Bearer ") + kController, AdminRole::kControl), 200);
  EXPECT_EQ(status(std::string("Bearer ") + kReader, AdminRole::kControl), 403);
}

TEST_F(AdminAccessTest, ABasicPasswordIsATokenWithAnyUser) {
  EXPECT_EQ(status("Basic cHJvbTpyZWFkZXItMDEyMzQ1Njc4OQ=="), 200);     // prom:reader-0123456789
  EXPECT_EQ(status("Basic OnJlYWRlci0wMTIzNDU2Nzg5"), 200);             // :reader-0123456789
  EXPECT_EQ(status("Basic cmVhZGVyLTAxMjM0NTY3ODk="), 401);             // without a colon
  EXPECT_EQ(status("Basic cmVhZGVyLTAxMjM0NTY3ODk6eA=="), 401);         // the token as the user
  EXPECT_EQ(status("Basic cHJvbTpyZWFkZXItMDEyMzQ1Njc4OQ==, x"), 401);  // two headers
}

TEST_F(AdminAccessTest, EverythingElseIsNoToken) {
  for (const std::string& header :
       {std::string(), std::string("Bearer"), std::string("Bearer "), std::string("Basic !!!"),
        std::string("Basic "), std::string("Digest ") + kReader, std::string(kReader),
        std::string("Bearer ") + kReader + "x", std::string("Bearer reader-012345678"),
        std::string("Bearer ") + kReader + ", Bearer " + kReader}) {
    EXPECT_EQ(status(header), 401) << header;
  }
}

TEST_F(AdminAccessTest, ARefusalNamesBothWaysToSendAToken) {
  ASSERT_EQ(status(""), 401);
  const auto [first, end] = refusal_->headers.equal_range("WWW-Authenticate");
  std::string ways;
  for (auto header = first; header != end; ++header) ways += header->second + "\n";
  EXPECT_EQ(ways, "Basic realm=\"framelane\", charset=\"UTF-8\"\nBearer realm=\"framelane\"\n");
}

TEST_F(AdminAccessTest, OtherTokensAreInForceAtOnce) {
  AdminConfig config;
  config.tokens = {{AdminRole::kRead, "another-0123456789"}};
  access_.replace(config);
  EXPECT_EQ(status(std::string("Bearer ") + kReader), 401);
  EXPECT_EQ(status("Bearer another-0123456789"), 200);
}

}  // namespace
}  // namespace framelane
