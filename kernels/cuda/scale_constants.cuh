#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <type_traits>

#include "kernels/axis_floats.hpp"
#include "kernels/cuda/scale.cuh"

// The constants of scaling in device memory.

namespace framelane::cuda {

/// The constants of one axis, one behind the other in device memory: numerators, denominators,
/// weights in floats, and first samples.
struct AxisConstants : AxisFloats {
  using AxisFloats::AxisFloats;

  std::size_t bytes() const {
    const std::size_t all = table.numerators().size_bytes() + table.denominators().size_bytes() +
                            std::span(weights).size_bytes() + table.first().size_bytes();
    return (all + 15) / 16 * 16;
  }
  void write(std::uint8_t* to) const {
    const auto put = [&to](auto numbers) {
      std::memcpy(to, numbers.data(), numbers.size_bytes());
      to += numbers.size_bytes();
    };
    put(table.numerators());
    put(table.denominators());
    put(std::span(weights));
    put(table.first());
  }
  /// Where they are, if they begin at `at`.
  AxisView view(const std::uint8_t* at, const float*& floats) const {
    AxisView view{};
    view.taps = table.taps();
    const auto take = [&at](auto& pointer, std::size_t size) {
      pointer = reinterpret_cast<std::remove_reference_t<decltype(pointer)>>(at);
      at += size;
    };
    take(view.numerators, table.numerators().size_bytes());
    take(view.denominators, table.denominators().size_bytes());
    take(floats, std::span(weights).size_bytes());
    take(view.first, table.first().size_bytes());
    return view;
  }
};

struct TermConstants {
  const ScaleTerm& term;
  AxisConstants across, down;

  TermConstants(const ScaleTerm& of, const WholeNumbers& whole)
      : term(of), across(of.across, whole.across), down(of.down, whole.down) {}
  std::size_t bytes() const { return across.bytes() + down.bytes(); }

  ScaleTermView view(const std::uint8_t*& at) const {
    ScaleTermView view{{term.first_channel, term.channels, {}, {}}, nullptr, nullptr};
    view.exact.across = across.view(at, view.across);
    at += across.bytes();
    view.exact.down = down.view(at, view.down);
    at += down.bytes();
    return view;
  }
};

}  // namespace framelane::cuda
