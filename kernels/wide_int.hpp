#pragma once

#include <cstdint>

// Code for the host that is also compiled for GPUs.
#ifdef __CUDACC__
#define FRAMELANE_BOTH __host__ __device__
#else
#define FRAMELANE_BOTH
#endif

namespace framelane {

__extension__ using Int128 = __int128;

/// A whole number of 384 bits in two's complement, for sums that are too large for the compiler's
/// types. It wraps around silently: whoever uses it shows that nothing is lost.
class WideInt {
 public:
  FRAMELANE_BOTH explicit WideInt(Int128 value) {
    for (std::uint64_t& word : words_) word = value < 0 ? ~std::uint64_t{0} : 0;
    words_[0] = static_cast<std::uint64_t>(value);
    words_[1] = static_cast<std::uint64_t>(value >> 64);
  }

  FRAMELANE_BOTH bool negative() const { return words_[kWords - 1] >> 63 != 0; }

  FRAMELANE_BOTH WideInt& operator+=(const WideInt& other) {
    bool carry = false;
    for (int i = 0; i < kWords; ++i) {
      const std::uint64_t sum = words_[i] + other.words_[i];
      const std::uint64_t with_carry = sum + (carry ? 1 : 0);
      carry = sum < words_[i] || with_carry < sum;
      words_[i] = with_carry;
    }
    return *this;
  }
  FRAMELANE_BOTH WideInt operator-() const {
    WideInt result(1);
    WideInt complement(0);
    for (int i = 0; i < kWords; ++i) complement.words_[i] = ~words_[i];
    return result += complement;
  }
  FRAMELANE_BOTH WideInt& operator*=(std::int64_t factor) {
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

  static constexpr int kWords = 6;
  /// Word i, the lowest first.
  FRAMELANE_BOTH std::uint64_t& word(int i) { return words_[i]; }

  FRAMELANE_BOTH friend WideInt operator*(WideInt number, std::int64_t factor) {
    return number *= factor;
  }
  FRAMELANE_BOTH friend WideInt operator+(WideInt a, const WideInt& b) { return a += b; }
  FRAMELANE_BOTH friend bool operator<(const WideInt& a, const WideInt& b) {
    return (a + -b).negative();
  }

 private:
  std::uint64_t words_[kWords];  // the lowest first
};

}  // namespace framelane
