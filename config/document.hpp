#pragma once

#include <vector>

#include "config/keys.hpp"
#include "config/process_config.hpp"
#include "pipeline/stage/device_choice.hpp"

namespace framelane {

/// The file as a whole. What is for the process is read at once; the feeds are made later from the
/// four nodes, which point into the tree that was read. Null if the file does not have them.
struct Document {
  LogConfig log;
  AdminConfig admin;
  WatchdogConfig watchdog;
  RecorderConfig recorder;
  std::vector<HookConfig> hooks;
  DeviceChoice device;  ///< of feeds that name none
  const Node* limits = nullptr;
  const Node* defaults = nullptr;
  const Node* profiles = nullptr;
  const Node* feeds = nullptr;
};

const Section<Document>& document_keys();

/// The layer of keys that `limits` is short for, which lies under the defaults: input.limits and
/// input.protocols. Each value keeps its place and its path.
Node layer_of_limits(const Node& limits);

}  // namespace framelane
