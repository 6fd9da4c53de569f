#pragma once

#include <memory>
#include <utility>
#include <vector>

#include "daemon/device_set.hpp"

namespace framelane::testing {

/// All feeds run on this device, which need not be a CPU.
inline std::shared_ptr<DeviceSet> one_device(std::shared_ptr<Device> device) {
  return std::make_shared<DeviceSet>(DeviceChoice{}, std::vector<std::shared_ptr<Device>>{},
                                     std::move(device));
}

}  // namespace framelane::testing
