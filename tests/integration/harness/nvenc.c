// Takes the place of libcuda.so.1 and of libnvidia-encode.so.1, for FFmpeg's h264_nvenc with frames
// in host memory. It encodes nothing: for each frame it writes a line "TIMESTAMP FLAGS" to the file
// $FRAMELANE_TEST_NVENC. With $FRAMELANE_TEST_NVENC_SHORT it has no memory left. Of NVENC's
// structures (API 11 to 13) it has the fields that it needs, which are among the first ones.
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// CUDA

typedef int Result;
enum { kOk = 0, kNotSupported = 801 };

Result cuInit(unsigned flags) { return kOk; }
Result cuDeviceGetCount(int *count) { return *count = 1, kOk; }
Result cuDeviceGet(int *device, int index) { return *device = index, kOk; }
Result cuDeviceGetName(char *name, int size, int device) {
  return snprintf(name, (size_t)size, "stand-in"), kOk;
}
Result cuDeviceComputeCapability(int *major, int *minor, int device) {
  return *major = 7, *minor = 5, kOk;
}
Result cuCtxCreate_v2(void **context, unsigned flags, int device) {
  static char only;
  return *context = &only, kOk;
}
Result cuCtxDestroy_v2(void *context) { return kOk; }
Result cuCtxPushCurrent_v2(void *context) { return kOk; }
Result cuCtxPopCurrent_v2(void **context) { return kOk; }

// FFmpeg looks these up and does not call them.
#define UNUSED(name) \
  Result name(void) { return kNotSupported; }
UNUSED(cuArray3DCreate_v2)
UNUSED(cuArrayCreate_v2)
UNUSED(cuArrayDestroy)
UNUSED(cuCtxGetCurrent)
UNUSED(cuCtxGetDevice)
UNUSED(cuCtxSetLimit)
UNUSED(cuDestroyExternalMemory)
UNUSED(cuDestroyExternalSemaphore)
UNUSED(cuDeviceGetAttribute)
UNUSED(cuDeviceGetByPCIBusId)
UNUSED(cuDeviceGetPCIBusId)
UNUSED(cuDeviceGetUuid)
UNUSED(cuDevicePrimaryCtxGetState)
UNUSED(cuDevicePrimaryCtxRelease)
UNUSED(cuDevicePrimaryCtxReset)
UNUSED(cuDevicePrimaryCtxRetain)
UNUSED(cuDevicePrimaryCtxSetFlags)
UNUSED(cuDriverGetVersion)
UNUSED(cuEventCreate)
UNUSED(cuEventDestroy_v2)
UNUSED(cuEventQuery)
UNUSED(cuEventRecord)
UNUSED(cuEventSynchronize)
UNUSED(cuExternalMemoryGetMappedBuffer)
UNUSED(cuExternalMemoryGetMappedMipmappedArray)
UNUSED(cuGLGetDevices_v2)
UNUSED(cuGetErrorName)
UNUSED(cuGetErrorString)
UNUSED(cuGraphicsGLRegisterImage)
UNUSED(cuGraphicsMapResources)
UNUSED(cuGraphicsResourceGetMappedPointer_v2)
UNUSED(cuGraphicsSubResourceGetMappedArray)
UNUSED(cuGraphicsUnmapResources)
UNUSED(cuGraphicsUnregisterResource)
UNUSED(cuImportExternalMemory)
UNUSED(cuImportExternalSemaphore)
UNUSED(cuLaunchKernel)
UNUSED(cuLinkAddData)
UNUSED(cuLinkComplete)
UNUSED(cuLinkCreate)
UNUSED(cuLinkDestroy)
UNUSED(cuMemAllocManaged)
UNUSED(cuMemAllocPitch_v2)
UNUSED(cuMemAlloc_v2)
UNUSED(cuMemFree_v2)
UNUSED(cuMemcpy)
UNUSED(cuMemcpy2DAsync_v2)
UNUSED(cuMemcpy2D_v2)
UNUSED(cuMemcpyAsync)
UNUSED(cuMemcpyDtoDAsync_v2)
UNUSED(cuMemcpyDtoD_v2)
UNUSED(cuMemcpyDtoHAsync_v2)
UNUSED(cuMemcpyDtoH_v2)
UNUSED(cuMemcpyHtoDAsync_v2)
UNUSED(cuMemcpyHtoD_v2)
UNUSED(cuMemsetD8Async)
UNUSED(cuMipmappedArrayDestroy)
UNUSED(cuMipmappedArrayGetLevel)
UNUSED(cuModuleGetFunction)
UNUSED(cuModuleGetGlobal)
UNUSED(cuModuleLoadData)
UNUSED(cuModuleUnload)
UNUSED(cuSignalExternalSemaphoresAsync)
UNUSED(cuStreamAddCallback)
UNUSED(cuStreamCreate)
UNUSED(cuStreamDestroy_v2)
UNUSED(cuStreamQuery)
UNUSED(cuStreamSynchronize)
UNUSED(cuStreamWaitEvent)
UNUSED(cuTexObjectCreate)
UNUSED(cuTexObjectDestroy)
UNUSED(cuWaitExternalSemaphoresAsync)

// NVENC

typedef struct {
  uint8_t bytes[16];
} Guid;

