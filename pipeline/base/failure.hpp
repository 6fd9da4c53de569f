#pragma once

#include <stdexcept>
#include <string>
#include <string_view>

#include "pipeline/base/labels.hpp"

namespace framelane {

/// A failure of a restart domain: what happened, where and what to do, as one sentence for the
/// person who reads it, plus the code that decides what follows and which counter it goes to.
/// Thrown inside a domain, caught once at the top of its thread. Never carries a secret.
template <typename Code>
class TypedError : public std::runtime_error {
 public:
  TypedError(Code code, const std::string& message) : std::runtime_error(message), code_(code) {}
  Code code() const { return code_; }

 private:
  Code code_;
};

/// A source or an output lost its peer, its file or its data; its own domain reconnects.
using IoError = TypedError<IoFault>;
/// The feed cannot go on as it is; the supervisor restarts it (kConfiguration: it does not).
using FeedError = TypedError<FeedFault>;

/// The IoFault that an errno value of an open, read or write stands for.
IoFault io_fault_from_errno(int error);

}  // namespace framelane
