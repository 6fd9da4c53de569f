#include "config/output_places.hpp"

#include <cstddef>
#include <utility>

namespace framelane {

const std::string& OutputPlaces::take(const std::string& place, const std::string& output) {
  return taken_.emplace(place, output).first->second;
}

void OutputPlaces::add(Files files) {
  std::string start(files.pattern.literal_start());
  files_.emplace(std::move(start), std::move(files));
}

std::vector<const OutputPlaces::Files*> OutputPlaces::near(const FilePattern& pattern) const {
  const std::string_view start = pattern.literal_start();
  std::vector<const Files*> found;
  for (std::size_t length = 0; length < start.size(); ++length) {
    const auto [begin, end] = files_.equal_range(start.substr(0, length));
    for (auto it = begin; it != end; ++it) found.push_back(&it->second);
  }
  const auto begins_alike = [&](auto it) {
    return it != files_.end() && it->first.starts_with(start);
  };
  for (auto it = files_.lower_bound(start); begins_alike(it); ++it) found.push_back(&it->second);
  return found;
}

}  // namespace framelane
