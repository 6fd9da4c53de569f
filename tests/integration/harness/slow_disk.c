// Preloaded into framelane: while the file $FRAMELANE_TEST_SLOW_DISK exists, a write to a file in a folder
// below $FRAMELANE_TEST_SLOW_DISK_FOLDER takes as long as on a disk that writes 50 kB/s.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { kBytesPerSecond = 50000 };

static int is_slow(int descriptor) {
  const char *file = getenv("FRAMELANE_TEST_SLOW_DISK");
  const char *folder = getenv("FRAMELANE_TEST_SLOW_DISK_FOLDER");
  if (!file || !folder || access(file, F_OK) != 0) return 0;
  char link[64], path[4096];
  snprintf(link, sizeof link, "/proc/self/fd/%d", descriptor);
  const ssize_t size = readlink(link, path, sizeof path - 1);
  if (size <= 0) return 0;
  path[size] = 0;
  return strncmp(path, folder, strlen(folder)) == 0 && path[strlen(folder)] == '/';
}

ssize_t write(int descriptor, const void *data, size_t size) {
  ssize_t (*next)(int, const void *, size_t) = dlsym(RTLD_NEXT, "write");
  if (is_slow(descriptor)) {
    const long nanoseconds = (long)(size * 1000000000. / kBytesPerSecond);
    const struct timespec pause = {nanoseconds / 1000000000, nanoseconds % 1000000000};
    nanosleep(&pause, NULL);
  }
  return next(descriptor, data, size);
}
