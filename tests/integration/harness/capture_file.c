// Publishes the frames that it reads from standard input, without losing one: waits for the readers first, for a
// slot before each frame, and for the last acknowledgements. Then prints its counts.
//
//     capture_file SOCKET FRAME_SIZE READERS
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "framelane_capture.h"

static int fail(const char* what) {
  fprintf(stderr, "%s: %s\n", what, framelane_capture_explain());
  return EXIT_FAILURE;
}

int main(int count, char** arguments) {
  if (count != 4) return 2;
  struct framelane_capture_options options = {0};
  options.socket_path = arguments[1];
  options.frame_size = strtoull(arguments[2], NULL, 10);
  options.slots = 4;
  options.lockstep = 1;
  options.reader_timeout_ms = -1;
  struct framelane_capture* capture;
  if (framelane_capture_open(&options, &capture) != 0) return fail("open");
  if (framelane_capture_readers(capture, atoi(arguments[3]), 60000) < 0) return fail("readers");
  for (;;) {
    void* frame;
    if (framelane_capture_borrow(capture, 60000, &frame) != 0) return fail("borrow");
    if (fread(frame, options.frame_size, 1, stdin) != 1) break;
    if (framelane_capture_publish(capture, frame, framelane_capture_now()) < 0) return fail("publish");
  }
  if (framelane_capture_drain(capture, 60000) != 0) return fail("drain");
  struct framelane_capture_counts counts;
  framelane_capture_get_counts(capture, &counts);
  printf("published %" PRIu64 ", announced %" PRIu64 "\n", counts.published, counts.announced);
  framelane_capture_close(capture);
  return EXIT_SUCCESS;
}
