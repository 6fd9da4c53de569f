#pragma once

#include <optional>
#include <string>

namespace framelane {

/// The device that a feed asks for: auto | cpu | cuda | cuda:N.
struct DeviceChoice {
  /// kAuto: a GPU, or the CPU if there is none that can be used.
  enum class Kind { kAuto, kCpu, kCuda } kind = Kind::kAuto;
  std::optional<int> gpu{};  ///< of kCuda; empty: any one GPU

  friend bool operator==(const DeviceChoice&, const DeviceChoice&) = default;
};

/// The name of the GPU with this number.
inline std::string gpu_name(int number) { return "cuda:" + std::to_string(number); }

}  // namespace framelane
