#include "config/tls_certificate.hpp"

#include <gnutls/x509.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstddef>
#include <new>
#include <utility>

namespace framelane {
namespace {

using KeyId = std::array<unsigned char, 32>;

gnutls_datum_t datum(const std::string& text) {
  return {reinterpret_cast<unsigned char*>(const_cast<char*>(text.data())),
          static_cast<unsigned>(text.size())};
}

KeyId key_id(gnutls_x509_crt_t certificate) {
  KeyId id{};
  std::size_t size = id.size();
  gnutls_x509_crt_get_key_id(certificate, GNUTLS_KEYID_USE_SHA256, id.data(), &size);
  return id;
}

KeyId key_id(gnutls_x509_privkey_t key) {
  KeyId id{};
  std::size_t size = id.size();
  gnutls_x509_privkey_get_key_id(key, GNUTLS_KEYID_USE_SHA256, id.data(), &size);
  return id;
}

/// One end of a connection in memory.
struct End {
  std::string& in;
  std::string& out;
  gnutls_session_t session = nullptr;

  ~End() {
    if (session != nullptr) gnutls_deinit(session);
  }
  /// Returns an error of GnuTLS.
  int begin(unsigned role, gnutls_certificate_credentials_t credentials) {
    int error = gnutls_init(&session, role | GNUTLS_NONBLOCK);
    if (error < 0) return error;
    error = gnutls_priority_set_direct(session, TlsCertificate::kPriorities, nullptr);
    if (error >= 0) error = gnutls_credentials_set(session, GNUTLS_CRD_CERTIFICATE, credentials);
    gnutls_transport_set_ptr(session, this);
    gnutls_transport_set_push_function(session, &End::push);
    gnutls_transport_set_pull_function(session, &End::pull);
    return error;
  }

