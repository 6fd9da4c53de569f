// Takes the place of libnvidia-encode.so.1; control.hpp says what it does. It calls the driver,
// which may be the stand-in or a GPU's own.
#include <cuda.h>
#include <ffnvcodec/nvEncodeAPI.h>

#include <algorithm>
#include <array>
#include <condition_variable>
#include <cstdint>
#include <cstring>
#include <limits>
#include <memory>
#include <mutex>
#include <vector>

#include "tests/nvenc/control.hpp"
#include "tests/nvenc/h264_writer.hpp"

namespace framelane::fake_nvenc {
namespace {

struct Session {
  int width = 0;
  int height = 0;
  bool full_chroma = false;
  unsigned pictures = 0;
  CUstream stream = nullptr;
};

/// A frame's memory: NVENC's own, or on the GPU and registered.
struct Surface {
  std::vector<std::uint8_t> own;
  CUdeviceptr on_gpu = 0;
  std::size_t pitch = 0;
  int height = 0;
  NV_ENC_BUFFER_FORMAT format = NV_ENC_BUFFER_FORMAT_UNDEFINED;
  int mapped = 0;
};

struct Bitstream {
  std::vector<std::uint8_t> bytes;
  std::uint64_t timestamp = 0;
};

/// A picture that is encoded when the stream comes to it.
struct Work {
  Session* session = nullptr;
  const Surface* surface = nullptr;
  std::vector<std::uint8_t> copy;  // of a surface on the GPU
  Bitstream* bitstream = nullptr;
  unsigned id = 0;
};

struct Counts {
  std::mutex mutex;
  std::vector<std::unique_ptr<Work>> works;  // kept: a GPU that is lost never comes to them
  int most_sessions = std::numeric_limits<int>::max();
  int sessions = 0;
  std::condition_variable released;
  bool held = false;
  int frames_to_failure = 0;  // 0: none fails
  bool no_session_after = false;
  int gpu_frames = 0;
  int copied_frames = 0;
};
Counts& counts() {
  static Counts& instance = *new Counts;  // encoders may be closed at exit
  return instance;
}

void encode(void* data) {
  auto* const work = static_cast<Work*>(data);
  const Surface& from = *work->surface;
  const std::uint8_t* const luma = from.own.empty() ? work->copy.data() : from.own.data();
  Picture picture{work->session->width,
                  work->session->height,
                  luma,
                  nullptr,
                  nullptr,
                  from.pitch,
                  from.pitch,
                  2};
  const std::uint8_t* const chroma = luma + from.pitch * static_cast<std::size_t>(from.height);
  if (from.format == NV_ENC_BUFFER_FORMAT_YUV444) {
    picture.chroma_step = 1;
    picture.full_chroma = true;
    picture.u = chroma;
    picture.v = chroma + from.pitch * static_cast<std::size_t>(from.height);
  } else if (from.format == NV_ENC_BUFFER_FORMAT_NV12) {
    picture.u = chroma;
    picture.v = chroma + 1;
  } else {  // YV12: V before U
    picture.chroma_step = 1;
    picture.chroma_pitch = from.pitch / 2;
    picture.v = chroma;
    picture.u = chroma + picture.chroma_pitch * static_cast<std::size_t>(from.height / 2);
  }
  std::vector<std::uint8_t>& bytes = work->bitstream->bytes;
  bytes = parameter_sets(picture.width, picture.height, picture.full_chroma);
  const std::vector<std::uint8_t> slice = idr_slice(picture, work->id);
  bytes.insert(bytes.end(), slice.begin(), slice.end());
  work->copy = {};
}

bool synchronize(const Session& session) {
  return session.stream == nullptr || cuStreamSynchronize(session.stream) == CUDA_SUCCESS;
}

NVENCSTATUS open_session(NV_ENC_OPEN_ENCODE_SESSION_EX_PARAMS* parameters, void** session) {
  if (parameters->device == nullptr) return NV_ENC_ERR_INVALID_DEVICE;
  const std::lock_guard lock(counts().mutex);
  if (counts().sessions >= counts().most_sessions) return NV_ENC_ERR_OUT_OF_MEMORY;
  ++counts().sessions;
  *session = new Session;
  return NV_ENC_SUCCESS;
}

NVENCSTATUS destroy_session(void* session) {
  const std::lock_guard lock(counts().mutex);
  --counts().sessions;
  delete static_cast<Session*>(session);
  return NV_ENC_SUCCESS;
}

NVENCSTATUS count_codecs(void*, std::uint32_t* count) { return *count = 1, NV_ENC_SUCCESS; }

NVENCSTATUS list_codecs(void*, GUID* list, std::uint32_t, std::uint32_t* count) {
  list[0] = NV_ENC_CODEC_H264_GUID;
  return *count = 1, NV_ENC_SUCCESS;
}

NVENCSTATUS capability(void*, GUID, NV_ENC_CAPS_PARAM* asked, int* value) {
  switch (asked->capsToQuery) {
    case NV_ENC_CAPS_WIDTH_MAX:
    case NV_ENC_CAPS_HEIGHT_MAX:
      return *value = 4096, NV_ENC_SUCCESS;
    case NV_ENC_CAPS_SUPPORT_CABAC:
    case NV_ENC_CAPS_SUPPORT_DYN_BITRATE_CHANGE:
    case NV_ENC_CAPS_SUPPORT_MULTIPLE_REF_FRAMES:
    case NV_ENC_CAPS_SUPPORT_YUV444_ENCODE:
      return *value = 1, NV_ENC_SUCCESS;
    default:
      return *value = 0, NV_ENC_SUCCESS;
  }
}

NVENCSTATUS preset(void*, GUID, GUID, NV_ENC_TUNING_INFO, NV_ENC_PRESET_CONFIG* config) {
  config->presetCfg = {};
  config->presetCfg.version = NV_ENC_CONFIG_VER;
  config->presetCfg.gopLength = 250;
  config->presetCfg.frameIntervalP = 1;
  return NV_ENC_SUCCESS;
}

NVENCSTATUS initialize(void* session, NV_ENC_INITIALIZE_PARAMS* parameters) {
  auto& encoder = *static_cast<Session*>(session);
  encoder.width = static_cast<int>(parameters->encodeWidth);
  encoder.height = static_cast<int>(parameters->encodeHeight);
  encoder.full_chroma = parameters->encodeConfig->encodeCodecConfig.h264Config.chromaFormatIDC == 3;
  return NV_ENC_SUCCESS;
}

NVENCSTATUS set_streams(void* session, void* input, void*) {
  static_cast<Session*>(session)->stream = *static_cast<CUstream*>(input);
  return NV_ENC_SUCCESS;
}

NVENCSTATUS create_bitstream(void*, NV_ENC_CREATE_BITSTREAM_BUFFER* parameters) {
  parameters->bitstreamBuffer = new Bitstream;
  return NV_ENC_SUCCESS;
}

NVENCSTATUS destroy_bitstream(void*, void* bitstream) {
  delete static_cast<Bitstream*>(bitstream);
  return NV_ENC_SUCCESS;
}

NVENCSTATUS create_input(void*, NV_ENC_CREATE_INPUT_BUFFER* parameters) {
  auto surface = std::make_unique<Surface>();
  surface->pitch = (parameters->width + 511) & ~511U;
  surface->height = static_cast<int>(parameters->height);
  surface->format = parameters->bufferFmt;
  surface->own.resize(surface->pitch * parameters->height * 3);
  parameters->inputBuffer = surface.release();
  return NV_ENC_SUCCESS;
}

NVENCSTATUS destroy_surface(void*, void* surface) {
  if (static_cast<Surface*>(surface)->mapped > 0) return NV_ENC_ERR_INVALID_CALL;
  delete static_cast<Surface*>(surface);
  return NV_ENC_SUCCESS;
}

NVENCSTATUS lock_input(void*, NV_ENC_LOCK_INPUT_BUFFER* parameters) {
  auto& surface = *static_cast<Surface*>(parameters->inputBuffer);
  parameters->bufferDataPtr = surface.own.data();
  parameters->pitch = static_cast<std::uint32_t>(surface.pitch);
  return NV_ENC_SUCCESS;
}

NVENCSTATUS unlock(void*, void*) { return NV_ENC_SUCCESS; }

NVENCSTATUS register_resource(void*, NV_ENC_REGISTER_RESOURCE* parameters) {
  auto surface = std::make_unique<Surface>();
  surface->on_gpu = reinterpret_cast<CUdeviceptr>(parameters->resourceToRegister);
  surface->pitch = parameters->pitch;
  surface->height = static_cast<int>(parameters->height);
  surface->format = parameters->bufferFormat;
  parameters->registeredResource = surface.release();
  return NV_ENC_SUCCESS;
}

NVENCSTATUS map_resource(void*, NV_ENC_MAP_INPUT_RESOURCE* parameters) {
  auto& surface = *static_cast<Surface*>(parameters->registeredResource);
  ++surface.mapped;
  parameters->mappedResource = &surface;
  parameters->mappedBufferFmt = surface.format;
  return NV_ENC_SUCCESS;
}

NVENCSTATUS unmap_resource(void*, void* resource) {
  auto& surface = *static_cast<Surface*>(resource);
  if (surface.mapped == 0) return NV_ENC_ERR_RESOURCE_NOT_MAPPED;
  --surface.mapped;
  return NV_ENC_SUCCESS;
}

NVENCSTATUS encode_picture(void* session, NV_ENC_PIC_PARAMS* parameters) {
  if ((parameters->encodePicFlags & NV_ENC_PIC_FLAG_EOS) != 0) return NV_ENC_SUCCESS;
  auto& encoder = *static_cast<Session*>(session);
  auto* const surface = static_cast<Surface*>(parameters->inputBuffer);
  auto* const bitstream = static_cast<Bitstream*>(parameters->outputBitstream);
  bitstream->timestamp = parameters->inputTimeStamp;
  auto* const work = new Work{&encoder, surface, {}, bitstream, encoder.pictures++};
  {
    const std::lock_guard lock(counts().mutex);
    if (counts().frames_to_failure > 0 && --counts().frames_to_failure == 0) {
      if (counts().no_session_after) counts().most_sessions = 0;
      delete work;
      return NV_ENC_ERR_GENERIC;
    }
    counts().works.emplace_back(work);
    ++(surface->own.empty() ? counts().gpu_frames : counts().copied_frames);
  }
  if (!surface->own.empty()) {
    encode(work);
    return NV_ENC_SUCCESS;
  }
  const int chroma_rows = surface->format == NV_ENC_BUFFER_FORMAT_YUV444
                              ? 2 * surface->height
                              : (surface->height + 1) / 2;
  work->copy.resize(surface->pitch * static_cast<std::size_t>(surface->height + chroma_rows));
  const bool queued = cuMemcpyDtoHAsync(work->copy.data(), surface->on_gpu, work->copy.size(),
                                        encoder.stream) == CUDA_SUCCESS &&
                      cuLaunchHostFunc(encoder.stream, encode, work) == CUDA_SUCCESS;
  return queued ? NV_ENC_SUCCESS : NV_ENC_ERR_DEVICE_NOT_EXIST;
}

NVENCSTATUS lock_bitstream(void* session, NV_ENC_LOCK_BITSTREAM* parameters) {
  {
    std::unique_lock lock(counts().mutex);
    counts().released.wait(lock, [] { return !counts().held; });
  }
  if (!synchronize(*static_cast<Session*>(session))) return NV_ENC_ERR_DEVICE_NOT_EXIST;
  auto& bitstream = *static_cast<Bitstream*>(parameters->outputBitstream);
  parameters->bitstreamBufferPtr = bitstream.bytes.data();
  parameters->bitstreamSizeInBytes = static_cast<std::uint32_t>(bitstream.bytes.size());
  parameters->outputTimeStamp = bitstream.timestamp;
  parameters->pictureType = NV_ENC_PIC_TYPE_IDR;
  parameters->frameAvgQP = 1;
  return NV_ENC_SUCCESS;
}

NVENCSTATUS sequence_parameters(void* session, NV_ENC_SEQUENCE_PARAM_PAYLOAD* payload) {
  const auto& encoder = *static_cast<const Session*>(session);
  const std::vector<std::uint8_t> sets =
      parameter_sets(encoder.width, encoder.height, encoder.full_chroma);
  std::memcpy(payload->spsppsBuffer, sets.data(), sets.size());
  *payload->outSPSPPSPayloadSize = static_cast<std::uint32_t>(sets.size());
  return NV_ENC_SUCCESS;
}

NVENCSTATUS reconfigure(void*, NV_ENC_RECONFIGURE_PARAMS*) { return NV_ENC_SUCCESS; }

const char* last_error(void*) { return "stand-in"; }

}  // namespace

void reset() {
  const std::lock_guard lock(counts().mutex);
  counts().most_sessions = std::numeric_limits<int>::max();
  counts().gpu_frames = counts().copied_frames = counts().frames_to_failure = 0;
}

void fail_frame(int n, bool no_session_after) {
  const std::lock_guard lock(counts().mutex);
  counts().frames_to_failure = n;
  counts().no_session_after = no_session_after;
}

void limit_sessions(int most) {
  const std::lock_guard lock(counts().mutex);
  counts().most_sessions = most;
}

void hold() {
  const std::lock_guard lock(counts().mutex);
  counts().held = true;
}

void release() {
  const std::lock_guard lock(counts().mutex);
  counts().held = false;
  counts().released.notify_all();
}

int sessions() {
  const std::lock_guard lock(counts().mutex);
  return counts().sessions;
}

int gpu_frames() {
  const std::lock_guard lock(counts().mutex);
  return counts().gpu_frames;
}

int copied_frames() {
  const std::lock_guard lock(counts().mutex);
  return counts().copied_frames;
}

}  // namespace framelane::fake_nvenc

