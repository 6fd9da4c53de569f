// Preloaded into framelane: while the file $FRAMELANE_TEST_SHORTAGE says "threads", no thread
// starts; "memory": FFmpeg gets none to open an input or output; "sound": none to open a decoder of
// sound; "scaler": none for swscale; "reading": none to read on; "disk": FFmpeg cannot open a part
// file, for an I/O error; "EMFILE", "ENFILE": no file to read, for this error.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <libavcodec/avcodec.h>
#include <stdarg.h>
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

int avcodec_open2(AVCodecContext *context, const AVCodec *codec, AVDictionary **options) {
  int (*next)(AVCodecContext *, const AVCodec *, AVDictionary **) =
      dlsym(RTLD_NEXT, "avcodec_open2");
  const int sound = codec && codec->type == AVMEDIA_TYPE_AUDIO && av_codec_is_decoder(codec);
  return sound && is_short("sound") ? AVERROR(ENOMEM) : next(context, codec, options);
}

int av_read_frame(void *context, AVPacket *packet) {
  int (*next)(void *, AVPacket *) = dlsym(RTLD_NEXT, "av_read_frame");
  return is_short("reading") ? AVERROR(ENOMEM) : next(context, packet);
}

void *sws_getContext(int from_width, int from_height, int from, int to_width, int to_height, int to,
                     int flags, void *from_filter, void *to_filter, const double *parameters) {
  void *(*next)(int, int, int, int, int, int, int, void *, void *, const double *) =
      dlsym(RTLD_NEXT, "sws_getContext");
  return is_short("scaler") ? NULL
                            : next(from_width, from_height, from, to_width, to_height, to, flags,
                                   from_filter, to_filter, parameters);
}

// FFmpeg's name of open(); framelane does not use it.
int open64(const char *path, int flags, ...) {
  int (*next)(const char *, int, ...) = dlsym(RTLD_NEXT, "open64");
  const char *end = strrchr(path, '.');
  if ((flags & O_ACCMODE) == O_RDONLY) {
    const int part = end && strcmp(end, ".part") == 0;
    const int error = part && is_short("disk") ? EIO
                      : is_short("EMFILE")     ? EMFILE
                      : is_short("ENFILE")     ? ENFILE
                                               : 0;
    errno = error;
    if (error) return -1;
  }
  va_list more;
  va_start(more, flags);
  const int mode = va_arg(more, int);
  va_end(more);
  return next(path, flags, mode);
}
