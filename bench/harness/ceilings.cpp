#include "bench/harness/ceilings.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cstring>
#include <memory>

#include "pipeline/frames/host_buffer.hpp"

namespace framelane::bench {
namespace {

/// Memory like that of frames: large pages matter.
struct Copied {
  explicit Copied(std::size_t bytes) : source(bytes), target(bytes) {
    for (std::size_t i = 0; i < bytes; ++i) {
      source.data()[i] = static_cast<std::uint8_t>(i * 2654435761U >> 24);
    }
  }
  HostBuffer source, target;
};

}  // namespace

Contender copying_alone(std::vector<Parameter> parameters, double bytes, std::size_t works) {
  const auto count = static_cast<double>(works);
  const auto half = std::max(static_cast<std::size_t>(count * bytes / 2), std::size_t{1});
  const auto memory = std::make_shared<Copied>(half);
  return {{.name = kCopyingAlone, .parameters = std::move(parameters), .bytes = bytes},
          [=] { std::memset(memory->target.data(), 0, half); },
          // The C library's own, which stores past the caches what they do not hold.
          [=] {
            return milliseconds(
                       [&] { std::memcpy(memory->target.data(), memory->source.data(), half); }) /
                   count;
          },
          [=] { return first_difference(memory->source.data(), memory->target.data(), half); }};
}

std::string beside_copying(const Row& row, const Row& copying) {
  return fmt::format(
      "{:.2f} times what copying as many bytes takes, which one core does at {:.0f} "
      "GB/s",
      row.median() / copying.median(), copying.rate());
}

}  // namespace framelane::bench
