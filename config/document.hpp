#pragma once

#include "config/keys.hpp"
#include "config/process_config.hpp"
#include "pipeline/stage/device_choice.hpp"

namespace framelane {

/// The file as a whole. What is for the process is read at once; the feeds are made later from the
/// three nodes, which point into the tree that was read. Null if the file does not have them.
struct Document {
  LogConfig log;
  AdminConfig admin;
  WatchdogConfig watchdog;
  RecorderConfig recorder;
  DeviceChoice device;  ///< of feeds that name none
  const Node* defaults = nullptr;
  const Node* profiles = nullptr;
  const Node* feeds = nullptr;
};

const Section<Document>& document_keys();

}  // namespace framelane
