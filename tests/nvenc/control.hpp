#pragma once

/// Steers and observes the stand-in libnvidia-encode.so.1 (encode_api.cpp), which FFmpeg's
/// h264_nvenc drives. It writes H.264 in which every macroblock is stored as it is (I_PCM), so that
/// what a decoder gives back is, byte for byte, what the encoder was handed. It reads a frame in
/// the order of the stream that FFmpeg gave it. Any thread may call.
namespace framelane::fake_nvenc {

/// No session, no failure to come, no limit.
void reset();
/// How many sessions may be open at once; a GPU for consumers has a limit of some.
void limit_sessions(int most);
/// Makes the n-th frame from now (1: the next) fail. `no_session_after`: from then on no further
/// session is allowed.
void fail_frame(int n, bool no_session_after = false);
/// From now on calls that wait for an encoded frame do not return, until release().
void hold();
void release();
/// Sessions that are open.
int sessions();
/// Frames that were encoded from memory of the GPU, and from memory of NVENC's own that FFmpeg has
/// copied them to, since reset().
int gpu_frames();
int copied_frames();

}  // namespace framelane::fake_nvenc
