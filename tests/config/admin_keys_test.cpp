// The keys of admin, and the files that they name.
#include <gmock/gmock.h>
#include <sys/stat.h>

#include <fstream>
#include <string>
#include <vector>

#include "config/tls_certificate.hpp"
#include "pipeline/base/redact.hpp"
#include "tests/config/support.hpp"
#include "tests/config/tls_files.hpp"
#include "tests/temp_folder.hpp"

namespace framelane {
namespace {

using test::load;
using test::problems_of;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::StartsWith;

constexpr const char* kOneFeed = "feeds: {a: {input: {url: x}}}\n";

class AdminKeysTest : public ::testing::Test {
 protected:
  /// The path of a new file in the test's folder.
  std::string file(const std::string& name, const std::string& text, mode_t mode = 0600) const {
    const std::string path = folder_ / name;
    std::ofstream(path) << text;
    ::chmod(path.c_str(), mode);
    return path;
  }
  static std::string with(const std::string& admin) {
    return "admin: {" + admin + "}\n" + kOneFeed;
  }
  std::string with_pair(const std::string& certificate, const std::string& key) const {
    return with("tls: {certificate: " + file("certificate", certificate, 0644) +
                ", key: " + file("key", key) + "}");
  }
  /// The problem of a token file with this content.
  std::string problem_of_token(const std::string& text, mode_t mode = 0600) const {
    const auto problems = problems_of(with("tokens: {read: " + file("token", text, mode) + "}"));
    return problems.size() == 1 ? problems[0] : std::to_string(problems.size()) + " problems";
  }

