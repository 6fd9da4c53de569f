#include "pipeline/output/name_shape.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <utility>

namespace framelane {
namespace {

struct Numbers {
  int least;
  int most;
};

struct Field {
  char letter;
  /// What strftime writes: d is a digit, w a weekday's digit, s a sign, + one digit or more; all
  /// else stands for itself.
  std::string_view writes;
  /// What each run of d can be.
  std::array<Numbers, 3> numbers{};
};
constexpr Numbers kYear{0, 9999};
constexpr Numbers kMonth{1, 12};
constexpr Numbers kDay{1, 31};
constexpr Numbers kHour{0, 23};
constexpr Numbers kMinute{0, 59};
constexpr Numbers kSecond{0, 60};
constexpr std::array<Field, 17> kFields{{{'Y', "dddd", {kYear}},
                                         {'y', "dd", {{{0, 99}}}},
                                         {'m', "dd", {kMonth}},
                                         {'d', "dd", {kDay}},
                                         {'H', "dd", {kHour}},
                                         {'I', "dd", {{{1, 12}}}},
                                         {'M', "dd", {kMinute}},
                                         {'S', "dd", {kSecond}},
                                         {'j', "ddd", {{{1, 366}}}},
                                         {'V', "dd", {{{1, 53}}}},
                                         {'u', "w"},
                                         {'s', "+"},
                                         {'F', "dddd-dd-dd", {kYear, kMonth, kDay}},
                                         {'T', "dd:dd:dd", {kHour, kMinute, kSecond}},
                                         {'R', "dd:dd", {kHour, kMinute}},
                                         {'z', "sdddd", {{{0, 2459}}}},
                                         {'%', "%"}}};

const Field* find_field(char letter) {
  const auto* const field = std::ranges::find(kFields, letter, &Field::letter);
  return field == kFields.end() ? nullptr : field;
}

bool is_digit(char c) { return c >= '0' && c <= '9'; }

}  // namespace

bool NameShape::has_field(char letter) { return find_field(letter) != nullptr; }

std::string NameShape::known_fields() {
  std::string known;
  for (const Field& field : kFields) {
    known += std::string(known.empty() ? "%" : ", %") + field.letter;
  }
  return known;
}

NameShape::NameShape(std::string_view pattern) {
  for (std::size_t i = 0; i < pattern.size(); ++i) {
    if (pattern[i] != '%') {
      steps_.push_back({Kind::kLiteral, pattern[i]});
      continue;
    }
    const char letter = pattern[++i];
    varies_ |= letter != '%';
    const Field& field = *find_field(letter);
    const Numbers* numbers = field.numbers.data();
    int digits = 0;
    for (std::size_t at = 0; at < field.writes.size(); ++at) {
      const char c = field.writes[at];
      const Kind kind = c == 'd'   ? Kind::kDigit
                        : c == 'w' ? Kind::kWeekday
                        : c == 's' ? Kind::kSign
                        : c == '+' ? Kind::kDigits
                                   : Kind::kLiteral;
      steps_.push_back({kind, c});
      if (kind != Kind::kDigit) continue;
      ++digits;
      if (field.writes.substr(at + 1).starts_with('d')) continue;
      Step& last = steps_.back();
      last.digits = std::exchange(digits, 0);
      last.least = numbers->least;
      last.most = numbers->most;
      ++numbers;
    }
  }
}

bool NameShape::takes(const Step& step, char c) {
  switch (step.kind) {
    case Kind::kLiteral:
      return c == step.literal;
    case Kind::kWeekday:
      return c >= '1' && c <= '7';
    case Kind::kSign:
      return c == '+' || c == '-';
    case Kind::kDigit:
    case Kind::kDigits:
      return is_digit(c);
  }
  return false;
}

bool NameShape::takes(const Step& step, std::string_view name, std::size_t at) {
  if (!takes(step, name[at])) return false;
  if (step.digits == 0) return true;
  int number = 0;
  for (const char digit : name.substr(at + 1 - static_cast<std::size_t>(step.digits),
                                      static_cast<std::size_t>(step.digits))) {
    number = number * 10 + (digit - '0');
  }
  return step.least <= number && number <= step.most;
}

bool NameShape::overlap(const Step& a, const Step& b) {
  if (a.kind == Kind::kLiteral) return takes(b, a.literal);
  if (b.kind == Kind::kLiteral) return takes(a, b.literal);
  return (a.kind == Kind::kSign) == (b.kind == Kind::kSign);
}

bool NameShape::meets(const NameShape& other) const {
  const std::size_t ends = other.steps_.size() + 1;
  // [i * ends + j]: after some characters, this takes the next one with its step i, and the other
  // one with its step j.
  std::vector<bool> reached((steps_.size() + 1) * ends);
  reached.front() = true;
  for (std::size_t i = 0; i < steps_.size(); ++i) {
    for (std::size_t j = 0; j < other.steps_.size(); ++j) {
      const std::size_t at = i * ends + j;
      if (!reached[at] || !overlap(steps_[i], other.steps_[j])) continue;
      reached[at + ends + 1] = true;
      if (steps_[i].kind == Kind::kDigits) reached[at + 1] = true;
      if (other.steps_[j].kind == Kind::kDigits) reached[at + ends] = true;
    }
  }
  return reached.back();
}

bool NameShape::fits(std::string_view name) const {
  std::size_t begin = 0;
  for (; begin < steps_.size() && steps_[begin].kind != Kind::kDigits; ++begin) {
    if (begin == name.size() || !takes(steps_[begin], name, begin)) return false;
  }
  if (begin == steps_.size()) return begin == name.size();
  // The steps that may take the next character, in their order. There are several only after a run
  // of digits, which may go on or be at its end.
  std::vector<std::size_t> places{begin};
  std::vector<std::size_t> next;
  const auto add = [&next](std::size_t place) {
    if (next.empty() || next.back() != place) next.push_back(place);
  };
  for (std::size_t at = begin; at < name.size(); ++at) {
    next.clear();
    for (const std::size_t place : places) {
      if (place == steps_.size() || !takes(steps_[place], name, at)) continue;
      if (steps_[place].kind == Kind::kDigits) add(place);
      add(place + 1);
    }
    if (next.empty()) return false;
    std::swap(places, next);
  }
  return places.back() == steps_.size();
}

}  // namespace framelane