  static ssize_t push(gnutls_transport_ptr_t self, const void* data, std::size_t size) {
    static_cast<End*>(self)->out.append(static_cast<const char*>(data), size);
    return static_cast<ssize_t>(size);
  }
  static ssize_t pull(gnutls_transport_ptr_t self, void* data, std::size_t size) {
    End& end = *static_cast<End*>(self);
    if (end.in.empty()) {
      gnutls_transport_set_errno(end.session, EAGAIN);
      return -1;
    }
    const std::size_t count = end.in.copy(static_cast<char*>(data), size);
    end.in.erase(0, count);
    return static_cast<ssize_t>(count);
  }
};

struct FreeCredentials {
  void operator()(gnutls_certificate_credentials_t credentials) const {
    gnutls_certificate_free_credentials(credentials);
  }
};
using Credentials = std::unique_ptr<gnutls_certificate_credentials_st, FreeCredentials>;

Credentials make_credentials() {
  gnutls_certificate_credentials_t credentials = nullptr;
  if (gnutls_certificate_allocate_credentials(&credentials) < 0) throw std::bad_alloc();
  return Credentials(credentials);
}

int give_certificate(gnutls_session_t session, const gnutls_cert_retr_st*,
                     gnutls_pcert_st** certificates, unsigned* count, gnutls_ocsp_data_st** ocsp,
                     unsigned* ocsp_count, gnutls_privkey_t* key, unsigned* flags) {
  const auto& certificate = *static_cast<const TlsCertificate*>(gnutls_session_get_ptr(session));
  *ocsp = nullptr;
  *ocsp_count = 0;
  *flags = GNUTLS_CERT_RETR_DEINIT_ALL;
  return certificate.copy(*certificates, *count, *key) ? 0 : -1;
}

/// Has a server with this certificate and a client connect, in memory. Returns GnuTLS's error.
int try_handshake(const TlsCertificate& certificate) {
  const Credentials servers = make_credentials();
  const Credentials clients = make_credentials();
  gnutls_certificate_set_retrieve_function3(servers.get(), give_certificate);
  std::string to_server;
  std::string to_client;
  End server{to_server, to_client};
  End client{to_client, to_server};
  if (const int error = server.begin(GNUTLS_SERVER, servers.get()); error < 0) return error;
  if (const int error = client.begin(GNUTLS_CLIENT, clients.get()); error < 0) return error;
  gnutls_session_set_ptr(server.session, const_cast<TlsCertificate*>(&certificate));
  int of_client = GNUTLS_E_AGAIN;
  int of_server = GNUTLS_E_AGAIN;
  constexpr int kMostTurns = 20;  // a handshake has two or three
  for (int turn = 0; turn < kMostTurns && (of_client < 0 || of_server < 0); ++turn) {
    if (of_client < 0) of_client = gnutls_handshake(client.session);
    if (of_server < 0) of_server = gnutls_handshake(server.session);
    if (of_server < 0 && gnutls_error_is_fatal(of_server) != 0) return of_server;
    if (of_client < 0 && gnutls_error_is_fatal(of_client) != 0) return of_client;
  }
  return of_server < 0 ? of_server : of_client;
}

/// Why no connection can be made with the certificate, which GnuTLS says with `error`, and what
/// helps.
std::string why_unusable(gnutls_x509_crt_t certificate, int error) {
  unsigned usage = 0;
  unsigned critical = 0;
  const int known = gnutls_x509_crt_get_key_usage(certificate, &usage, &critical);
  if (known >= 0 && (usage & GNUTLS_KEY_DIGITAL_SIGNATURE) == 0) {
    return "does not allow its key to sign (its key usage lacks digitalSignature), which TLS 1.3 "
           "needs; have one made with keyUsage = digitalSignature";
  }
  return std::string("can be used in no connection (") + gnutls_strerror(error) +
         "); make one with a key of RSA with 2048 bits or more, or of ECDSA with P-256, signed "
         "with SHA-256";
}

}  // namespace

std::vector<TlsCertificate::Certificate> TlsCertificate::parse_chain(const std::string& pem,
                                                                     std::string& problem) {
  gnutls_x509_crt_t* list = nullptr;
  unsigned count = 0;
  const gnutls_datum_t data = datum(pem);
  const int result = gnutls_x509_crt_list_import2(&list, &count, &data, GNUTLS_X509_FMT_PEM,
                                                  GNUTLS_X509_CRT_LIST_FAIL_IF_UNSORTED);
  std::vector<Certificate> chain;
  if (result == GNUTLS_E_CERTIFICATE_LIST_UNSORTED) {
    problem =
        "has certificates in a wrong order; the server's is the first, and each one is followed by "
        "its issuer's";
  } else if (result < 0) {
    problem = std::string("has no certificate in PEM form (") + gnutls_strerror(result) +
              "); it must begin with -----BEGIN CERTIFICATE-----";
  } else {
    for (unsigned i = 0; i < count; ++i) chain.emplace_back(list[i]);
    gnutls_free(list);
  }
  return chain;
}

TlsCertificate::PrivateKey TlsCertificate::parse_key(const std::string& pem, std::string& problem) {
  gnutls_x509_privkey_t key = nullptr;
  if (gnutls_x509_privkey_init(&key) < 0) {
    problem = "cannot be read: memory is short";
    return nullptr;
  }
  PrivateKey owned(key);
  const gnutls_datum_t data = datum(pem);
  const int result =
      gnutls_x509_privkey_import2(key, &data, GNUTLS_X509_FMT_PEM, nullptr, GNUTLS_PKCS_PLAIN);
  if (result >= 0) return owned;
  problem = pem.find("ENCRYPTED") != std::string::npos
                ? "is locked with a password; store it without one (openssl pkey -in FILE -out "
                  "FILE2), readable by framelane's user alone"
                : std::string("has no private key in PEM form (") + gnutls_strerror(result) +
                      "); it must begin with -----BEGIN PRIVATE KEY----- or the like";
  return nullptr;
}

std::shared_ptr<const TlsCertificate> TlsCertificate::parse(const std::string& certificate,
                                                            const std::string& key,
                                                            Problems& problems) {
  std::vector<Certificate> chain = parse_chain(certificate, problems.certificate);
  PrivateKey own_key = parse_key(key, problems.key);
  if (chain.empty() || !own_key) return nullptr;
  if (key_id(chain.front().get()) != key_id(own_key.get())) {
    problems.key =
        "is not the key of the certificate; after a renewal both files have to be replaced";
    return nullptr;
  }
  std::shared_ptr<const TlsCertificate> pair(
      new TlsCertificate(std::move(chain), std::move(own_key)));
  if (const int error = try_handshake(*pair); error < 0) {
    problems.certificate = why_unusable(pair->chain_.front().get(), error);
    return nullptr;
  }
  return pair;
}

TlsCertificate::TlsCertificate(std::vector<Certificate> chain, PrivateKey key)
    : chain_(std::move(chain)),
      key_(std::move(key)),
      begins_(std::chrono::system_clock::from_time_t(
          gnutls_x509_crt_get_activation_time(chain_.front().get()))),
      ends_(std::chrono::system_clock::from_time_t(
          gnutls_x509_crt_get_expiration_time(chain_.front().get()))) {}

bool TlsCertificate::same_as(const TlsCertificate& other) const {
  return std::ranges::equal(chain_, other.chain_, [](const Certificate& a, const Certificate& b) {
    return gnutls_x509_crt_equals(a.get(), b.get()) != 0;
  });
}

bool TlsCertificate::copy(gnutls_pcert_st*& certificates, unsigned& count,
                          gnutls_privkey_t& key) const {
  auto* copies =
      static_cast<gnutls_pcert_st*>(gnutls_calloc(chain_.size(), sizeof(gnutls_pcert_st)));
  gnutls_privkey_t own_key = nullptr;
  unsigned done = 0;
  bool ok = copies != nullptr && gnutls_privkey_init(&own_key) >= 0 &&
            gnutls_privkey_import_x509(own_key, key_.get(), GNUTLS_PRIVKEY_IMPORT_COPY) >= 0;
  while (ok && done < chain_.size()) {
    ok = gnutls_pcert_import_x509(&copies[done], chain_[done].get(), 0) >= 0;
    if (ok) ++done;
  }
  if (!ok) {
    for (unsigned i = 0; i < done; ++i) gnutls_pcert_deinit(&copies[i]);
    gnutls_free(copies);
    if (own_key != nullptr) gnutls_privkey_deinit(own_key);
    return false;
  }
  certificates = copies;
  count = done;
  key = own_key;
  return true;
}

}  // namespace framelane
