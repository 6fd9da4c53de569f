#pragma once

#include <array>
#include <cstddef>
#include <functional>
#include <set>
#include <shared_mutex>
#include <string>
#include <string_view>
#include <vector>

namespace framelane {

/// What stands in place of a secret.
inline constexpr std::string_view kSecretMask = "***";

/// Knows the values that are secret and masks them in text. Any thread.
class SecretRegistry {
 public:
  /// The one of this process.
  static SecretRegistry& instance();

  void add(std::string_view secret);
  /// `text` with every secret masked, also where some of its characters are percent-encoded, and
  /// one of which the text has only the beginning, at its end. Secrets shorter than 4 characters
  /// are left: masking them would spoil half of every line.
  std::string blank(std::string_view text) const;
  /// True if `value`, plain or percent-encoded, is one of the short secrets that blank() leaves.
  bool is_short_secret(std::string_view value) const;

 private:
  /// The length of the secret that begins at text[at]; 0 if none does.
  std::size_t match(std::string_view text, std::size_t at) const;

  mutable std::shared_mutex mutex_;
  std::array<std::vector<std::string>, 256> by_first_;  // by their first byte
  std::set<std::string, std::less<>> short_;
};

/// `text` with every %XX replaced by the byte it stands for.
std::string percent_decoded(std::string_view text);

}  // namespace framelane
