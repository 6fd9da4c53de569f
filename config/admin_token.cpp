#include "config/admin_token.hpp"

#include <gnutls/crypto.h>

#include <stdexcept>

namespace framelane {

AdminToken::AdminToken(AdminRole of_role, std::string_view text)
    : role(of_role), hash(hash_of(text)) {}

AdminToken::Hash AdminToken::hash_of(std::string_view text) {
  Hash hash{};
  if (gnutls_hash_fast(GNUTLS_DIG_SHA256, text.data(), text.size(), hash.data()) < 0) {
    throw std::runtime_error("GnuTLS has no SHA-256");
  }
  return hash;
}

bool AdminToken::is(const Hash& other) const {
  return gnutls_memcmp(hash.data(), other.data(), hash.size()) == 0;
}

}  // namespace framelane
