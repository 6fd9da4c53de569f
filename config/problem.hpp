#pragma once

#include <string>

namespace framelane {

/// One thing that is wrong with a configuration. Printed as FILE:LINE:COLUMN: key.path: message.
struct Problem {
  std::string file;
  int line = 1;     ///< from 1; 0: the place is not known, and is not printed
  int column = 1;   ///< from 1, in bytes
  std::string key;  ///< "feeds.gate.input.url"; empty for syntax errors
  std::string message;
};
std::string to_string(const Problem& problem);

}  // namespace framelane
