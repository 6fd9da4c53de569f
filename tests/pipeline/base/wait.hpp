#pragma once

#include <functional>

namespace framelane::testing {

/// Waits until another thread has made the condition true. Returns false after a minute.
bool comes_true(const std::function<bool()>& condition);

}  // namespace framelane::testing