enum { kOutOfMemory = 10 };
static const Guid kH264 = {{0x62, 0x27, 0xc8, 0x6b, 0x63, 0x4e, 0xa4, 0x4c, 0xaa, 0x85, 0x1e, 0x50,
                            0xf3, 0x21, 0xf6, 0xbf}};
enum { kForceIdr = 2, kEndOfStream = 8, kPictureP = 0, kPictureIdr = 3 };
enum { kPitch = 4096, kMostRows = 2048 };

typedef struct {
  uint32_t version, width, height, heap, format, reserved;
  void *buffer;
} NewInput;

typedef struct {
  uint32_t version, size, heap, reserved;
  void *buffer;
} NewOutput;

typedef struct {
  uint32_t version, flags;
  void *buffer;
  void *data;
  uint32_t pitch;
} LockedInput;

typedef struct {
  uint32_t version, width, height, pitch, flags, index;
  uint64_t timestamp, duration;
  void *input, *output;
} Picture;

typedef struct {
  uint32_t version, flags;
  void *buffer, *slices;
  uint32_t index, status, slice_count, size;
  uint64_t timestamp, duration;
  void *data;
  uint32_t type;
} LockedOutput;

typedef struct {
  uint64_t timestamp;
  uint32_t type;
} Encoded;

static int open_session(void *parameters, void **session) {
  static char only;
  return *session = &only, 0;
}
static int count_codecs(void *session, uint32_t *count) { return *count = 1, 0; }
static int list_codecs(void *session, Guid *guids, uint32_t size, uint32_t *count) {
  return guids[0] = kH264, *count = 1, 0;
}
static int capability(void *session, Guid codec, void *which, int *value) {
  return *value = 4096, 0;  // enough, whichever it is
}
static int preset(void *session, Guid codec, Guid preset, uint32_t tuning, void *config) {
  return 0;
}
static int initialize(void *session, void *parameters) {
  return getenv("FRAMELANE_TEST_NVENC_SHORT") ? kOutOfMemory : 0;
}
static int create_input(void *session, NewInput *made) {
  made->buffer = malloc((size_t)kPitch * kMostRows);
  return made->buffer ? 0 : kOutOfMemory;
}
static int create_output(void *session, NewOutput *made) {
  made->buffer = calloc(1, sizeof(Encoded));
  return made->buffer ? 0 : kOutOfMemory;
}
static int destroy_buffer(void *session, void *buffer) { return free(buffer), 0; }
static int lock_input(void *session, LockedInput *locked) {
  return locked->data = locked->buffer, locked->pitch = kPitch, 0;
}
static int encode(void *session, Picture *picture) {
  if (picture->flags & kEndOfStream) return 0;
  Encoded *encoded = picture->output;
  encoded->timestamp = picture->timestamp;
  encoded->type = picture->flags & kForceIdr ? kPictureIdr : kPictureP;
  FILE *log = fopen(getenv("FRAMELANE_TEST_NVENC"), "a");
  if (!log) return 20;
  fprintf(log, "%llu %u\n", (unsigned long long)picture->timestamp, picture->flags);
  fclose(log);
  return 0;
}
static int lock_output(void *session, LockedOutput *locked) {
  static uint8_t idr[] = {0, 0, 0, 1, 0x65, 0x80}, p[] = {0, 0, 0, 1, 0x41, 0x80};
  const Encoded *encoded = locked->buffer;
  locked->type = encoded->type;
  locked->data = encoded->type == kPictureIdr ? idr : p;
  locked->size = sizeof idr;
  locked->timestamp = encoded->timestamp;
  return 0;
}
typedef struct {
  uint32_t version, room, sps_id, pps_id;
  void *data;
  uint32_t *size;
} SequenceParameters;

static int sequence_parameters(void *session, SequenceParameters *parameters) {
  static const uint8_t headers[] = {0, 0, 0, 1, 0x67, 0x42, 0, 0x0a, 0, 0, 0, 1, 0x68, 0xce};
  if (parameters->room < sizeof headers) return 8;  // NV_ENC_ERR_INVALID_PARAM
  memcpy(parameters->data, headers, sizeof headers);
  *parameters->size = sizeof headers;
  return 0;
}
static int unlock(void *session, void *buffer) { return 0; }
static int destroy_session(void *session) { return 0; }
static const char *last_error(void *session) { return "none"; }

int NvEncodeAPIGetMaxSupportedVersion(uint32_t *version) { return *version = 13 << 4, 0; }

// By its place in NV_ENCODE_API_FUNCTION_LIST.
int NvEncodeAPICreateInstance(struct {
  uint32_t version, reserved;
  void *functions[40];
} *list) {
  void **functions = list->functions;
  functions[1] = count_codecs;
  functions[4] = list_codecs;
  functions[7] = capability;
  functions[11] = initialize;
  functions[12] = create_input;
  functions[13] = destroy_buffer;
  functions[14] = create_output;
  functions[15] = destroy_buffer;
  functions[16] = encode;
  functions[17] = lock_output;
  functions[18] = unlock;
  functions[19] = lock_input;
  functions[20] = unlock;
  functions[22] = sequence_parameters;
  functions[27] = destroy_session;
  functions[29] = open_session;
  functions[37] = last_error;
  functions[38] = unlock;  // of streams: there are none
  functions[39] = preset;
  return 0;
}
