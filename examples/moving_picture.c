// Gives a moving picture to framelane or GStreamer through shared memory: colour bars that drift to
// the left, and a white square that jumps one step each frame. Shows how a capture program uses
// framelane_capture.h.
//
//     cc -O2 -o moving_picture moving_picture.c $(pkg-config --cflags --libs framelane-capture)
//     ./moving_picture /run/framelane-in/cap.sock             # 1280x720, 25 a second, until Ctrl-C
//     ./moving_picture SOCKET [WIDTH HEIGHT [RATE [FRAMES]]]  # FRAMES: ends after so many
//
// framelane reads it with
//
//     input: {url: "shm:/run/framelane-in/cap.sock", format: rawvideo, pixel_format: bgra,
//             size: 1280x720, rate: 25, timestamps: producer}
//
// and GStreamer with
//
//     gst-launch-1.0 shmsrc socket-path=/run/framelane-in/cap.sock is-live=true do-timestamp=true !
//       video/x-raw,format=BGRA,width=1280,height=720,framerate=25/1 ! videoconvert ! autovideosink
#define _POSIX_C_SOURCE 200809L
#include <errno.h>
#include <framelane_capture.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static const int64_t kSecond = 1000000000;

static volatile sig_atomic_t stopped = 0;

static void stop(int number) {
  (void)number;
  stopped = 1;
}

// Blue, green, red, alpha, as a little-endian number. In BGRA rows need no padding: 4 bytes a
// pixel.
static uint32_t bar(int index) {
  static const uint32_t bars[8] = {0xffffffff, 0xffffff00, 0xff00ffff, 0xff00ff00,
                                   0xffff00ff, 0xffff0000, 0xff0000ff, 0xff101010};
  return bars[index % 8];
}

static void draw(void* frame, int width, int height, uint64_t number) {
  uint32_t* pixels = frame;
  const int shift = (int)(number * 4 % (uint64_t)width);
  for (int x = 0; x < width; x++) pixels[x] = bar((x + shift) % width * 8 / width);
  for (int y = 1; y < height; y++) {
    memcpy(pixels + (size_t)y * (size_t)width, pixels, (size_t)width * sizeof *pixels);
  }
  const int side = height / 10;
  const int left = side < width ? (int)(number * 7 % (uint64_t)(width - side)) : 0;
  for (int y = height / 2; y < height / 2 + side; y++) {
    for (int x = left; x < left + side && x < width; x++) {
      pixels[(size_t)y * (size_t)width + (size_t)x] = 0xffffffff;
    }
  }
}

// Sleeps until a moment of CLOCK_MONOTONIC, or until a signal comes. By moments and not by pauses:
// what drawing takes does not add up.
static void sleep_until(int64_t moment) {
  const struct timespec until = {(time_t)(moment / kSecond), (long)(moment % kSecond)};
  while (!stopped && clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL) == EINTR) {
  }
}

static void print_counts(struct framelane_capture* capture) {
  struct framelane_capture_counts counts;
  if (framelane_capture_get_counts(capture, &counts) != 0) return;
  printf("%" PRIu64 " frames published; not taken: %" PRIu64 " without a reader, %" PRIu64
         " without a free slot, %" PRIu64 " by single readers that were too slow; %d readers\n",
         counts.published, counts.no_reader, counts.no_slot, counts.left_out, counts.readers);
  fflush(stdout);
}

static int fail(const char* what) {
  fprintf(stderr, "moving_picture: %s: %s\n", what, framelane_capture_explain());
  return EXIT_FAILURE;
}

int main(int count, char** arguments) {
  const int width = count > 3 ? atoi(arguments[2]) : 1280;
  const int height = count > 3 ? atoi(arguments[3]) : 720;
  const int rate = count > 4 ? atoi(arguments[4]) : 25;
  const uint64_t frames = count > 5 ? strtoull(arguments[5], NULL, 10) : UINT64_MAX;
  if (count < 2 || count == 3 || arguments[1][0] == '-' || width < 1 || width > 16384 ||
      height < 1 || height > 16384 || rate < 1) {
    fprintf(stderr, "usage: %s SOCKET [WIDTH HEIGHT [RATE [FRAMES]]]\n", arguments[0]);
    return 2;
  }
  struct sigaction action;
  memset(&action, 0, sizeof action);
  action.sa_handler = stop;
  sigaction(SIGINT, &action, NULL);
  sigaction(SIGTERM, &action, NULL);

  struct framelane_capture_options options = {0};
  options.socket_path = arguments[1];
  options.frame_size = (size_t)width * (size_t)height * 4;
  options.prefault = 1;
  struct framelane_capture* capture;
  if (framelane_capture_open(&options, &capture) != 0) return fail("open");
  printf("readers connect to %s; %dx%d BGRA, %d frames a second\n", arguments[1], width, height,
         rate);
  fflush(stdout);

  const int64_t start = framelane_capture_now();
  int64_t said = start;
  for (uint64_t number = 0; number < frames && !stopped; number++) {
    // The exact moment of this frame. A camera would give its own.
    const int64_t taken = start + (int64_t)(number / (uint64_t)rate) * kSecond +
                          (int64_t)(number % (uint64_t)rate) * kSecond / rate;
    sleep_until(taken);
    if (stopped) break;
    void* frame;
    const int status = framelane_capture_borrow(capture, 0, &frame);
    if (status == 0) {
      draw(frame, width, height, number);
      if (framelane_capture_publish(capture, frame, taken) < 0) return fail("publish");
    } else if (status != -EAGAIN) {  // -EAGAIN: readers hold all slots, and the frame is not taken
      return fail("borrow");
    }
    if (taken - said >= 10 * kSecond) {
      print_counts(capture);
      said = taken;
    }
  }
  framelane_capture_drain(capture, 1000);  // lets the readers see the last frames
  print_counts(capture);
  framelane_capture_close(capture);
  return EXIT_SUCCESS;
}
