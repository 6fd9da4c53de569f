#include "pipeline/base/standard_output.hpp"

#include <cstdio>

namespace framelane {

bool finish_standard_output(const char* program) {
  if (std::fflush(stdout) == 0 && std::ferror(stdout) == 0) return true;
  std::fprintf(stderr, "%s: not everything could be written to the standard output\n", program);
  return false;
}

}  // namespace framelane
