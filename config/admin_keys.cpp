#include "config/admin_keys.hpp"

#include <arpa/inet.h>

#include <algorithm>
#include <utility>

#include "config/secret_file.hpp"
#include "config/tls_certificate.hpp"
#include "pipeline/base/loopback.hpp"
#include "pipeline/base/redact.hpp"

namespace framelane {
namespace {

constexpr std::size_t kShortestToken = 16;
constexpr std::size_t kLongestToken = 512;
constexpr std::string_view kMakeAToken = "make one with: umask 077; openssl rand -hex 32 >FILE";

/// The text of a file that `node` names; nothing if it is not there, which is reported unless it
/// may be missing (`check --no-env`).
std::optional<std::string> read_file_of(const Node& node, bool is_secret, std::string_view remedy,
                                        Reader& reader) {
  const auto name = reader.scalar(node, of(kText));
  if (!name || !reader.is_certain(node)) return std::nullopt;
  const LoadOptions& options = reader.scope().options;
  SecretFile file = read_secret_file(name->text, options);
  if (!file.problem.empty()) {
    if (!options.require_environment) return std::nullopt;
    // Somebody may have written a token in the place of a file's name, so that it is not shown.
    reader.problems().add(
        node,
        file.in_neither_folder
            ? "names no file in $CREDENTIALS_DIRECTORY or /run/secrets; put it there, or write "
              "a whole path (of a file, not what is in it)"
        : file.wrong_kind ? file.problem + "; name another file"
                          : file.problem + "; " + std::string(remedy));
    return std::nullopt;
  }
  // A certificate's file may have the key beside it.
  const bool with_key = !is_secret && file.text.find("PRIVATE KEY-----") != std::string::npos;
  if ((is_secret || with_key) && (file.readable_by_all || file.writable_by_all)) {
    reader.problems().add(node, "names " + in_quotes(name->text) + ", which " +
                                    (with_key ? "holds a private key and " : "") +
                                    "every user of this machine can " +
                                    (file.readable_by_all ? "read" : "write") +
                                    "; forbid it with: chmod o= FILE, and replace what it holds");
    return std::nullopt;
  }
  return std::move(file.text);
}

/// What is wrong with a token's text, for a message that begins with the file.
std::optional<std::string> wrong_token(const std::string& text) {
  if (text.empty()) return "is empty; " + std::string(kMakeAToken);
  const bool fits = std::ranges::all_of(text, [](unsigned char c) { return c > ' ' && c < 0x7f; });
  if (!fits) {
    return "holds something else than one line of ASCII letters, digits and signs without "
           "spaces; " +
           std::string(kMakeAToken);
  }
  if (text.size() < kShortestToken || text.size() > kLongestToken) {
    return "holds a token of " + std::to_string(text.size()) + " characters, and it needs " +
           std::to_string(kShortestToken) + " to " + std::to_string(kLongestToken) + "; " +
           std::string(kMakeAToken);
  }
  return std::nullopt;
}

void read_token(const Node& node, AdminRole role, AdminConfig& admin, Reader& reader) {
  auto text = read_file_of(node, true,
                           "let framelane's user read it, or " + std::string(kMakeAToken), reader);
  if (!text) return;
  if (text->ends_with('\n')) text->pop_back();
  if (text->ends_with('\r')) text->pop_back();
  if (const auto wrong = wrong_token(*text)) {
    reader.problems().add(node, in_quotes(node.text) + " " + *wrong);
    return;
  }
  register_secret(*text);
  admin.tokens.emplace_back(role, *text);
}

Key<AdminConfig> token_key(std::string_view name, std::string_view help, AdminRole role) {
  Shape shape = of(kText);
  shape.list = true;
  return {{name, shape, help}, [role](const Node& node, AdminConfig& admin, Reader& reader) {
            if (node.items_or_self().empty()) {
              reader.problems().add(node, "names no file; name one, or remove the key");
            }
            for (const Node& item : node.items_or_self()) read_token(item, role, admin, reader);
          }};
}

const Section<AdminConfig>& token_keys() {
  static const Section<AdminConfig> keys{
      {token_key("read", "Files with tokens that may read: GET and HEAD.", AdminRole::kRead),
       token_key("control", "Files with tokens that may read and control: POST too.",
                 AdminRole::kControl)}};
  return keys;
}

/// The texts of TLS's two files.
struct TlsTexts {
  std::optional<std::string> certificate;
  std::optional<std::string> key;
};

Key<TlsTexts> tls_file(std::string_view name, std::string_view help, bool is_secret,
                       std::optional<std::string> TlsTexts::*member) {
  return {{name, of(kText), help, true},
          [is_secret, member](const Node& node, TlsTexts& texts, Reader& reader) {
            texts.*member = read_file_of(node, is_secret,
                                         "let framelane's user read it, or name another", reader);
          }};
}

const Section<TlsTexts>& tls_keys() {
  static const Section<TlsTexts> keys{
      {tls_file("certificate",
                "A file with the server's certificate, followed by those between it and its "
                "authority (PEM).",
                false, &TlsTexts::certificate),
       tls_file("key", "A file with the certificate's private key, without a password (PEM).", true,
                &TlsTexts::key)}};
  return keys;
}

void read_tls(const Node& node, AdminConfig& admin, Reader& reader) {
  TlsTexts texts;
  tls_keys().read(node, texts, reader);
  if (!node.is_map()) return;
  for (const std::string_view name : {"certificate", "key"}) {
    if (node.find(name) == nullptr) {
      reader.problems().add_missing(node, name, "TLS needs a certificate and its key");
    }
  }
  TlsCertificate::Problems wrong;
  admin.certificate =
      TlsCertificate::parse(texts.certificate.value_or(""), texts.key.value_or(""), wrong);
  const auto report = [&](std::string_view name, const std::optional<std::string>& text,
                          const std::string& problem) {
    if (!text || problem.empty()) return;  // a file without a text has been reported
    const Node& file = *node.find(name);
    reader.problems().add(file, in_quotes(file.text) + " " + problem);
  };
  report("certificate", texts.certificate, wrong.certificate);
  report("key", texts.key, wrong.key);
}

/// True if only this machine can connect: a Unix socket or loopback. Names are not looked up.
bool is_local(const std::string& listen) {
  if (listen.empty() || listen.starts_with("unix:")) return true;
  std::string host = listen.substr(0, listen.rfind(':'));
  if (host == "localhost") return true;
  in_addr v4{};
  if (inet_pton(AF_INET, host.c_str(), &v4) == 1) return is_loopback(v4);
  if (host.starts_with('[') && host.ends_with(']')) host = host.substr(1, host.size() - 2);
  in6_addr v6{};
  return inet_pton(AF_INET6, host.c_str(), &v6) == 1 && is_loopback(v6);
}

}  // namespace

const Section<AdminConfig>& admin_keys() {
  static const Section<AdminConfig> keys{
      {scalar<AdminConfig>("listen", of(kListenAddress),
                           "The address that serves metrics and API (127.0.0.1:9853).",
                           [](AdminConfig& a, const Value& v) { a.listen = v.text; }),
       section<AdminConfig, AdminConfig>(
           "tokens", token_keys(),
           "Who may ask: files with one token each. Without them, whoever can connect may ask for "
           "everything.",
           [](AdminConfig& a) -> AdminConfig& { return a; }),
       {{"tls", tls_keys().shape(), "Encrypts the connections (off)."}, read_tls},
       scalar<AdminConfig>("insecure", of(kBoolean),
                           "Listens without tokens where other machines can connect (false).",
                           [](AdminConfig& a, const Value& v) { a.insecure = v.number != 0; })}};
  return keys;
}

void check_admin(const Node& node, const AdminConfig& admin, Reader& reader) {
  if (!node.is_map()) return;
  const Node* const tokens = node.find("tokens");
  const Node* const tls = node.find("tls");
  const Node* const listen = node.find("listen");
  if (tokens != nullptr && tokens->is_map() && tokens->entries.empty()) {
    reader.problems().add(*tokens, "names no file; name one under read or control");
  }
  for (const AdminToken& token : admin.tokens) {
    const bool of_both = std::ranges::any_of(admin.tokens, [&](const AdminToken& other) {
      return other.role != token.role && other.hash == token.hash;
    });
    if (!of_both) continue;
    reader.problems().add(*tokens,
                          "has the same token under read and under control; make another "
                          "one for those who only read");
    break;
  }
  if (tls != nullptr && admin.listen.starts_with("unix:")) {
    reader.problems().add(*tls,
                          "is not for a Unix socket, whose data does not leave this machine; "
                          "remove the key");
  }
  // What tokens names may be wrong, which is reported; it does name some.
  if (listen == nullptr || tokens != nullptr || admin.insecure || is_local(admin.listen)) return;
  reader.problems().add(
      *listen,
      in_quotes(admin.listen) +
          " lets other machines connect, and without tokens anybody there could restart feeds; "
          "name files with tokens in admin.tokens, listen on 127.0.0.1 or on a Unix socket, or "
          "allow it with admin.insecure: true");
}

}  // namespace framelane
