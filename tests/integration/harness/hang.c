// Preloaded into framelane: opening an encoder, handing it a frame, a write to a TCP peer, and deleting
// a file below the folder $FRAMELANE_TEST_HANG_DELETING do not return while the file
// $FRAMELANE_TEST_HANG exists; with $FRAMELANE_TEST_HANG_READING instead of all these, reading from any
// place of that file; with $FRAMELANE_TEST_HANG_RECEIVING instead of all these, taking a packet from an
// encoder. The first of them makes the file $FRAMELANE_TEST_HANG.reached.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

static void hang_now(void) {
  const char *file = getenv("FRAMELANE_TEST_HANG");
  if (!file || access(file, F_OK) != 0) return;
  char reached[4096];
  snprintf(reached, sizeof reached, "%s.reached", file);
  close(open(reached, O_CREAT | O_WRONLY | O_CLOEXEC, 0600));
  while (access(file, F_OK) == 0) usleep(10000);
}

static void hang(void) {
  if (!getenv("FRAMELANE_TEST_HANG_READING") && !getenv("FRAMELANE_TEST_HANG_RECEIVING")) hang_now();
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

int avcodec_receive_packet(void *context, void *packet) {
  int (*next)(void *, void *) = dlsym(RTLD_NEXT, "avcodec_receive_packet");
  if (getenv("FRAMELANE_TEST_HANG_RECEIVING")) hang_now();
  return next(context, packet);
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

ssize_t pread(int descriptor, void *data, size_t size, off_t offset) {
  ssize_t (*next)(int, void *, size_t, off_t) = dlsym(RTLD_NEXT, "pread");
  const char *file = getenv("FRAMELANE_TEST_HANG_READING");
  struct stat named, open;
  if (file && stat(file, &named) == 0 && fstat(descriptor, &open) == 0 &&
      named.st_dev == open.st_dev && named.st_ino == open.st_ino)
    hang_now();
  return next(descriptor, data, size, offset);
}

static void hang_deleting(const char *path) {
  const char *folder = getenv("FRAMELANE_TEST_HANG_DELETING");
  if (folder && strncmp(path, folder, strlen(folder)) == 0) hang();
}

int unlink(const char *path) {
  int (*next)(const char *) = dlsym(RTLD_NEXT, "unlink");
  hang_deleting(path);
  return next(path);
}

int remove(const char *path) {
  int (*next)(const char *) = dlsym(RTLD_NEXT, "remove");
  hang_deleting(path);
  return next(path);
}
