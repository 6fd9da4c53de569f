#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>

namespace framelane {

/// A recording's file that has its final name and does not change any more.
struct CompletedFile {
  using Time = std::chrono::system_clock::time_point;

  std::string feed;
  std::string output;
  std::string path;           ///< absolute
  std::optional<Time> begin;  ///< when its first picture was taken; nothing: it is not known
  std::optional<Time> end;    ///< when its last one ends; likewise
  std::uint64_t bytes = 0;
};

/// Is told of each one, on its output's thread. Must not block. May be empty.
using OnCompletedFile = std::function<void(const CompletedFile&)>;

}  // namespace framelane
