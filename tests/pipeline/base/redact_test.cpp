#include "pipeline/base/redact.hpp"

#include <gtest/gtest.h>

#include <random>
#include <string>
#include <thread>
#include <vector>

namespace framelane {
namespace {

struct Case {
  std::string text;
  std::string expected;
};

void expect_redacted(const std::vector<Case>& cases) {
  for (const auto& [text, expected] : cases) EXPECT_EQ(redact(text), expected) << text;
}

std::string percent_encoded(const std::string& text, const char* digits) {
  std::string result;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    result += {'%', digits[byte >> 4], digits[byte & 15]};
  }
  return result;
}

class Random {
 public:
  std::size_t below(std::size_t bound) { return engine_() % bound; }
  std::string text(const std::string& alphabet, std::size_t length) {
    std::string result;
    while (result.size() < length) result += alphabet[below(alphabet.size())];
    return result;
  }

 private:
  std::mt19937 engine_{20260102};
};

TEST(RedactTest, TextWithoutSecretsIsUnchanged) {
  for (const std::string text : {
           "",
           "gate: running",
           "[tcp @ 0x55d0c1f0a2c0] Connection to tcp://10.0.0.4:554?timeout=0 failed: refused",
           "[rtsp @ 0x55d0] method DESCRIBE failed: 401 Unauthorized",
           "rtsp://10.0.0.4:554/stream1",
           "rtsp://10.0.0.4/cam@main",
           "rtsp://[fe80::1]:8554/cam@main",
           "rtsp://localhost/cam@main",
           "https://hub.example.com/~joe@home?mail=joe@example.com",
           "udp://@239.255.0.1:5000",
           "mail joe@example.com about rtsp://10.0.0.4/stream",
           "feeds.gate.input.url: key=value is unknown",
           "keyframe=1 wait_keyframe=2 tokens=3",
           "http://10.0.0.4/live.m3u8?quality=high&channel=2",
           "a:b=c :// = : ==",
       }) {
    EXPECT_EQ(redact(text), text);
  }
}

TEST(RedactTest, UserInformationOfUrlsGoesAndHostAndPathStay) {
  expect_redacted({
      {"rtsp://user:pw@10.0.0.4/stream1", "rtsp://***@10.0.0.4/stream1"},
      {"RTSP://User:Pw@cam:554/s?x=1", "RTSP://***@cam:554/s?x=1"},
      {"opening rtsp://us.er%40x:p%2Fw@cam/s now", "opening rtsp://***@cam/s now"},
      {"rtsps://viewer@cam.example.com/s", "rtsps://***@cam.example.com/s"},
      {"rtsp:/user:pw@10.0.0.4/s", "rtsp:/***@10.0.0.4/s"},
      {"rtsp:user:pw@10.0.0.4/s", "rtsp:***@10.0.0.4/s"},
      {"rtsp://user:pw@[fe80::1%25eth0]:554/s", "rtsp://***@[fe80::1%25eth0]:554/s"},
  });
}

TEST(RedactTest, PasswordsMayHoldPlainDelimiters) {
  expect_redacted({
      {"rtsp://us.er%40x:pa/ss@w@10.0.0.4:554/stream", "rtsp://***@10.0.0.4:554/stream"},
      {"rtsp://user:p@ss@10.0.0.4/s", "rtsp://***@10.0.0.4/s"},
      {"rtsp://user:12/34@cam/s", "rtsp://***@cam/s"},
      {"rtsp://user:a?b#c@cam/s", "rtsp://***@cam/s"},
      {"rtsp://user:p@ss/w@cam/s", "rtsp://***@cam/s"},
      {"rtsp://user:p:w'<>@cam/s", "rtsp://***@cam/s"},
      {"rtsp://user:http:x@cam/s", "rtsp://***@cam/s"},
      {"rtsp://tok/en@cam.example.com/s", "rtsp://***@cam.example.com/s"},
  });
}

TEST(RedactTest, AnAtSignInAPathAfterAnAddressIsNoUser) {
  EXPECT_EQ(redact("rtsp://u:p@10.0.0.4/Streaming/ch@main"),
            "rtsp://***@10.0.0.4/Streaming/ch@main");
}

TEST(RedactTest, EveryUrlOfALineIsRedacted) {
  expect_redacted({
      {"rtsp://a:b@h1/x,rtsp://c:d@h2/y", "rtsp://***@h1/x,rtsp://***@h2/y"},
      {"from rtsp://a:b@h1/x to rtmp://c:d@h2/app/key",
       "from rtsp://***@h1/x to rtmp://***@h2/app/***"},
      {"http://proxy/?url=rtsp://a:b@h2/y", "http://proxy/?url=rtsp://***@h2/y"},
      {"concat:http://a:b@h/1|http://c:d@h/2", "concat:http://***@h/1|http://***@h/2"},
  });
}

TEST(RedactTest, FfmpegsOwnLinesAreRedacted) {
  expect_redacted({
      {"Did you mean file:rtsp://user:pw@host/s?", "Did you mean file:rtsp://***@host/s?"},
      {"[hls @ 0x5] Opening 'http://u:p@h/a.ts?token=abc' for reading",
       "[hls @ 0x5] Opening 'http://***@h/a.ts?token=***' for reading"},
      {"rtsp://user:pw@10.0.0.4/s: Connection refused",
       "rtsp://***@10.0.0.4/s: Connection refused"},
      {"srt://10.0.0.4:9000?mode=caller&passphrase=0123456789&latency=2000",
       "srt://10.0.0.4:9000?mode=caller&passphrase=***&latency=2000"},
  });
}

TEST(RedactTest, CredentialsInQueriesGo) {
  expect_redacted({
      {"http://h/x?token=abc&key=def&n=1", "http://h/x?token=***&key=***&n=1"},
      {"https://h/x?X-Amz-Signature=ab&X-Amz-Expires=60&X-Amz-Security-Token=cd",
       "https://h/x?X-Amz-Signature=***&X-Amz-Expires=60&X-Amz-Security-Token=***"},
      {"GET /live.m3u8?Access_Token=abc: 403", "GET /live.m3u8?Access_Token=***: 403"},
      {"rtsp://10.0.0.4:554/user=admin_password=tlJwpbo6_channel=1",
       "rtsp://10.0.0.4:554/user=admin_password=***"},
      {"password=hunter2, retrying", "password=***, retrying"},
      {"passphrase='a b c' mode=caller", "passphrase='***' mode=caller"},
      {"http://h/x?token=&n=1", "http://h/x?token=&n=1"},
  });
}

TEST(RedactTest, CamerasNamesOfPasswordsInQueriesGo) {
  expect_redacted({
      {"http://h/cgi?loginuse=admin&loginpas=geheim77&userpwd=geheim88",
       "http://h/cgi?loginuse=admin&loginpas=***&userpwd=***"},
      {"http://h/x?mypass=a1&user_psw=b2&Passwort=c3&dbpasswd=d4&s=1",
       "http://h/x?mypass=***&user_psw=***&Passwort=***&dbpasswd=***&s=1"},
      {"loginpas=1 of bypass=1", "loginpas=1 of bypass=1"},
  });
}

TEST(RedactTest, KeysAndSignaturesAreWordsOfTheirOwn) {
  expect_redacted({
      {"http://h/x?key=a1&x-key=b2&api_key=c3&Sig=d4&url_sig=e5&ApiKey=f6&sharedKey=g7",
       "http://h/x?key=***&x-key=***&api_key=***&Sig=***&url_sig=***&ApiKey=***&sharedKey=***"},
      {"http://h/x?usekey=1&monkey=2&keyframes=3&config=4&hotkey=5",
       "http://h/x?usekey=1&monkey=2&keyframes=3&config=4&hotkey=5"},
  });
}

TEST(RedactTest, StreamKeysOfRtmpUrlsGo) {
  expect_redacted({
      {"rtmp://10.0.0.4/live/k3y-abcd", "rtmp://10.0.0.4/live/***"},
      {"rtmps://u:p@h:443/app/k3y?n=1", "rtmps://***@h:443/app/***?n=1"},
      {"RTMP:/h/k3y", "RTMP:/h/***"},
      {"Opening 'rtmpt://h/app/k3y:=x' for writing", "Opening 'rtmpt://h/app/***' for writing"},
      {"rtmp://h/app/k3y: Connection refused", "rtmp://h/app/***: Connection refused"},
      {"rtmp://h/app/k3y|rtmp://h/app/k4y", "rtmp://h/app/***|rtmp://h/app/***"},
      {"rtmp://10.0.0.4:1935", "rtmp://10.0.0.4:1935"},
      {"rtmp://10.0.0.4/", "rtmp://10.0.0.4/"},
  });
}

TEST(RedactTest, LongStreamKeysAreBlankedOutsideTheUrl) {
  register_url_secrets("rtmp://h/live/wq8x-77ab-pp0z");
  register_url_secrets("rtmp://h/live/yard");
  EXPECT_EQ(redact("publishing wq8x-77ab-pp0z of yard"), "publishing *** of yard");
}

TEST(RedactTest, StreamIdsAreBlankedInUrlsAndLongOnesEverywhere) {
  expect_redacted(
      {{"srt://h:9000?streamid=yard&latency=20", "srt://h:9000?streamid=***&latency=20"},
       {"srt://h:9000?srt_streamid=yard", "srt://h:9000?srt_streamid=***"}});
  register_url_secrets("srt://h:9000?streamid=publish:gate:8xq1");
  register_url_secrets("srt://h:9000?streamid=fence");
  EXPECT_EQ(redact("publish:gate:8xq1 of fence"), "*** of fence");
}

TEST(RedactTest, OptionsWithSecretsAreBlankedWhereverTheyStand) {
  register_option_secrets("headers",
                          "X-Camera-Key: zebra-41\r\nUser-Agent: player/2\nX-Auth: Bearer lynx-7\n"
                          "X-Visit: wildebeest-23\nX-Pin: 9274\n");
  register_option_secrets("cookies", "session=ocelot-cookie-9; path=/; domain=h;\n");
  register_option_secrets("passphrase", "mongoose-3");
  register_option_secrets("decryption_key", "00ff41b7c9");
  register_option_secrets("srt_streamid", "publish/otter-55");
  register_option_secrets("http_proxy", "http://u:caracal-2@h:3128/");
  register_option_secrets("srtp_out_params", "c3J0cC1tYXN0ZXI=");
  register_option_secrets("cenc_decryption_key", "76a6c65c5ea762");
  register_option_secrets("decryption_keys", "eb67=a0b1c2d3");
  register_option_secrets("audible_key", "b2c94d");
  register_option_secrets("activation_bytes", "e9f7a1");
  register_option_secrets("cookies", "lang=en; sid=puma-5; path=/\n");
  for (const char* secret :
       {"76a6c65c5ea762", "eb67=a0b1c2d3", "b2c94d", "e9f7a1", "puma-5", "zebra-41", "lynx-7",
        "ocelot-cookie-9", "mongoose-3", "00ff41b7c9", "publish/otter-55", "caracal-2",
        "c3J0cC1tYXN0ZXI=", "wildebeest-23", "9274"}) {
    EXPECT_EQ(redact(std::string("set to ") + secret), "set to ***") << secret;
  }
}

TEST(RedactTest, OptionsWithoutSecretsStayReadable) {
  register_option_secrets("headers", "User-Agent: player/2\r\nAccept: text/plain\r\n");
  register_option_secrets("headers", "X-Mode: snowfall\r\nX-Forwarded-For: 198.51.100.217\r\n");
  register_option_secrets("rtsp_transport", "tcp-and-udp");
  register_option_secrets("pass", "7");
  register_option_secrets("cookies",
                          "lang=norwegian; path=/streaming; Expires=never-before; view=lowlands");
  expect_redacted(
      {{"player/2 text/plain tcp-and-udp", "player/2 text/plain tcp-and-udp"},
       {"norwegian /streaming never-before lowlands", "norwegian /streaming never-before lowlands"},
       {"snowfall of 198.51.100.217", "snowfall of 198.51.100.217"},
       {"http://h/x?channel=7", "http://h/x?channel=7"}});
}

TEST(RedactTest, TheQueryOfAnRtmpAppGoes) {
  register_option_secrets("rtmp_app", "live?auth=gazelle-81");
  register_option_secrets("rtmp_app", "security-cameras");
  expect_redacted({{"app live with gazelle-81", "app live with ***"},
                   {"app security-cameras", "app security-cameras"}});
}

TEST(RedactTest, AuthorizationHeadersGo) {
  expect_redacted({
      {"Authorization: Basic dXNlcjpwdw==", "Authorization: Basic ***"},
      {"DESCRIBE rtsp://h/s\r\nauthorization: Digest username=\"u\", response=\"0a\"\r\nCSeq: 2",
       "DESCRIBE rtsp://h/s\r\nauthorization: Digest ***\r\nCSeq: 2"},
      {"Proxy-Authorization:opaque", "Proxy-Authorization:***"},
      {"header='Set-Cookie: session=1'", "header='Set-Cookie: ***"},
  });
}

TEST(RedactTest, RegisteredSecretGoesWhereverItStands) {
  register_secret("tr0ub4dor&3");
  expect_redacted({
      {"it is tr0ub4dor&3!", "it is ***!"},
      {"it is tr0ub4dor%263!", "it is ***!"},
      {"tr0ub4dor&3tr0ub4dor&3", "******"},
  });
}

TEST(RedactTest, PercentEncodedSecretIsBlankedDecodedToo) {
  register_secret("s%C3%A9same%2Fopen");
  EXPECT_EQ(redact("s\xc3\xa9same/open"), "***");
}

TEST(RedactTest, PlainPercentSignsOfASecretMatchBothWays) {
  register_secret("100%25sure");
  expect_redacted({{"100%25sure", "***"}, {"100%2525sure", "***"}, {"100%sure", "***"}});
}

TEST(RedactTest, LongerOfTwoSecretsWins) {
  register_secret("opensesame");
  register_secret("opensesame-and-more");
  EXPECT_EQ(redact("opensesame-and-more"), "***");
}

TEST(RedactTest, SecretThatTheTextCutsOffIsBlanked) {
  register_secret("w4lrus-and/carpenter");
  expect_redacted({{"DESCRIBE rtsp://h/w4lrus-and/carp", "DESCRIBE rtsp://h/***"},
                   {"http://h/w4lrus-and%2Fcar", "http://h/***"},
                   {"http://h/w4lrus-and%2", "http://h/***"},
                   {"a w4lrus-a is short", "a w4lrus-a is short"},
                   {"w4lrus-a", "w4lrus-a"}});
}

TEST(RedactTest, ShortSecretIsBlankedAsAParameterOfAUrlOnly) {
  register_secret("zq7");
  expect_redacted({{"http://h/x?code=zq7&n=2", "http://h/x?code=***&n=2"},
                   {"code zq7 in zq7-style", "code zq7 in zq7-style"}});
}

TEST(RedactTest, UrlSecretsAreBlankedOutsideTheUrl) {
  register_url_secrets("rtsp://viewer:kl%40vier 9@10.0.0.4/s?token=g8tqxy&n=hello1");
  expect_redacted({{"kl@vier 9", "***"},
                   {"kl%40vier%209", "***"},
                   {"g8tqxy", "***"},
                   {"viewer says hello1", "viewer says hello1"}});
}

TEST(RedactTest, BasicFormOfUrlCredentialsIsBlanked) {
  register_url_secrets("http://operator:blauwal7@cam/s");
  EXPECT_EQ(redact("sent b3BlcmF0b3I6YmxhdXdhbDc="), "sent ***");
}

TEST(RedactTest, NoRegisteredSecretSurvives) {
  Random random;
  const std::string secret_bytes = "abXY01@:/?#%&=+ '\"<>|.,;~";
  const std::string text_bytes = secret_bytes + "[]()-_\r\n";
  for (int round = 0; round < 300; ++round) {
    const std::string secret = random.text(secret_bytes, 4 + random.below(9));
    register_secret(secret);
    const std::vector<std::string> forms{secret, percent_encoded(secret, "0123456789ABCDEF"),
                                         percent_encoded(secret, "0123456789abcdef")};
    const std::string& form = forms[random.below(forms.size())];
    const std::vector<std::string> frames{"rtsp://u:" + form + "@h/s", form, "token=" + form,
                                          "http://h/" + form + "/x", "Cookie: " + form};
    const std::string line = random.text(text_bytes, random.below(12)) +
                             frames[random.below(frames.size())] +
                             random.text(text_bytes, random.below(12));
    const std::string result = redact(line);
    for (const auto& gone : forms) EXPECT_EQ(result.find(gone), std::string::npos) << line;
  }
}

TEST(RedactTest, NoPasswordOfAnEncodedUrlSurvives) {
  Random random;
  for (int round = 0; round < 500; ++round) {
    // Never registered: the surroundings alone must tell.
    const std::string password = "Q" + random.text("QZ:@/?#!$'()+,;=.%", 8) + "Q";
    const std::string line = "open rtsp://user:" + password + "@10.1.2.3:554/live failed";
    EXPECT_EQ(redact(line), "open rtsp://***@10.1.2.3:554/live failed") << line;
  }
}

TEST(RedactTest, RedactingTwiceChangesNothingMore) {
  Random random;
  const std::vector<std::string> pieces{
      "rtsp://", "rtmp://", "http:",   "@",   "/",        "?",    "#",      "&",         "=",
      "token=",  "***",     "u:p",     " ",   "10.0.0.4", "cam",  ":554",   "password=", "a.b",
      "\"",      "'",       "Cookie:", "key", "://",      "file", "Basic ", "\r\n",      "user.x"};
  for (int round = 0; round < 20000; ++round) {
    std::string line;
    for (std::size_t n = 1 + random.below(10); n > 0; --n)
      line += pieces[random.below(pieces.size())];
    const std::string once = redact(line);
    EXPECT_EQ(redact(once), once) << line;
  }
}

TEST(RedactTest, ThreadsMayRegisterAndRedactAtOnce) {
  std::vector<std::jthread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([t] {
      for (int i = 0; i < 200; ++i) {
        const std::string secret =
            "thread" + std::to_string(t) + "secret" + std::to_string(i) + ".";
        register_secret(secret);
        EXPECT_EQ(redact("<" + secret + ">"), "<***>");
      }
    });
  }
}

}  // namespace
}  // namespace framelane
