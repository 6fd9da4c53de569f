#pragma once

#include <array>
#include <cstddef>
#include <string_view>

namespace framelane {

// Every fixed set of metric label values, in one place: an enumerator's value is the index of its
// name. The names are the public contract.

enum class DropReason { kRingFull, kEncoder, kDeviceLost, kFeedFailed, kStop, kReload };
inline constexpr std::array<std::string_view, 6> kDropReasonNames{
    "ring_full", "encoder", "device_lost", "feed_failed", "stop", "reload"};

enum class DecodeFault { kCorrupt, kUnsupported, kTruncated };
inline constexpr std::array<std::string_view, 3> kDecodeFaultNames{"corrupt", "unsupported",
                                                                   "truncated"};

/// Where a frame spends its time. kWait: for a place in the ring; kEncode: sent to packet,
/// lookahead included; kMux: packet queued to written.
enum class StageStep { kDecode, kWait, kH2d, kKernel, kD2h, kEncode, kMux };
inline constexpr std::array<std::string_view, 7> kStageStepNames{
    "decode", "wait", "h2d", "kernel", "d2h", "encode", "mux"};

/// What a device works with side by side: copies to it, conversions, copies back. The CPU has only
/// kKernel.
enum class Engine { kH2d, kKernel, kD2h };
inline constexpr std::array<std::string_view, 3> kEngineNames{"h2d", "kernel", "d2h"};

enum class TimestampRepair { kJump, kBackward, kWrap, kMissing };
inline constexpr std::array<std::string_view, 4> kTimestampRepairNames{"jump", "backward", "wrap",
                                                                       "missing"};

/// Why pixels were copied on the host. kFormat: by swscale; kDecoder: the decoder cannot write
/// into our memory; kAlignment: its rows do not suit an upload.
enum class HostCopy { kFormat, kDecoder, kAlignment };
inline constexpr std::array<std::string_view, 3> kHostCopyNames{"format", "decoder", "alignment"};

enum class PacketDrop { kQueueFull, kWaitKeyframe, kWriteFailed, kDiskFull, kStop };
inline constexpr std::array<std::string_view, 5> kPacketDropNames{
    "queue_full", "wait_keyframe", "write_failed", "disk_full", "stop"};

/// Why a source or an output has to reconnect.
enum class IoFault { kDns, kRefused, kAuth, kTimeout, kEof, kIo, kDecode };
inline constexpr std::array<std::string_view, 7> kIoFaultNames{"dns", "refused", "auth",  "timeout",
                                                               "eof", "io",      "decode"};

/// Why a feed ended early. The first four are restarted and counted. The others are final until a
/// reload: kConfiguration, what no retry mends; kSource, a file that broke midway, or with `once`
/// any source that is lost.
enum class FeedFault { kEncoder, kDevice, kMemory, kInternal, kConfiguration, kSource };
inline constexpr std::array<std::string_view, 4> kFeedFaultNames{"encoder", "device", "memory",
                                                                 "internal"};

enum class FeedState { kConnecting, kRunning, kBackoff, kEnded, kFailed };
inline constexpr std::array<std::string_view, 5> kFeedStateNames{"connecting", "running", "backoff",
                                                                 "ended", "failed"};

enum class Bottleneck { kSource, kDecode, kH2d, kKernel, kD2h, kEncode, kOutput };
inline constexpr std::array<std::string_view, 7> kBottleneckNames{
    "source", "decode", "h2d", "kernel", "d2h", "encode", "output"};

enum class RingState { kConverting, kReady };
inline constexpr std::array<std::string_view, 2> kRingStateNames{"converting", "ready"};

template <typename Enum>
constexpr std::size_t index_of(Enum value) {
  return static_cast<std::size_t>(value);
}

}  // namespace framelane
