#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace framelane {

/// The shape of the names that strftime makes of one pattern: a folder's name, or a file's. Matches
/// a name in a time that grows with its length, whatever the pattern. Immutable: any thread.
class NameShape {
 public:
  /// True if `letter` is a strftime field that a name may have.
  static bool has_field(char letter);
  /// For messages: "%Y, %y, …".
  static std::string known_fields();

  /// Every field of `pattern` must be a known one. "%%" is a percent sign.
  explicit NameShape(std::string_view pattern);

  /// False if there is one such name only.
  bool varies() const { return varies_; }
  /// Hours are those of a day, and so on; whether the month has such a day is not looked at.
  bool fits(std::string_view name) const;
  /// True if a name may fit both: what numbers can be is not looked at.
  bool meets(const NameShape& other) const;

 private:
  enum class Kind : char { kLiteral, kDigit, kWeekday, kSign, kDigits };
  struct Step {
    Kind kind;
    char literal;
    // Of the last digit of a number: how many it has, and what it can be.
    int digits = 0;
    int least = 0;
    int most = 0;
  };
  static bool takes(const Step& step, char c);
  /// Takes the character at `at`. The steps before have taken those before.
  static bool takes(const Step& step, std::string_view name, std::size_t at);
  /// True if both take the same character.
  static bool overlap(const Step& a, const Step& b);

  std::vector<Step> steps_;
  bool varies_ = false;
};

}  // namespace framelane
