#pragma once

#include <gnutls/abstract.h>
#include <gnutls/x509.h>

#include <ctime>
#include <stdexcept>
#include <string>

namespace framelane::test {

struct TlsPair {
  std::string certificate;
  std::string key;
};

/// A certificate for 127.0.0.1 that signs itself, with a new key; PEM. It is valid for an hour, up
/// to `ends` seconds from now. The key is ECDSA's, or RSA's with so many bits. `usage`: what it is
/// for, flags of GnuTLS; 0: the certificate does not say.
inline TlsPair make_tls_pair(const std::string& name, int ends = 3600, unsigned rsa_bits = 0,
                             unsigned usage = 0) {
  const auto require = [](int result) {
    if (result < 0) throw std::runtime_error(gnutls_strerror(result));
  };
  const auto text_of = [](gnutls_datum_t& pem) {
    std::string text(reinterpret_cast<const char*>(pem.data), pem.size);
    gnutls_free(pem.data);
    return text;
  };
  TlsPair pair;
  gnutls_datum_t pem{};
  gnutls_x509_privkey_t key = nullptr;
  require(gnutls_x509_privkey_init(&key));
  require(gnutls_x509_privkey_generate(
      key, rsa_bits > 0 ? GNUTLS_PK_RSA : GNUTLS_PK_ECDSA,
      rsa_bits > 0 ? rsa_bits : GNUTLS_CURVE_TO_BITS(GNUTLS_ECC_CURVE_SECP256R1), 0));
  require(gnutls_x509_privkey_export2_pkcs8(key, GNUTLS_X509_FMT_PEM, nullptr, GNUTLS_PKCS_PLAIN,
                                            &pem));
  pair.key = text_of(pem);
  gnutls_x509_crt_t certificate = nullptr;
  require(gnutls_x509_crt_init(&certificate));
  const std::string subject = "CN=" + name;
  const unsigned char serial = 1;
  const unsigned char address[]{127, 0, 0, 1};
  const std::time_t end = std::time(nullptr) + ends;
  require(gnutls_x509_crt_set_version(certificate, 3));
  require(gnutls_x509_crt_set_serial(certificate, &serial, 1));
  require(gnutls_x509_crt_set_dn(certificate, subject.c_str(), nullptr));
  require(gnutls_x509_crt_set_key(certificate, key));
  require(gnutls_x509_crt_set_activation_time(certificate, end - 3600));
  require(gnutls_x509_crt_set_expiration_time(certificate, end));
  require(gnutls_x509_crt_set_subject_alt_name(certificate, GNUTLS_SAN_IPADDRESS, address,
                                               sizeof address, GNUTLS_FSAN_SET));
  if (usage != 0) require(gnutls_x509_crt_set_key_usage(certificate, usage));
  require(gnutls_x509_crt_sign2(certificate, certificate, key, GNUTLS_DIG_SHA256, 0));
  require(gnutls_x509_crt_export2(certificate, GNUTLS_X509_FMT_PEM, &pem));
  pair.certificate = text_of(pem);
  gnutls_x509_crt_deinit(certificate);
  gnutls_x509_privkey_deinit(key);
  return pair;
}

}  // namespace framelane::test
