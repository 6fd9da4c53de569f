#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace framelane {

__extension__ using Int128 = __int128;

/// A whole number of 384 bits in two's complement, for sums that are too large for the compiler's
/// types. It wraps around silently: whoever uses it shows that nothing is lost.
class WideInt {
 public:
  WideInt() = default;
  explicit WideInt(Int128 value) {
    words_.fill(value < 0 ? ~std::uint64_t{0} : 0);
    words_[0] = static_cast<std::uint64_t>(value);
    words_[1] = static_cast<std::uint64_t>(value >> 64);
  }

  bool negative() const { return words_.back() >> 63 != 0; }

  WideInt& operator+=(const WideInt& other) {
    bool carry = false;
    for (std::size_t i = 0; i < kWords; ++i) {
      const std::uint64_t sum = words_[i] + other.words_[i];
      const std::uint64_t with_carry = sum + (carry ? 1 : 0);
      carry = sum < words_[i] || with_carry < sum;
      words_[i] = with_carry;
    }
    return *this;
  }
  WideInt operator-() const {
    WideInt result(1);
    WideInt complement;
    for (std::size_t i = 0; i < kWords; ++i) complement.words_[i] = ~words_[i];
    return result += complement;
  }
  WideInt& operator*=(std::int64_t factor) {
    __extension__ using Product = unsigned __int128;
    if (factor < 0) return *this = -(*this *= -factor);
    std::uint64_t carry = 0;
    for (std::uint64_t& word : words_) {
      const Product product = Product{word} * static_cast<std::uint64_t>(factor) + carry;
      word = static_cast<std::uint64_t>(product);
      carry = static_cast<std::uint64_t>(product >> 64);
    }
    return *this;
  }

  friend WideInt operator*(WideInt number, std::int64_t factor) { return number *= factor; }
  friend WideInt operator+(WideInt a, const WideInt& b) { return a += b; }
  friend bool operator<(const WideInt& a, const WideInt& b) { return (a + -b).negative(); }

 private:
  static constexpr std::size_t kWords = 6;
  std::array<std::uint64_t, kWords> words_{};  // the lowest first
};

}  // namespace framelane
