#include "tests/pipeline/base/log_capture.hpp"

#include <spdlog/sinks/ostream_sink.h>
#include <spdlog/spdlog.h>

#include <sstream>
#include <string>

namespace framelane::testing {

struct LogCapture::Log {
  std::ostringstream text;
  std::shared_ptr<spdlog::logger> before = spdlog::default_logger();
};

LogCapture::LogCapture() : log_(std::make_unique<Log>()) {
  const auto logger = std::make_shared<spdlog::logger>(
      "captured", std::make_shared<spdlog::sinks::ostream_sink_mt>(log_->text));
  logger->set_level(spdlog::level::info);
  spdlog::set_default_logger(logger);
}

LogCapture::~LogCapture() { spdlog::set_default_logger(log_->before); }

std::size_t LogCapture::count(std::string_view what) const {
  const std::string text = log_->text.str();
  std::size_t found = 0;
  for (std::size_t at = 0; (at = text.find(what, at)) != std::string::npos; at += what.size()) {
    ++found;
  }
  return found;
}

}  // namespace framelane::testing
