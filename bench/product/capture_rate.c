// How many frames a second capture/framelane_capture.c hands over, and what one costs the program.
// The slots are published again untouched, so no memory is copied: this is the cost of the
// hand-over alone.
//
//     capture_rate [SECONDS]
//     capture_rate --serve SOCKET FRAME_SIZE SLOTS
//
// The first has 0, 1 and 2 reader processes of its own. The second publishes to whoever reads, as
// fast as they give frames back, until a signal; for measuring a reader.
//
// Also builds alone: cc -O2 -I. -o capture_rate bench/product/capture_rate.c
// capture/framelane_capture.c -pthread
#define _POSIX_C_SOURCE 200809L
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "capture/framelane_capture.h"

struct packet {
  uint32_t type;
  int32_t area;
  uint64_t offset;
  uint64_t last;
};

static volatile sig_atomic_t stopped = 0;

static void stop(int number) {
  (void)number;
  stopped = 1;
}

static int fail(const char* what) {
  fprintf(stderr, "capture_rate: %s: %s\n", what, framelane_capture_explain());
  return EXIT_FAILURE;
}

// Acknowledges each frame at once, with one call each as shmsrc does, until the producer closes the
// connection.
static void read_all(const char* path) {
  struct sockaddr_un address;
  memset(&address, 0, sizeof address);
  address.sun_family = AF_UNIX;
  snprintf(address.sun_path, sizeof address.sun_path, "%s", path);
  const int fd = socket(AF_UNIX, SOCK_STREAM, 0);
  if (connect(fd, (const struct sockaddr*)&address, sizeof address) != 0) return;
  struct packet packet;
  char name[256];
  if (recv(fd, &packet, sizeof packet, MSG_WAITALL) != (ssize_t)sizeof packet) return;
  const size_t length = (uint32_t)packet.last;
  if (length > sizeof name || recv(fd, name, length, MSG_WAITALL) != (ssize_t)length) return;
  while (recv(fd, &packet, sizeof packet, MSG_WAITALL) == (ssize_t)sizeof packet) {
    packet.type = 4;
    packet.last = 0;
    if (send(fd, &packet, sizeof packet, MSG_NOSIGNAL) != (ssize_t)sizeof packet) return;
  }
}

static double seconds_of(clockid_t clock) {
  struct timespec now;
  clock_gettime(clock, &now);
  return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

// Publishes for so long; 0 or the result of a call that failed.
static int publish_for(struct framelane_capture* capture, double seconds, uint64_t* frames) {
  const double end = seconds_of(CLOCK_MONOTONIC) + seconds;
  *frames = 0;
  while (!stopped && seconds_of(CLOCK_MONOTONIC) < end) {
    for (int i = 0; i < 64 && !stopped; i++) {
      void* frame;
      int status = framelane_capture_borrow(capture, 1000, &frame);
      if (status == -EAGAIN || status == -EINTR) continue;
      if (status == 0) status = framelane_capture_publish(capture, frame, framelane_capture_now());
      if (status < 0) return status;
      (*frames)++;
    }
  }
  return 0;
}

static int measure(const char* path, int readers, double seconds) {
  struct framelane_capture_options options = {0};
  options.socket_path = path;
  options.frame_size = (size_t)1920 * 1080 * 4;
  options.prefault = 1;
  options.lockstep = 1;
  struct framelane_capture* capture;
  if (framelane_capture_open(&options, &capture) != 0) return fail("open");
  pid_t children[2];
  for (int i = 0; i < readers; i++) {
    children[i] = fork();
    if (children[i] == 0) {
      framelane_capture_close(capture);
      read_all(path);
      _exit(0);
    }
  }
  if (framelane_capture_readers(capture, readers, 10000) < 0) return fail("readers");
  const double started = seconds_of(CLOCK_MONOTONIC);
  const double cpu_started = seconds_of(CLOCK_THREAD_CPUTIME_ID);
  uint64_t frames;
  if (publish_for(capture, seconds, &frames) != 0) return fail("publish");
  const double took = seconds_of(CLOCK_MONOTONIC) - started;
  const double cpu = seconds_of(CLOCK_THREAD_CPUTIME_ID) - cpu_started;
  printf("%d readers: %.0f frames/s, %.2f us of the program's CPU time for borrow and publish\n",
         readers, (double)frames / took, cpu / (double)frames * 1e6);
  framelane_capture_close(capture);
  for (int i = 0; i < readers; i++) waitpid(children[i], NULL, 0);
  return EXIT_SUCCESS;
}

static int serve(char** arguments) {
  struct framelane_capture_options options = {0};
  options.socket_path = arguments[0];
  options.frame_size = strtoull(arguments[1], NULL, 10);
  options.slots = atoi(arguments[2]);
  options.prefault = 1;
  options.lockstep = 1;
  struct framelane_capture* capture;
  if (framelane_capture_open(&options, &capture) != 0) return fail("open");
  printf("ready\n");
  fflush(stdout);
  while (!stopped) {
    uint64_t frames;
    const int readers = framelane_capture_readers(capture, 1, 1000);
    if (readers > 0 && publish_for(capture, 0.01, &frames) != 0) return fail("publish");
  }
  struct framelane_capture_counts counts;
  framelane_capture_get_counts(capture, &counts);
  printf("%llu frames published, %llu of them without a reader\n",
         (unsigned long long)counts.published, (unsigned long long)counts.no_reader);
  framelane_capture_close(capture);
  return EXIT_SUCCESS;
}

int main(int count, char** arguments) {
  struct sigaction action;
  memset(&action, 0, sizeof action);
  action.sa_handler = stop;
  sigaction(SIGINT, &action, NULL);
  sigaction(SIGTERM, &action, NULL);
  if (count == 5 && strcmp(arguments[1], "--serve") == 0) return serve(arguments + 2);
  const double seconds = count == 2 ? atof(arguments[1]) : 1;
  if (count > 2 || seconds <= 0) {
    fprintf(stderr, "usage: %s [SECONDS] | --serve SOCKET FRAME_SIZE SLOTS\n", arguments[0]);
    return 2;
  }
  char path[64];
  snprintf(path, sizeof path, "/tmp/capture_rate.%ld.sock", (long)getpid());
  for (int readers = 0; readers <= 2; readers++) {
    const int status = measure(path, readers, seconds);
    if (status != EXIT_SUCCESS) return status;
  }
  return EXIT_SUCCESS;
}
