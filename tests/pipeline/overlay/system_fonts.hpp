#pragma once

#include <fontconfig/fontconfig.h>

#include <cstdlib>
#include <fstream>
#include <string>

#include "tests/pipeline/source/media_files.hpp"

namespace framelane::testing {

/// The fonts of this system while this lives: those that a configuration of fontconfig names.
class SystemFonts {
 public:
  /// What stands inside <fontconfig>.
  explicit SystemFonts(const std::string& xml) {
    // Pango takes the rules for "sans" from what fontconfig read first in this process.
    FcInit();
    const std::string file = folder_ / "fonts.conf";
    std::ofstream(file) << "<?xml version=\"1.0\"?><fontconfig>" << xml << "</fontconfig>\n";
    setenv("FONTCONFIG_FILE", file.c_str(), 1);
  }
  ~SystemFonts() { unsetenv("FONTCONFIG_FILE"); }
  SystemFonts(const SystemFonts&) = delete;
  SystemFonts& operator=(const SystemFonts&) = delete;

 private:
  const TempFolder folder_;
};

}  // namespace framelane::testing
