#pragma once

#include <optional>
#include <string>

#include "pipeline/base/failure.hpp"

namespace framelane {

/// FFmpeg's text for an error code.
std::string av_error_text(int error);

/// True for the errors of an open that no later try mends.
bool is_configuration_error(int error);

/// True if an open or a read failed because threads or memory are short: no configuration is at
/// fault, and a later try may do. The libraries behind FFmpeg do not report that. After an error
/// that may mean anything, this function therefore looks whether threads can be started.
bool is_shortage(int error);
/// What is short and what to do; also for file descriptors, and for more memory in one piece than
/// we allow FFmpeg. Nothing if nothing is.
std::optional<std::string> shortage_of(int error);

/// What kind of fault an FFmpeg error code of an open, read or write stands for.
IoFault io_fault_from_averror(int error);
/// The same for a file or device of this machine: what the system denies there is no failed login.
IoFault file_fault_from_averror(int error);

}  // namespace framelane
