#pragma once

extern "C" {
#include <libavcodec/avcodec.h>
}

#include <memory>
#include <string>
#include <string_view>

#include "pipeline/base/av_option.hpp"
#include "pipeline/encode/encode_options.hpp"

namespace framelane {

// What is special about FFmpeg's encoders on NVIDIA's GPUs: h264_nvenc, hevc_nvenc, av1_nvenc. GPUs
// have the names of their devices, "cuda:N".

bool is_nvenc(const CodecCandidate& candidate);
/// True for the option that says on which GPU an NVENC encoder runs.
bool chooses_gpu(const CodecCandidate& candidate, const AvOption& option);
/// Where an NVENC encoder runs. Without the option `gpu` NVENC begins with the first GPU. Empty for
/// other encoders.
std::string gpu_of(const CodecCandidate& candidate);
/// Makes an NVENC candidate use the GPU `device`. Changes nothing if the candidate's options name a
/// GPU, for other encoders, and for the CPU.
CodecCandidate choose_gpu(CodecCandidate candidate, std::string_view device);
/// NVENC holds frames back by default, until it has as many as it has surfaces. A live feed does
/// not wait.
void release_at_once(CodecCandidate& candidate);

/// An encoder's session on a GPU, counted while this lives. Of all processes together, a driver
/// allows only so many, unless the GPU is one for servers.
class NvencSession {
 public:
  NvencSession() = default;
  /// `gpu`: gpu_of; empty: no session.
  explicit NvencSession(std::string gpu);
  NvencSession(NvencSession&& other) noexcept;
  NvencSession& operator=(NvencSession&& other) noexcept;
  ~NvencSession() { end(); }

  /// Those that this process has on the GPU. Any thread.
  static int count(std::string_view gpu);
  /// True if FFmpeg reports this because the driver allows no further session.
  static bool refused(std::string_view error);
  /// The driver has allowed none on this GPU.
  static void note_refusal(const std::string& gpu);
  /// True for a minute after a refusal, unless a session of this process has ended there since.
  static bool lacking(std::string_view gpu);

 private:
  void end() noexcept;
  std::string gpu_;
};

/// Closes an encoder, and then ends its session.
struct CloseEncoder {
  NvencSession session;
  void operator()(AVCodecContext* encoder) {
    avcodec_free_context(&encoder);
    session = {};
  }
};
/// An encoder that is open, of NVENC or another one.
using EncoderPtr = std::unique_ptr<AVCodecContext, CloseEncoder>;

}  // namespace framelane
