#pragma once

#include <gnutls/abstract.h>

#include <chrono>
#include <memory>
#include <string>
#include <vector>

namespace framelane {

/// The certificate with which a server proves who it is, those between it and its authority, and
/// its private key. Immutable. Any thread.
class TlsCertificate {
 public:
  /// What a server with a certificate offers, in GnuTLS's words: TLS 1.2 and 1.3, with what GnuTLS
  /// holds for secure.
  static constexpr const char* kPriorities = "NORMAL:-VERS-ALL:+VERS-TLS1.3:+VERS-TLS1.2";

  /// What is wrong, for messages that begin with the key of the file; both empty: nothing.
  struct Problems {
    std::string certificate;
    std::string key;
  };
  /// Both texts are PEM. Returns null, and sets `problems`, if they are not the certificate and the
  /// key of one server, or if no connection could be made with them (the key is too short, or may
  /// not sign, say). Takes a certificate that has expired.
  static std::shared_ptr<const TlsCertificate> parse(const std::string& certificate,
                                                     const std::string& key, Problems& problems);

  /// Is valid between these.
  std::chrono::system_clock::time_point begins() const { return begins_; }
  std::chrono::system_clock::time_point ends() const { return ends_; }

  /// True if the server's certificate and those between it and its authority are the same. So is
  /// what the key proves then.
  bool same_as(const TlsCertificate& other) const;

  /// Copies for a handshake, which GnuTLS frees (GNUTLS_CERT_RETR_DEINIT_ALL): so a handshake that
  /// has begun does not depend on this object. False if memory is short; nothing is set then.
  bool copy(gnutls_pcert_st*& certificates, unsigned& count, gnutls_privkey_t& key) const;

 private:
  struct Free {
    void operator()(gnutls_x509_crt_t certificate) const { gnutls_x509_crt_deinit(certificate); }
    void operator()(gnutls_x509_privkey_t key) const { gnutls_x509_privkey_deinit(key); }
  };
  using Certificate = std::unique_ptr<gnutls_x509_crt_int, Free>;
  using PrivateKey = std::unique_ptr<gnutls_x509_privkey_int, Free>;

  TlsCertificate(std::vector<Certificate> chain, PrivateKey key);
  static std::vector<Certificate> parse_chain(const std::string& pem, std::string& problem);
  static PrivateKey parse_key(const std::string& pem, std::string& problem);

  const std::vector<Certificate> chain_;  // the server's first
  const PrivateKey key_;
  const std::chrono::system_clock::time_point begins_;
  const std::chrono::system_clock::time_point ends_;
};

}  // namespace framelane
