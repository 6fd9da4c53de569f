#include "pipeline/output/rotation.hpp"

#include <utility>

namespace framelane {

Rotation::Rotation(const std::string& path, std::optional<std::chrono::milliseconds> segment)
    : pattern_(path), segment_(segment) {}

bool Rotation::cuts_at(std::chrono::microseconds age) const {
  return segment_ && age + kCutTolerance >= *segment_;
}

PartFile Rotation::begin_file(std::chrono::system_clock::time_point start, Existing existing) {
  std::string name = pattern_.name_at(start);
  const int first_number = name == last_name_ ? last_number_ + 1 : 1;
  PartFile file = PartFile::create(name, first_number, existing);
  last_name_ = std::move(name);
  last_number_ = file.number();
  return file;
}

}  // namespace framelane
