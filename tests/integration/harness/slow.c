// Preloaded into framelane: calls into decoders, video encoders and muxers, and copies of rows of
// $FRAMELANE_TEST_SLOW_ROW bytes, take some time more. The file $FRAMELANE_TEST_SLOW has how many there
// were and how long they took: "decode", "encode", "mux" and "copy", each as two numbers of 64 bits,
// calls and nanoseconds.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <libavcodec/avcodec.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

enum { kDecode, kEncode, kMux, kCopy, kKinds };
struct Count {
  uint64_t calls;
  uint64_t nanoseconds;
};
static struct Count *counts;
static size_t slow_row;

__attribute__((constructor)) static void begin(void) {
  const char *name = getenv("FRAMELANE_TEST_SLOW");
  const int file = name ? open(name, O_RDWR | O_CREAT | O_CLOEXEC, 0600) : -1;
  if (file < 0 || ftruncate(file, kKinds * sizeof *counts) != 0) return;
  void *memory = mmap(NULL, kKinds * sizeof *counts, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  close(file);
  if (memory == MAP_FAILED) return;
  const char *row = getenv("FRAMELANE_TEST_SLOW_ROW");
  slow_row = row ? strtoul(row, NULL, 10) : 0;
  counts = memory;
}

static uint64_t now(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_nsec;
}

static uint64_t slow_down(long nanoseconds) {
  const uint64_t start = now();
  const struct timespec pause = {0, nanoseconds};
  if (counts) nanosleep(&pause, NULL);
  return start;
}

static void count(int kind, uint64_t start) {
  if (!counts) return;
  __atomic_fetch_add(&counts[kind].calls, 1, __ATOMIC_RELAXED);
  __atomic_fetch_add(&counts[kind].nanoseconds, now() - start, __ATOMIC_RELAXED);
}

int avcodec_send_packet(AVCodecContext *context, const AVPacket *packet) {
  int (*next)(AVCodecContext *, const AVPacket *) = dlsym(RTLD_NEXT, "avcodec_send_packet");
  // libavformat also decodes, to find out about a stream; only framelane's contexts have an owner.
  if (!context->opaque || !packet) return next(context, packet);
  const uint64_t start = slow_down(4000000);
  const int result = next(context, packet);
  count(kDecode, start);
  return result;
}

int avcodec_send_frame(AVCodecContext *context, const AVFrame *frame) {
  int (*next)(AVCodecContext *, const AVFrame *) = dlsym(RTLD_NEXT, "avcodec_send_frame");
  if (!frame) return next(context, frame);
  const uint64_t start = slow_down(20000000);
  const int result = next(context, frame);
  count(kEncode, start);
  return result;
}

int av_write_frame(void *context, AVPacket *packet) {
  int (*next)(void *, AVPacket *) = dlsym(RTLD_NEXT, "av_write_frame");
  if (!packet) return next(context, packet);
  const uint64_t start = slow_down(5000000);
  const int result = next(context, packet);
  count(kMux, start);
  return result;
}

void *memcpy(void *restrict to, const void *restrict from, size_t size) {
  if (counts && size == slow_row) {
    const uint64_t start = slow_down(200000);
    memmove(to, from, size);
    count(kCopy, start);
    return to;
  }
  return memmove(to, from, size);
}
