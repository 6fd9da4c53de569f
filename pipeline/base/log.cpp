#include "pipeline/base/log.hpp"

#include <spdlog/spdlog.h>

#include <array>
#include <cstddef>

namespace framelane::log {
namespace {

thread_local Fault t_fault;

}  // namespace

void write(Level level, fmt::string_view format, fmt::format_args arguments) {
  constexpr std::array kLevels{spdlog::level::debug, spdlog::level::info, spdlog::level::warn,
                               spdlog::level::err};
  const spdlog::level::level_enum at = kLevels[static_cast<std::size_t>(level)];
  spdlog::logger& logger = *spdlog::default_logger_raw();
  if (logger.should_log(at)) logger.log(at, fmt::vformat(format, arguments));
}

FaultScope::FaultScope(std::string_view code, std::string_view reason) { t_fault = {code, reason}; }

FaultScope::~FaultScope() { t_fault = {}; }

Fault present_fault() { return t_fault; }

}  // namespace framelane::log
