#pragma once

#include <exception>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>

#include "pipeline/base/labels.hpp"

namespace framelane {

/// A failure of a restart domain (ARCHITECTURE.md). The message is one sentence for an operator:
/// what happened, where, and what to do. The code decides what follows and which counter rises.
/// Thrown inside a domain, caught once at the top of its thread. Never holds a secret.
template <typename Code>
class TypedError : public std::runtime_error {
 public:
  TypedError(Code code, const std::string& message) : std::runtime_error(message), code_(code) {}
  Code code() const { return code_; }

 private:
  Code code_;
};

/// A source or an output lost its peer, its file or its data. It opens again by itself.
using IoError = TypedError<IoFault>;
/// The feed cannot go on as it is. The supervisor restarts it, unless the fault is final.
using FeedError = TypedError<FeedFault>;

/// A fault's name in the log: as in the metrics, or "configuration" or "source".
std::string_view fault_code(IoFault fault);
std::string_view fault_code(FeedFault fault);
std::string_view fault_code(RetentionFault fault);
/// The name of the code of an IoError or a FeedError; empty for other errors.
std::string_view fault_code(const std::exception& error);

/// What an errno value from an open, a read or a write means for a source or an output. A file that
/// may not be touched is no failed login.
IoFault io_fault_from_errno(int error);

/// What to do where threads or memory are short.
inline constexpr char kShortageRemedy[] =
    "raise TasksMax= or MemoryMax= of the service, or ulimit -u and -v";
/// Says that threads or memory are short, by what this shows, and what to do.
std::string shortage_text(const std::string& cause);
/// The same for file descriptors, by an errno value. Nothing unless this process or the system has
/// none left.
std::optional<std::string> descriptor_shortage_text(int error);

}  // namespace framelane
