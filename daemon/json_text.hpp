#pragma once

#include <nlohmann/json.hpp>
#include <string>

namespace framelane {

/// An empty text is null.
inline nlohmann::ordered_json text_or_null(const std::string& text) {
  return text.empty() ? nlohmann::ordered_json(nullptr) : nlohmann::ordered_json(text);
}

}  // namespace framelane
