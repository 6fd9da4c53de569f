// Preloaded into framelane: while the file $FRAMELANE_TEST_SHORTAGE says "threads", no thread
// starts; while it says "memory", FFmpeg gets none to open an input or output.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int is_short(const char *of) {
  char text[8] = "";
  const char *file = getenv("FRAMELANE_TEST_SHORTAGE");
  const int descriptor = file ? open(file, O_RDONLY | O_CLOEXEC) : -1;
  if (descriptor < 0) return 0;
  const ssize_t size = read(descriptor, text, sizeof text - 1);
  close(descriptor);
  return size > 0 && strcmp(text, of) == 0;
}

int pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*run)(void *),
                   void *argument) {
  int (*next)(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *) =
      dlsym(RTLD_NEXT, "pthread_create");
  return is_short("threads") ? EAGAIN : next(thread, attributes, run, argument);
}

void *avformat_alloc_context(void) {
  void *(*next)(void) = dlsym(RTLD_NEXT, "avformat_alloc_context");
  return is_short("memory") ? NULL : next();
}

int avformat_alloc_output_context2(void **context, const void *muxer, const char *format,
                                   const char *url) {
  int (*next)(void **, const void *, const char *, const char *) =
      dlsym(RTLD_NEXT, "avformat_alloc_output_context2");
  return is_short("memory") ? -ENOMEM : next(context, muxer, format, url);
}
