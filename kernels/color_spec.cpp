#include "kernels/color_spec.hpp"

#include <array>
#include <cstddef>

namespace framelane {
namespace {

constexpr std::array<std::string_view, 4> kMatrixNames = {"rgb", "bt601", "bt709", "bt2020"};
constexpr std::array<std::string_view, 2> kRangeNames = {"limited", "full"};
constexpr std::array<std::string_view, 3> kSitingNames = {"left", "center", "topleft"};

template <typename Enum, std::size_t kCount>
std::string_view name_of(Enum value, const std::array<std::string_view, kCount>& names) {
  return names[static_cast<std::size_t>(value)];
}

template <typename Enum, std::size_t kCount>
std::optional<Enum> find_name(std::string_view name,
                              const std::array<std::string_view, kCount>& names) {
  for (std::size_t i = 0; i < kCount; ++i) {
    if (names[i] == name) return static_cast<Enum>(i);
  }
  return std::nullopt;
}

}  // namespace

std::string_view to_string(Matrix matrix) { return name_of(matrix, kMatrixNames); }
std::string_view to_string(Range range) { return name_of(range, kRangeNames); }
std::string_view to_string(Siting siting) { return name_of(siting, kSitingNames); }

std::optional<Matrix> matrix_from_name(std::string_view name) {
  return find_name<Matrix>(name, kMatrixNames);
}

std::optional<Range> range_from_name(std::string_view name) {
  return find_name<Range>(name, kRangeNames);
}

std::optional<Siting> siting_from_name(std::string_view name) {
  return find_name<Siting>(name, kSitingNames);
}

std::string describe(const ColorSpec& color) {
  std::string text;
  for (const std::string_view part :
       {to_string(color.matrix), to_string(color.range), to_string(color.siting)}) {
    if (!text.empty()) text += ' ';
    text += part;
  }
  return text;
}

}  // namespace framelane
