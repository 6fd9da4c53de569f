#pragma once

#include <array>
#include <cstddef>
#include <string_view>

namespace framelane {

// Every fixed set of metric label values. An enumerator's value is the index of its name. The names
// are part of the public contract: they do not change.

/// Why a frame is not in an encode. kRate: the encode takes fewer than come.
enum class DropReason { kRingFull, kEncoder, kDeviceLost, kFeedFailed, kStop, kReload, kRate };
inline constexpr std::array<std::string_view, 7> kDropReasonNames{
    "ring_full", "encoder", "device_lost", "feed_failed", "stop", "reload", "rate"};

/// Why a packet of transcoded sound was lost. kDecode: no sound could be decoded from it; kOverlap:
/// its sound lies wholly where other sound was already.
enum class AudioDrop { kDecode, kOverlap, kEncoder, kFeedFailed, kStop, kReload };
inline constexpr std::array<std::string_view, 6> kAudioDropNames{
    "decode", "overlap", "encoder", "feed_failed", "stop", "reload"};

/// How transcoded sound was brought back in step with its timestamps. kSilence: a hole was filled;
/// kTrim: samples that overlap were left out; kJump: a hole was too long to be filled.
enum class AudioRepair { kSilence, kTrim, kJump };
inline constexpr std::array<std::string_view, 3> kAudioRepairNames{"silence", "trim", "jump"};

enum class DecodeFault { kCorrupt, kUnsupported, kTruncated };
inline constexpr std::array<std::string_view, 3> kDecodeFaultNames{"corrupt", "unsupported",
                                                                   "truncated"};

/// Where a frame spends its time. kWait: until it gets a place in the ring; kEncode: from being
/// sent to the encoder to its packet, lookahead included; kMux: from the packet's queueing to its
/// write.
enum class StageStep { kDecode, kWait, kH2d, kKernel, kD2h, kEncode, kMux };
inline constexpr std::array<std::string_view, 7> kStageStepNames{
    "decode", "wait", "h2d", "kernel", "d2h", "encode", "mux"};

/// The parts of a device that work at the same time: copies to it, conversions, copies back. The
/// CPU has only kKernel.
enum class Engine { kH2d, kKernel, kD2h };
inline constexpr std::array<std::string_view, 3> kEngineNames{"h2d", "kernel", "d2h"};

enum class TimestampRepair { kJump, kBackward, kWrap, kMissing };
inline constexpr std::array<std::string_view, 4> kTimestampRepairNames{"jump", "backward", "wrap",
                                                                       "missing"};

/// Why pixels were copied on the host. kFormat: swscale converted them; kDecoder: the decoder
/// cannot write into our memory; kAlignment: its rows are not aligned as an upload needs them;
/// kMask: the frame's memory is not ours to cover.
enum class HostCopy { kFormat, kDecoder, kAlignment, kMask };
inline constexpr std::array<std::string_view, 4> kHostCopyNames{"format", "decoder", "alignment",
                                                                "mask"};

enum class PacketDrop { kQueueFull, kWaitKeyframe, kWriteFailed, kDiskFull, kStop };
inline constexpr std::array<std::string_view, 5> kPacketDropNames{
    "queue_full", "wait_keyframe", "write_failed", "disk_full", "stop"};

/// What goes wrong when old recordings are deleted: a folder cannot be read, a file cannot be
/// deleted, less is free than `min_free` asks for and nothing is left to delete, a call does not
/// return.
enum class RetentionFault { kList, kDelete, kSpace, kTimeout };
inline constexpr std::array<std::string_view, 4> kRetentionFaultNames{"list", "delete", "space",
                                                                      "timeout"};

/// Why a source or an output has to reconnect.
enum class IoFault { kDns, kRefused, kAuth, kTimeout, kEof, kIo, kDecode };
inline constexpr std::array<std::string_view, 7> kIoFaultNames{"dns", "refused", "auth",  "timeout",
                                                               "eof", "io",      "decode"};

/// Why a feed ended early. After the first four it is restarted and the fault is counted. The other
/// two, which have no label, are final until a reload. kConfiguration: no retry can help. kSource:
/// a file could not be read to its end, or, with `once`, any source was lost.
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