  const testing::TempFolder folder_;
};

TEST_F(AdminKeysTest, OtherMachinesNeedATokenToConnect) {
  for (const char* listen : {"0.0.0.0:1", "'[::]:1'", "192.168.1.2:1", "somewhere:1", "127.1:1"}) {
    const auto problems = problems_of(with("listen: " + std::string(listen)));
    ASSERT_EQ(problems.size(), 1U) << listen;
    EXPECT_THAT(problems[0], StartsWith("f.yaml:1:17: admin.listen: "));
    EXPECT_THAT(problems[0], HasSubstr("admin.tokens"));
    EXPECT_THAT(problems[0], HasSubstr("admin.insecure: true"));
  }
}

TEST_F(AdminKeysTest, ThisMachineNeedsNone) {
  for (const char* listen : {"127.0.0.1:1", "127.8.9.10:1", "localhost:1", "'[::1]:1'",
                             "'[::ffff:127.0.0.1]:1'", "'unix:/x'", "''"}) {
    EXPECT_THAT(problems_of(with("listen: " + std::string(listen))), IsEmpty()) << listen;
  }
}

TEST_F(AdminKeysTest, InsecureAllowsIt) {
  EXPECT_TRUE(load(with("listen: '0.0.0.0:1', insecure: true")).admin.insecure);
  EXPECT_EQ(problems_of(with("listen: '0.0.0.0:1', insecure: false")).size(), 1U);
}

TEST_F(AdminKeysTest, TokensAreOneOrSeveralFiles) {
  const AdminConfig admin =
      load(with("listen: '0.0.0.0:1', tokens: {read: [" + file("a", "aaaaaaaaaaaaaaaa\n") + ", " +
                file("b", "bbbbbbbbbbbbbbbb") +
                "], control: " + file("c", "c~!+=/._-c~!+=/._-\r\n") + "}"))
          .admin;
  EXPECT_THAT(admin.tokens, ElementsAre(AdminToken(AdminRole::kRead, "aaaaaaaaaaaaaaaa"),
                                        AdminToken(AdminRole::kRead, "bbbbbbbbbbbbbbbb"),
                                        AdminToken(AdminRole::kControl, "c~!+=/._-c~!+=/._-")));
  EXPECT_THAT(redact("it is bbbbbbbbbbbbbbbb"), Not(HasSubstr("bbbb")));
}

TEST_F(AdminKeysTest, ATokenHasEnoughCharactersOfOneLine) {
  EXPECT_THAT(problem_of_token(""), HasSubstr("is empty; make one with: umask 077; openssl rand"));
  EXPECT_THAT(problem_of_token("\n"), HasSubstr("is empty"));
  EXPECT_THAT(problem_of_token("0123456789abcde"), HasSubstr("a token of 15 characters"));
  EXPECT_THAT(problem_of_token(std::string(513, 'x')), HasSubstr("a token of 513 characters"));
  for (const char* text :
       {"two words 123456789", "two\nlines123456789", "umlaut \xc3\xa4 12345678"}) {
    EXPECT_THAT(problem_of_token(text), HasSubstr("holds something else than one line")) << text;
    EXPECT_THAT(problem_of_token(text), Not(HasSubstr("12345678"))) << text;
  }
}

TEST_F(AdminKeysTest, ATokenFileHasToBeThereAndClosedToOthers) {
  EXPECT_THAT(problem_of_token("0123456789abcdef", 0604),
              HasSubstr("can read; forbid it with: chmod"));
  EXPECT_THAT(problem_of_token("0123456789abcdef", 0602),
              HasSubstr("can write; forbid it with: chmod"));
  EXPECT_EQ(problem_of_token("0123456789abcdef", 0640), "0 problems");
  EXPECT_THAT(
      problems_of(with("tokens: {control: [/nonexistent/token]}")),
      ElementsAre(
          "f.yaml:1:28: admin.tokens.control[0]: the secret file "
          "\"/nonexistent/token\" cannot be read: No such file or directory; let "
          "framelane's user read it, or make one with: umask 077; openssl rand -hex 32 >FILE"));
  EXPECT_THAT(problems_of(with("tokens: {read: [/tmp]}")).at(0),
              HasSubstr("cannot be read: it is a folder, not a regular file; name another file"));
  EXPECT_THAT(problem_of_token(std::string(70'000, 'x')),
              HasSubstr("it is larger than 65536 bytes; name another file"));
  ASSERT_EQ(::mkfifo((folder_ / "fifo").c_str(), 0600), 0);
  EXPECT_THAT(problems_of(with("tokens: {read: " + (folder_ / "fifo") + "}")).at(0),
              HasSubstr("it is a FIFO, not a regular file"));
  EXPECT_THAT(problems_of(with("tokens: {read: no-such-file}")),
              ElementsAre("f.yaml:1:24: admin.tokens.read: names no file in $CREDENTIALS_DIRECTORY "
                          "or /run/secrets; put it there, or write a whole path (of a file, not "
                          "what is in it)"));
}

TEST_F(AdminKeysTest, ARelativeNameIsLookedUpAmongTheCredentials) {
  file("scrape", "0123456789abcdef", 0644);  // systemd's folder itself is closed to others
  const auto options = test::with_environment({{"CREDENTIALS_DIRECTORY", folder_ / ""}});
  EXPECT_EQ(load(with("tokens: {read: scrape}"), options).admin.tokens.size(), 1U);
}

TEST_F(AdminKeysTest, WithoutTheEnvironmentFilesMayBeMissing) {
  LoadOptions options = test::with_environment({});
  options.require_environment = false;
  EXPECT_THAT(problems_of(with("listen: '0.0.0.0:1', tokens: {read: [/nonexistent, '${NAME}']}, "
                               "tls: {certificate: /nonexistent, key: absent}"),
                          options),
              IsEmpty());
}

TEST_F(AdminKeysTest, TokensNameSomeFile) {
  EXPECT_THAT(problems_of(with("tokens: {}")).at(0), HasSubstr("admin.tokens: names no file"));
  EXPECT_THAT(problems_of(with("tokens: {read: []}")).at(0),
              HasSubstr("tokens.read: names no file"));
  EXPECT_EQ(problems_of(with("tokens: {write: /x}")).size(), 1U);
}

TEST_F(AdminKeysTest, OneTokenDoesNotHaveBothRoles) {
  const std::string text = with("tokens: {read: " + file("a", "0123456789abcdef") +
                                ", control: " + file("b", "0123456789abcdef\n") + "}");
  EXPECT_THAT(problems_of(text),
              ElementsAre("f.yaml:1:17: admin.tokens: has the same token under read and under "
                          "control; make another one for those who only read"));
}

TEST_F(AdminKeysTest, ACertificateIsReadWithItsKey) {
  const auto pair = test::make_tls_pair("one");
  const AdminConfig admin = load(with_pair(pair.certificate, pair.key)).admin;
  ASSERT_NE(admin.certificate, nullptr);
  EXPECT_LT(admin.certificate->begins(), std::chrono::system_clock::now());
  EXPECT_GT(admin.certificate->ends(), std::chrono::system_clock::now());
}

TEST_F(AdminKeysTest, AnExpiredCertificateIsNoProblemOfTheConfiguration) {
  const auto pair = test::make_tls_pair("one", -60);
  const AdminConfig admin = load(with_pair(pair.certificate, pair.key)).admin;
  ASSERT_NE(admin.certificate, nullptr);
  EXPECT_LT(admin.certificate->ends(), std::chrono::system_clock::now());
}

TEST_F(AdminKeysTest, TheFilesOfTlsBelongTogether) {
  const auto one = test::make_tls_pair("one");
  const auto two = test::make_tls_pair("two");
  const auto problem = [&](const std::string& certificate, const std::string& key) {
    const auto problems = problems_of(with_pair(certificate, key));
    return problems.size() == 1 ? problems[0] : std::to_string(problems.size()) + " problems";
  };
  EXPECT_THAT(problem(one.certificate, two.key), HasSubstr("admin.tls.key: \"" + std::string("/")));
  EXPECT_THAT(problem(one.certificate, two.key), HasSubstr("is not the key of the certificate"));
  EXPECT_THAT(problem(one.certificate + two.certificate, one.key), HasSubstr("in a wrong order"));
  EXPECT_THAT(problem("nothing", one.key), HasSubstr("admin.tls.certificate: "));
  EXPECT_THAT(problem("nothing", one.key), HasSubstr("has no certificate in PEM form"));
  EXPECT_THAT(problem(one.certificate + one.key, one.key),
              HasSubstr("which holds a private key and every user of this machine can read"));
  EXPECT_THAT(problem(one.certificate, one.certificate),
              HasSubstr("has no private key in PEM form"));
  EXPECT_EQ(problem(one.certificate, one.key + one.certificate), "0 problems");
  EXPECT_EQ(problem("", ""), "2 problems");
}

TEST_F(AdminKeysTest, ACertificateThatNoConnectionCanUseIsRefused) {
  const auto pair = test::make_tls_pair("one", 3600, 512);
  EXPECT_THAT(problems_of(with_pair(pair.certificate, pair.key)),
              ElementsAre(HasSubstr("can be used in no connection")));
}

// TLS 1.2 alone could use it, and clients of today offer 1.3.
TEST_F(AdminKeysTest, ACertificateWhoseKeyMayNotSignIsRefusedForThat) {
  const auto pair = test::make_tls_pair("one", 3600, 2048, GNUTLS_KEY_KEY_ENCIPHERMENT);
  EXPECT_THAT(problems_of(with_pair(pair.certificate, pair.key)),
              ElementsAre(AllOf(HasSubstr("lacks digitalSignature"),
                                HasSubstr("have one made with keyUsage = digitalSignature"))));
  for (const unsigned usage :
       {GNUTLS_KEY_DIGITAL_SIGNATURE, GNUTLS_KEY_DIGITAL_SIGNATURE | GNUTLS_KEY_KEY_ENCIPHERMENT}) {
    const auto good = test::make_tls_pair("one", 3600, 2048, usage);
    EXPECT_THAT(problems_of(with_pair(good.certificate, good.key)), IsEmpty());
  }
}

TEST_F(AdminKeysTest, AKeyWithAPasswordIsRefused) {
  const auto pair = test::make_tls_pair("one");
  gnutls_x509_privkey_t key = nullptr;
  gnutls_x509_privkey_init(&key);
  const gnutls_datum_t plain{reinterpret_cast<unsigned char*>(const_cast<char*>(pair.key.data())),
                             static_cast<unsigned>(pair.key.size())};
  ASSERT_EQ(gnutls_x509_privkey_import(key, &plain, GNUTLS_X509_FMT_PEM), 0);
  gnutls_datum_t locked{};
  ASSERT_EQ(gnutls_x509_privkey_export2_pkcs8(key, GNUTLS_X509_FMT_PEM, "password",
                                              GNUTLS_PKCS_PBES2_AES_256, &locked),
            0);
  const std::string text(reinterpret_cast<const char*>(locked.data), locked.size);
  gnutls_free(locked.data);
  gnutls_x509_privkey_deinit(key);
  EXPECT_THAT(problems_of(with_pair(pair.certificate, text)).at(0),
              HasSubstr("is locked with a password"));
}

TEST_F(AdminKeysTest, TheKeyIsClosedToOthers) {
  const auto pair = test::make_tls_pair("one");
  const std::string text = with_pair(pair.certificate, pair.key);
  ::chmod((folder_ / "key").c_str(), 0644);
  EXPECT_THAT(problems_of(text).at(0), HasSubstr("every user of this machine can read"));
}

TEST_F(AdminKeysTest, TlsNeedsBothFilesAndANetwork) {
  const auto pair = test::make_tls_pair("one");
  EXPECT_THAT(problems_of(with("tls: {certificate: " + file("c", pair.certificate) + "}")),
              ElementsAre("f.yaml:1:9: admin.tls.key: is missing; TLS needs a certificate and its "
                          "key"));
  EXPECT_EQ(problems_of(with("tls: {}")).size(), 2U);
  EXPECT_EQ(problems_of(with("tls: {certificate: " + file("c", "x") + ", key: /none}")).size(), 2U);
  EXPECT_THAT(problems_of(with("listen: 'unix:/x', tls: {certificate: " +
                               file("c", pair.certificate) + ", key: " + file("k", pair.key) + "}"))
                  .at(0),
              HasSubstr("admin.tls: is not for a Unix socket"));
}

TEST_F(AdminKeysTest, TlsAloneDoesNotSayWhoMayAsk) {
  const auto pair = test::make_tls_pair("one");
  EXPECT_THAT(problems_of(with("listen: '0.0.0.0:1', tls: {certificate: " +
                               file("c", pair.certificate) + ", key: " + file("k", pair.key) + "}"))
                  .at(0),
              StartsWith("f.yaml:1:17: admin.listen: "));
}

}  // namespace
}  // namespace framelane
