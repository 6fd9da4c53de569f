#include "config/raw_formats.hpp"

extern "C" {
#include <libavutil/pixdesc.h>
}

#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "pipeline/av/av_color.hpp"

namespace framelane {
namespace {

// The table in config/raw_formats.cpp must agree with layout_of, which the pipeline uses.
TEST(RawFormatsTest, EachHasTheLayoutThatItsFramesAreTakenFor) {
  for (const std::string_view name : raw_format_names()) {
    const AVPixelFormat format = av_get_pix_fmt(std::string(name).c_str());
    ASSERT_NE(format, AV_PIX_FMT_NONE) << name;
    ASSERT_TRUE(layout_of(format)) << name;
    EXPECT_EQ(raw_format_layout(name), layout_of(format)) << name;
  }
}

TEST(RawFormatsTest, AreAllWhoseFramesHaveALayout) {
  const auto names = raw_format_names();
  for (const AVPixFmtDescriptor* format = nullptr;
       (format = av_pix_fmt_desc_next(format)) != nullptr;) {
    const bool ours = layout_of(av_pix_fmt_desc_get_id(format)).has_value();
    EXPECT_EQ(std::ranges::find(names, format->name) != names.end(), ours) << format->name;
  }
}

}  // namespace
}  // namespace framelane
