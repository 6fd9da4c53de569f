// Preloaded into framelane: while the file $FRAMELANE_TEST_SLOW_SITE exists, a write to a file in a folder
// below $FRAMELANE_TEST_SLOW_FOLDER takes as long as on a disk that writes 50 kB/s; and an encoder of pictures
// that are $FRAMELANE_TEST_SLOW_WIDTH wide takes 0.2 s for each.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <libavcodec/avcodec.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { kBytesPerSecond = 50000 };

static int is_on(void) {
  const char *file = getenv("FRAMELANE_TEST_SLOW_SITE");
  return file && access(file, F_OK) == 0;
}

static void pause_for(double seconds) {
  const struct timespec time = {(time_t)seconds, (long)((seconds - (double)(time_t)seconds) * 1e9)};
  nanosleep(&time, NULL);
}

static int is_slow(int descriptor) {
  const char *folder = getenv("FRAMELANE_TEST_SLOW_FOLDER");
  if (!folder || !is_on()) return 0;
  char link[64], path[4096];
  snprintf(link, sizeof link, "/proc/self/fd/%d", descriptor);
  const ssize_t size = readlink(link, path, sizeof path - 1);
  if (size <= 0) return 0;
  path[size] = 0;
  return strncmp(path, folder, strlen(folder)) == 0 && path[strlen(folder)] == '/';
}

ssize_t write(int descriptor, const void *data, size_t size) {
  ssize_t (*next)(int, const void *, size_t) = dlsym(RTLD_NEXT, "write");
  if (is_slow(descriptor)) pause_for((double)size / kBytesPerSecond);
  return next(descriptor, data, size);
}

int avcodec_send_frame(AVCodecContext *context, const AVFrame *frame) {
  int (*next)(AVCodecContext *, const AVFrame *) = dlsym(RTLD_NEXT, "avcodec_send_frame");
  const char *width = getenv("FRAMELANE_TEST_SLOW_WIDTH");
  if (frame && width && context->width == atoi(width) && is_on()) pause_for(0.2);
  return next(context, frame);
}
