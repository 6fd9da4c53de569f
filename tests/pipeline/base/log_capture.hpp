#pragma once

#include <spdlog/sinks/ostream_sink.h>
#include <spdlog/spdlog.h>

#include <memory>
#include <sstream>
#include <string>
#include <string_view>
#include <utility>

namespace framelane::testing {

/// Captures everything that is logged while this object exists.
class LogCapture {
 public:
  LogCapture()
      : sink_(std::make_shared<spdlog::sinks::ostream_sink_mt>(text_)),
        logger_(std::make_shared<spdlog::logger>("captured", sink_)),
        before_(spdlog::default_logger()) {
    logger_->set_level(spdlog::level::info);
    spdlog::set_default_logger(logger_);
  }
  ~LogCapture() { spdlog::set_default_logger(before_); }
  LogCapture(const LogCapture&) = delete;
  LogCapture& operator=(const LogCapture&) = delete;

  /// How often `what` was logged. No other thread may log during the call.
  std::size_t count(std::string_view what) const {
    const std::string text = text_.str();
    std::size_t found = 0;
    for (std::size_t at = 0; (at = text.find(what, at)) != std::string::npos; at += what.size()) {
      ++found;
    }
    return found;
  }

 private:
  std::ostringstream text_;
  std::shared_ptr<spdlog::sinks::sink> sink_;
  std::shared_ptr<spdlog::logger> logger_;
  std::shared_ptr<spdlog::logger> before_;
};

}  // namespace framelane::testing
