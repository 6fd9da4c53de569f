#pragma once

#include <string>
#include <vector>

namespace framelane::bench {

/// Runs `program` to its end, with `variable` ("NAME=VALUE") in its environment, and gives what it
/// writes to descriptor 3 (/dev/fd/3). Its standard output goes nowhere, its standard error is this
/// process's own, and a Ctrl-C reaches both. Throws std::runtime_error when it cannot be started or
/// writes nothing.
std::string output_of_child(const std::string& program, const std::vector<std::string>& arguments,
                            const std::string& variable);

}  // namespace framelane::bench