using namespace framelane::fake_nvenc;

extern "C" {

NVENCSTATUS NvEncodeAPIGetMaxSupportedVersion(std::uint32_t* version) {
  return *version = 13 << 4, NV_ENC_SUCCESS;
}

NVENCSTATUS NvEncodeAPICreateInstance(NV_ENCODE_API_FUNCTION_LIST* list) {
  list->nvEncOpenEncodeSessionEx = open_session;
  list->nvEncDestroyEncoder = destroy_session;
  list->nvEncGetEncodeGUIDCount = count_codecs;
  list->nvEncGetEncodeGUIDs = list_codecs;
  list->nvEncGetEncodeCaps = capability;
  list->nvEncGetEncodePresetConfigEx = preset;
  list->nvEncInitializeEncoder = initialize;
  list->nvEncSetIOCudaStreams = set_streams;
  list->nvEncCreateBitstreamBuffer = create_bitstream;
  list->nvEncDestroyBitstreamBuffer = destroy_bitstream;
  list->nvEncCreateInputBuffer = create_input;
  list->nvEncDestroyInputBuffer = destroy_surface;
  list->nvEncLockInputBuffer = lock_input;
  list->nvEncUnlockInputBuffer = unlock;
  list->nvEncRegisterResource = register_resource;
  list->nvEncUnregisterResource = destroy_surface;
  list->nvEncMapInputResource = map_resource;
  list->nvEncUnmapInputResource = unmap_resource;
  list->nvEncEncodePicture = encode_picture;
  list->nvEncLockBitstream = lock_bitstream;
  list->nvEncUnlockBitstream = unlock;
  list->nvEncGetSequenceParams = sequence_parameters;
  list->nvEncReconfigureEncoder = reconfigure;
  list->nvEncGetLastErrorString = last_error;
  return NV_ENC_SUCCESS;
}

}  // extern "C"
