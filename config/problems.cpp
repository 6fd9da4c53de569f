#include "config/problems.hpp"

#include <algorithm>
#include <tuple>
#include <utility>

#include "pipeline/base/redact.hpp"

namespace framelane {
namespace {

/// How many letters must be added, removed, replaced or swapped with their neighbour to make `b` of
/// `a` (optimal string alignment distance).
std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j) row[j] = j;
  std::vector<std::size_t> above, two_above;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    two_above = std::exchange(above, row);
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t replaced = above[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1);
      row[j] = std::min({replaced, above[j] + 1, row[j - 1] + 1});
      const bool swapped = i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1];
      if (swapped) row[j] = std::min(row[j], two_above[j - 2] + 1);
    }
  }
  return row[b.size()];
}

}  // namespace

std::string to_string(const Problem& problem) {
  std::string line = problem.file + ":";
  if (problem.line > 0) {
    line += std::to_string(problem.line) + ":" + std::to_string(problem.column) + ":";
  }
  line += " ";
  if (!problem.key.empty()) line += problem.key + ": ";
  return line + problem.message;
}

int Problems::add_file(std::string file) {
  files_.push_back(std::move(file));
  return static_cast<int>(files_.size()) - 1;
}

void Problems::add(Position position, std::string key, std::string message) {
  problems_.push_back({position.file,
                       {files_[static_cast<std::size_t>(position.file)], position.line,
                        position.column, std::move(key), std::move(message)}});
}

void Problems::add_all(int file, Problems of_file) {
  for (Problem& problem : of_file.take()) problems_.push_back({file, std::move(problem)});
}

void Problems::add_missing(const Node& map, std::string_view missing, const std::string& message) {
  add(map.key_position, map.path + "." + std::string(missing), "is missing; " + message);
}

std::vector<Problem> Problems::take() {
  for (Found& found : problems_) {
    // Messages contain no secrets, but a key may: a URL in the place of a key.
    found.problem.key = redact(found.problem.key);
    found.problem.message = redact(found.problem.message);
  }
  // Values of the defaults are read again for every feed, so the same problem may come many times.
  const auto order = [](const Found& found) {
    const Problem& p = found.problem;
    return std::tie(found.file, p.line, p.column, p.key, p.message);
  };
  std::ranges::sort(problems_, {}, order);
  const auto copies = std::ranges::unique(problems_, {}, order);
  problems_.erase(copies.begin(), copies.end());
  std::vector<Problem> result;
  for (Found& found : std::exchange(problems_, {})) result.push_back(std::move(found.problem));
  return result;
}

std::string_view nearest(std::string_view word, std::span<const std::string_view> known) {
  std::string_view best;
  // Two mistakes in a long word, one in a short one. With more, the guess would mislead.
  std::size_t limit = word.size() < 4 ? 1 : 2;
  if (word.size() > 64) return best;
  for (const std::string_view candidate : known) {
    const std::size_t distance = edit_distance(word, candidate);
    if (distance > limit || (!best.empty() && distance == limit)) continue;
    best = candidate;
    limit = distance;
  }
  return best;
}

std::string join(std::span<const std::string_view> words) {
  std::string text;
  for (const std::string_view word : words) {
    if (!text.empty()) text += ", ";
    text += word;
  }
  return text;
}

std::string in_quotes(std::string_view text) {
  constexpr std::size_t kLongest = 40;
  // Redacts before it shortens: half a URL does not show where its password ends.
  std::string shown = redact(text);
  const bool too_long = shown.size() > kLongest;
  if (too_long) {
    std::size_t end = kLongest;
    while (end > 0 && (static_cast<unsigned char>(shown[end]) & 0xc0U) == 0x80U) --end;
    shown.resize(end);  // between two UTF-8 characters
  }
  for (char& c : shown) {
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) c = '?';
  }
  return '"' + shown + (too_long ? "...\"" : "\"");
}

}  // namespace framelane
