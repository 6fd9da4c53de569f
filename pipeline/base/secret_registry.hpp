#pragma once

#include <array>
#include <cstddef>
#include <set>
#include <shared_mutex>
#include <string>
#include <string_view>
#include <vector>

namespace framelane {

/// What stands in place of a secret.
inline constexpr std::string_view kSecretMask = "***";

/// The values known to be secret, and the places of a text where they stand. Thread-safe.
class SecretRegistry {
 public:
  /// The process's own.
  static SecretRegistry& instance();

  void add(std::string_view secret);
  /// `text` with every secret masked, also where any of its characters are percent-encoded. One
  /// of less than 4 characters is not looked for: that would blank half of every line.
  std::string blank(std::string_view text) const;
  /// Whether the value is, plain or percent-encoded, a secret that blank() does not look for.
  bool is_short_secret(std::string_view value) const;

 private:
  std::size_t match(std::string_view text, std::size_t at) const;

  mutable std::shared_mutex mutex_;
  std::array<std::vector<std::string>, 256> by_first_;
  std::set<std::string, std::less<>> short_;
};

std::string percent_decoded(std::string_view text);

}  // namespace framelane
