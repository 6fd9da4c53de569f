#include "daemon/web_pages.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "daemon/web_files.hpp"

namespace framelane {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

HttpResponse get(const std::string& path, std::map<std::string, std::string> headers = {}) {
  HttpRequest request;
  request.method = "GET";
  request.path = path;
  request.headers = std::move(headers);
  return web_page(request);
}
std::string header(const HttpResponse& response, const std::string& name) {
  const auto entry = response.headers.find(name);
  return entry == response.headers.end() ? "" : entry->second;
}

TEST(WebPagesTest, TheRootIsTheStatusPage) {
  const HttpResponse page = get("/");
  EXPECT_EQ(page.status, 200);
  EXPECT_EQ(page.content_type, "text/html; charset=utf-8");
  EXPECT_THAT(page.body, StartsWith("<!doctype html>"));
}

TEST(WebPagesTest, EveryFileIsAnsweredWithItsBytesAndItsType) {
  ASSERT_FALSE(web_files().empty());
  for (const WebFile& file : web_files()) {
    const HttpResponse answer = get("/web/" + std::string(file.name));
    EXPECT_EQ(answer.status, 200) << file.name;
    EXPECT_EQ(answer.body, file.bytes) << file.name;
    EXPECT_EQ(answer.content_type, file.content_type) << file.name;
    EXPECT_EQ(header(answer, "ETag"), file.etag) << file.name;
  }
}

// A literal that ended at a zero, or whose escapes ran together, would have another length.
TEST(WebPagesTest, AScriptIsWhole) {
  EXPECT_THAT(get("/web/main.js").body, HasSubstr("connect(\"/api/v1/events\""));
  EXPECT_THAT(get("/web/main.js").body, ::testing::EndsWith("});\n"));
}

TEST(WebPagesTest, WhatTheClientHasIsNotSentAgain) {
  const std::string etag = header(get("/web/main.js"), "ETag");
  const HttpResponse again = get("/web/main.js", {{"if-none-match", "\"other\", " + etag}});
  EXPECT_EQ(again.status, 304);
  EXPECT_EQ(again.body, "");
  EXPECT_EQ(header(again, "ETag"), etag);
  EXPECT_EQ(get("/web/main.js", {{"if-none-match", "\"other\""}}).status, 200);
}

TEST(WebPagesTest, OtherNamesAreNotFound) {
  for (const char* path : {"/web/", "/web/none.js", "/web/../main.js", "/web/web/main.js"}) {
    EXPECT_EQ(get(path).status, 404) << path;
  }
}

TEST(WebPagesTest, ThePolicyAllowsFilesOfThisServerAlone) {
  const std::string policy = header(get("/"), "Content-Security-Policy");
  EXPECT_THAT(policy, StartsWith("default-src 'none'; script-src 'self';"));
  EXPECT_THAT(policy, HasSubstr("frame-ancestors 'none'"));
  EXPECT_THAT(policy, Not(HasSubstr("unsafe")));
}

TEST(WebPagesTest, OnlyClientsThatNameHtmlGetAPageForPeople) {
  HttpRequest request;
  EXPECT_FALSE(wants_html(request));
  request.headers["accept"] = "*/*";
  EXPECT_FALSE(wants_html(request));
  request.headers["accept"] = "text/html,application/xhtml+xml,*/*;q=0.8";
  EXPECT_TRUE(wants_html(request));
}

}  // namespace
}  // namespace framelane
