// Preloaded into framelane: opening an encoder, its calls, and a write to a TCP peer do not return
// while the file $FRAMELANE_TEST_HANG exists. The first of them makes the file
// $FRAMELANE_TEST_HANG.reached.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

static void hang(void) {
  const char *file = getenv("FRAMELANE_TEST_HANG");
  if (!file || access(file, F_OK) != 0) return;
  char reached[4096];
  snprintf(reached, sizeof reached, "%s.reached", file);
  close(open(reached, O_CREAT | O_WRONLY | O_CLOEXEC, 0600));
  while (access(file, F_OK) == 0) usleep(10000);
}

int av_codec_is_encoder(const void *codec);

int avcodec_open2(void *context, const void *codec, void **options) {
  int (*next)(void *, const void *, void **) = dlsym(RTLD_NEXT, "avcodec_open2");
  if (codec && av_codec_is_encoder(codec)) hang();
  return next(context, codec, options);
}

int avcodec_send_frame(void *context, const void *frame) {
  int (*next)(void *, const void *) = dlsym(RTLD_NEXT, "avcodec_send_frame");
  hang();
  return next(context, frame);
}

ssize_t send(int descriptor, const void *data, size_t size, int flags) {
  ssize_t (*next)(int, const void *, size_t, int) = dlsym(RTLD_NEXT, "send");
  struct sockaddr_storage peer = {0};
  socklen_t length = sizeof peer;
  // Not the admin listener, which is a Unix socket.
  if (getpeername(descriptor, (struct sockaddr *)&peer, &length) == 0 && peer.ss_family == AF_INET)
    hang();
  return next(descriptor, data, size, flags);
}
