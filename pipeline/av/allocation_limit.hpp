#pragma once

#include <cstdint>  // FFmpeg's headers need it

extern "C" {
#include <libavcodec/codec_id.h>
}

namespace framelane {

/// Lets FFmpeg allocate no more than this process needs for pictures of `pixels`, in one piece: 4
/// bytes for each pixel, and 256 MiB in any case. Otherwise a few bytes from the network could ask
/// for 2 GB, for instance where a header is compressed. The largest picture that was ever allowed
/// counts, in the whole process. Any thread.
///
/// 4 bytes a pixel is what packed formats of 8 bits need, and a plane of 32 bits. 256 MiB is a
/// picture of 7680x4320 with 8 bytes a pixel; the largest packet that a camera or an encoder sends
/// is a small part of that. Frames that lie in our own pools are not limited by this.
void allow_av_pictures(std::int64_t pixels);

/// Lets FFmpeg allocate what the encoder needs for a packet, if that is more: encoders allocate the
/// longest packet that could come of a picture. To be called before the encoder is opened. Any
/// thread.
void allow_av_encoder(AVCodecID codec, std::int64_t pixels);

/// True if what FFmpeg allocates in one piece is limited by allow_av_pictures(): then "no memory"
/// may also mean that it asked for more. FFmpeg does not tell the two apart. Any thread.
bool limits_av_allocations();

}  // namespace framelane
