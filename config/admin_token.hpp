#pragma once

#include <array>
#include <cstdint>
#include <string_view>

namespace framelane {

/// What the one who has a token may ask of the admin listener.
enum class AdminRole {
  kRead,     ///< GET and HEAD
  kControl,  ///< everything
};

/// A token of admin.tokens. Of its text only a hash is kept, and the comparison of two hashes takes
/// the same time wherever they differ: so neither tells the text, nor its length.
struct AdminToken {
  using Hash = std::array<std::uint8_t, 32>;  ///< SHA-256

  AdminToken(AdminRole of_role, std::string_view text);
  static Hash hash_of(std::string_view text);
  bool is(const Hash& other) const;

  AdminRole role;
  Hash hash;

  friend bool operator==(const AdminToken&, const AdminToken&) = default;
};

}  // namespace framelane
