#include "config/tls_certificate.hpp"

#include <gnutls/x509.h>

#include <algorithm>
#include <array>
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
  return std::shared_ptr<const TlsCertificate>(
      new TlsCertificate(std::move(chain), std::move(own_key)));
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
