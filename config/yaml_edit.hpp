#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace framelane {

/// A scalar to be set in a configuration: {"defaults", "lanes"} to "3".
struct YamlEdit {
  std::vector<std::string> path;
  std::string value;  ///< a word or a number, as it is to stand there
};

/// `text` with these values in it: replaced where they stand, otherwise inserted beside `lanes`,
/// `ring` or `slices`, or at the beginning of the map that they belong to, which is made where it
/// is missing at the top. Comments, order, line ends and everything else stay as they are, and the
/// result is parsed to see that nothing but these values has changed. Requires a text that parses.
/// Nothing, with the reason in `why` ("defaults.lanes: …"), where that cannot be done.
std::optional<std::string> edit_yaml(std::string_view text, std::span<const YamlEdit> edits,
                                     std::string& why);

}  // namespace framelane
