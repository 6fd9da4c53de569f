#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "daemon/incidents.hpp"

namespace framelane {

/// The incident as the API gives it, and as it is kept: a JSON object on one line.
std::string incident_json(const Incident& incident);
/// Nothing if the text is no such object.
std::optional<Incident> parse_incident(std::string_view json);

}  // namespace framelane
