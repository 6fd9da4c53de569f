#pragma once

namespace framelane {

/// A positive ratio; frame rates are frames per second.
struct Rational {
  int num = 0;
  int den = 1;
  friend bool operator==(const Rational&, const Rational&) = default;
};

}  // namespace framelane
