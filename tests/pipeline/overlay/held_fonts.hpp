#pragma once

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <string>

#include "tests/pipeline/overlay/system_fonts.hpp"
#include "tests/pipeline/source/media_files.hpp"

namespace framelane::testing {

/// The system's fonts while this lives: one font, in a folder that can be made to hang. A file of
/// it is then a FIFO, and opening that waits, as a call on a dead file server would.
class HeldFonts {
 public:
  HeldFonts() {
    std::filesystem::create_directory(folder_ / "fonts");
    std::filesystem::copy_file(kFont, font_);
  }
  ~HeldFonts() {
    release();
    if (writer_ >= 0) close(writer_);
  }
  HeldFonts(const HeldFonts&) = delete;
  HeldFonts& operator=(const HeldFonts&) = delete;

  /// Looking for fonts hangs.
  void hold() { put_fifo(folder_ / "fonts/held.ttf"); }
  /// Reading the font hangs; finding it does not, if it has been found before: fontconfig's cache
  /// is valid as long as the folder has the same time.
  void hold_font() {
    const std::filesystem::path fonts = folder_ / "fonts";
    const auto time = std::filesystem::last_write_time(fonts);
    std::filesystem::remove(font_);
    put_fifo(font_);
    std::filesystem::last_write_time(fonts, time);
  }
  /// What hangs goes on, and nothing hangs any more.
  void release() {
    if (fifo_.empty()) return;
    writer_ = open(fifo_.c_str(), O_RDWR | O_NONBLOCK | O_CLOEXEC);
    std::filesystem::remove(fifo_);
    fifo_.clear();
    if (!std::filesystem::exists(font_)) std::filesystem::copy_file(kFont, font_);
  }

 private:
  static constexpr char kFont[] = "/usr/share/fonts/truetype/dejavu/DejaVuSans.ttf";

  void put_fifo(const std::string& file) {
    fifo_ = file;
    EXPECT_EQ(mkfifo(fifo_.c_str(), 0600), 0);
  }

  const TempFolder folder_;
  const SystemFonts fonts_{"<include>/etc/fonts/conf.d</include><dir>" + (folder_ / "fonts") +
                           "</dir><cachedir>" + (folder_ / "cache") + "</cachedir>"};
  const std::string font_ = folder_ / "fonts/DejaVuSans.ttf";
  std::string fifo_;
  int writer_ = -1;
};

}  // namespace framelane::testing
