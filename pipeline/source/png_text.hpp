#pragma once

extern "C" {
#include <libavcodec/packet.h>
}

namespace framelane {

/// Takes out of a PNG file what FFmpeg's decoder would unpack without a limit and framelane does
/// not use: texts (tEXt, zTXt, iTXt) and the colour profile (iCCP). A profile of some kilobytes may
/// unpack to gigabytes. Throws
/// std::bad_alloc. W3C PNG (third edition), 5.3 and 11.3.
void drop_png_texts(AVPacket& packet);

}  // namespace framelane
