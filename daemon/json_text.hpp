#pragma once

#include <nlohmann/json.hpp>
#include <string>

namespace framelane {

/// An empty text is null.
inline nlohmann::ordered_json text_or_null(const std::string& text) {
  return text.empty() ? nlohmann::ordered_json(nullptr) : nlohmann::ordered_json(text);
}

/// The JSON in one line. Bytes that are no UTF-8, as cameras may send, become U+FFFD.
inline std::string json_text(const nlohmann::ordered_json& json) {
  return json.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
}

}  // namespace framelane
