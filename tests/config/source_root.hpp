#pragma once

#include <filesystem>

namespace framelane::test {

/// The folder of the checkout.
inline std::filesystem::path source_root() {
  return std::filesystem::path(FRAMELANE_TEST_DATA).parent_path().parent_path();
}

}  // namespace framelane::test
