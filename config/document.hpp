#pragma once

#include "config/keys.hpp"

namespace framelane {

/// The file as a whole: what is read at once, and the parts that feeds are made of.
struct Document {
  LogConfig log;
  AdminConfig admin;
  DeviceConfig device;
  const Node* defaults = nullptr;
  const Node* profiles = nullptr;
  const Node* feeds = nullptr;
};

const Section<Document>& document_keys();

}  // namespace framelane
