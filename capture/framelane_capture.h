// framelane_capture: gives raw frames to framelane, or to GStreamer's shmsrc, through shared
// memory.
//
// For programs that capture or render and are no GStreamer pipelines. The frames lie in one area of
// shared memory; a Unix socket carries only where. Nothing is copied: the program writes a frame
// into a slot, and readers read it there. C99 and Linux, no library but libc. Link with what
// `pkg-config --cflags --libs framelane-capture` prints, or copy this file and framelane_capture.c.
//
//     struct framelane_capture_options options = {0};
//     options.socket_path = "/run/framelane-in/cap.sock";
//     options.frame_size = 1280 * 720 * 4;
//     struct framelane_capture* capture;
//     if (framelane_capture_open(&options, &capture) != 0) die(framelane_capture_explain());
//     while (running) {
//       int64_t taken = wait_for_picture();  // nanoseconds of CLOCK_MONOTONIC
//       void* frame;
//       if (framelane_capture_borrow(capture, 0, &frame) != 0) continue;  // no free slot
//       draw(frame);
//       framelane_capture_publish(capture, frame, taken);
//     }
//     framelane_capture_close(capture);
//
// Results: 0 or a count, or a negative errno value; framelane_capture_explain() has the sentence.
//
// Blocking: only calls with `timeout_ms` wait, and only as long as it says (0: not at all;
// negative: as long as it takes). A signal handler that runs meanwhile ends the wait with -EINTR.
// open() reserves the memory, which takes some 0.3 s for a gigabyte.
//
// Threads: any thread may make any call, at the same time as others, and may publish or give back
// what another has borrowed. Only close() must be the last call. The library starts no thread:
// readers are accepted, and their acknowledgements taken, inside borrow(), publish(), readers() and
// drain(). A program that pauses calls readers(capture, 0, 0) now and then, or a new reader waits
// until the next frame.
//
// fork(): a capture belongs to the process that opened it. A child may write into slots that its
// parent has borrowed. All other calls fail in the child with -ECHILD, and close() there closes
// only the child's copies. A child that neither closes nor calls exec() keeps the socket open when
// its parent has died: then no successor can take the path. exec() closes everything.
//
// Signals: no call raises SIGPIPE. No call may be made in a signal handler.
#ifndef FRAMELANE_CAPTURE_H
#define FRAMELANE_CAPTURE_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

// ---- The contract of the capture time (for authors of readers; docs/capture.md) ----
//
// The protocol has no room for a time, so it lies behind the frame, outside the announced size. An
// area whose name begins with FRAMELANE_CAPTURE_AREA_PREFIX has a stamp behind every frame. For a
// buffer announced with (offset, size) the stamp lies in the area at
//
//     offset + FRAMELANE_CAPTURE_STAMP_OFFSET(size)
//
// offset is a multiple of 4096, so the stamp is aligned to 8 bytes. The stamp is complete before
// the buffer is announced, and does not change until every reader to which the buffer was announced
// has acknowledged it or has been disconnected. send() and recv() order the memory: a reader that
// has received the announcement sees the frame and the stamp without a barrier of its own. A reader
// checks that the stamp lies inside the area, and its magic; if either is wrong, the frame has no
// time. Numbers are in the machine's byte order. At least FRAMELANE_CAPTURE_READABLE bytes behind
// every frame can be read; the stamp is among them.
#define FRAMELANE_CAPTURE_AREA_PREFIX "/framelane1-"  // 1 is the version of this contract
#define FRAMELANE_CAPTURE_STAMP_OFFSET(frame_size) (((uint64_t)(frame_size) + 7U) & ~(uint64_t)7U)
#define FRAMELANE_CAPTURE_STAMP_MAGIC UINT64_C(0x31706d6174736c66)  // "flstamp1" on x86
#define FRAMELANE_CAPTURE_TIME_UNKNOWN INT64_MIN
#define FRAMELANE_CAPTURE_READABLE 128

// 32 bytes.
struct framelane_capture_stamp {
  // FRAMELANE_CAPTURE_STAMP_MAGIC
  uint64_t magic;
  // The number of the frame among those published since open(), from 1. A reader that misses a
  // number was not given that frame, because it held its share of the slots.
  uint64_t sequence;
  // When the picture was taken, in nanoseconds of CLOCK_MONOTONIC in the producer's time namespace,
  // or FRAMELANE_CAPTURE_TIME_UNKNOWN.
  int64_t capture_time_ns;
  // 0. Readers ignore it.
  uint64_t reserved;
};

// ---- Open and close ----

#define FRAMELANE_CAPTURE_MIN_SLOTS 2
#define FRAMELANE_CAPTURE_MAX_SLOTS 64
#define FRAMELANE_CAPTURE_MAX_READERS 16  // further connections are closed at once, and counted

// Set all to zero ({0}) first. open() copies what it keeps.
struct framelane_capture_options {
  // Where readers connect; at most 107 bytes. Its folder must exist.
  const char* socket_path;
  // Bytes of a frame. framelane and shmsrc expect GStreamer's default layout (docs/capture.md).
  size_t frame_size;
  // Frames in the area; 0: 12, which suits framelane with its usual ring of 8: it needs 2 more than
  // its ring. If several read, 1 + that many for each.
  int slots;
  // Permissions of the socket; 0: 0660. Who may write to the socket may connect; who may read it
  // may read the area. A reader needs both. Only this process's user may write to the area.
  unsigned mode;
  // The group of socket and area, by name or number. NULL: the one that the socket gets by itself,
  // which is its folder's if that has the setgid bit (as /run/framelane-in has), else the
  // process's.
  const char* group;
  // Not 0: maps all pages at once, so that the first frames cost no page faults.
  int prefault;
  // What happens if several readers are connected and one is slower than the others.
  // 0: it alone misses frames. Each of n readers may hold (slots - 1) / n frames, at least one; it
  // is left out until it gives one back. A reader that is alone may hold all. Not 0: every reader
  // gets every frame, and the slowest one sets the pace.
  int lockstep;
  // 0: 2000; negative: never. A reader that has given nothing back for so long is disconnected, if
  // there are others and borrow() finds no slot because of it. The frames that it holds may then be
  // overwritten while it reads them. A reader that is alone is not disconnected for this, because
  // it holds up nobody else.
  int reader_timeout_ms;
};

struct framelane_capture;

// Makes the area and the socket, and listens. What killed predecessors left is removed: the socket
// at this path, if nobody listens on it; areas of this user that no process holds. On success
// *capture belongs to the caller, who closes it; else it is NULL. Errors, among others: -EINVAL (an
// option), -ENAMETOOLONG, -ENOENT (no folder), -EADDRINUSE (another program listens there), -EEXIST
// (the path is no socket), -EACCES, -EPERM (the group), -ENOSPC (/dev/shm is too small), -ENOMEM,
// -EBUSY (the folder stays locked for 2 s by another process that starts).
int framelane_capture_open(const struct framelane_capture_options* options,
                           struct framelane_capture** capture);

// Disconnects the readers and removes socket and area. Borrowed frames become invalid. Readers keep
// what they have mapped, but may not see what was announced last: drain() first. NULL is allowed.
void framelane_capture_close(struct framelane_capture* capture);

// ---- Frames ----

// Borrows a slot. *frame points to frame_size bytes, aligned to a page, that belong to the caller
// until publish() or give_back(). They are as they were when the slot was last used (at first
// zero), and may be published again untouched. Several may be borrowed at once. Slots take turns.
// -EAGAIN: none was free in time, which `no_slot` counts.
int framelane_capture_borrow(struct framelane_capture* capture, int timeout_ms, void** frame);

// Publishes a borrowed frame. It was taken at capture_time_ns (CLOCK_MONOTONIC, as
// framelane_capture_now() gives it; or FRAMELANE_CAPTURE_TIME_UNKNOWN). Readers get frames in the
// order of these calls. Nothing may be written to the slot any more. Returns how many readers got
// the frame; if none did, the slot is free again. -EINVAL: no borrowed frame.
int framelane_capture_publish(struct framelane_capture* capture, void* frame,
                              int64_t capture_time_ns);

// Gives a borrowed frame back unpublished. -EINVAL: no borrowed frame.
int framelane_capture_give_back(struct framelane_capture* capture, void* frame);

// The time for publish(): CLOCK_MONOTONIC, in nanoseconds.
int64_t framelane_capture_now(void);

// ---- Readers ----

// Accepts readers and takes acknowledgements. Waits until at_least readers are connected and
// returns how many are. -EAGAIN: too few in time.
int framelane_capture_readers(struct framelane_capture* capture, int at_least, int timeout_ms);

// Waits until no reader holds a frame. Before close(), so that the last frames arrive. -EAGAIN:
// readers still hold some.
int framelane_capture_drain(struct framelane_capture* capture, int timeout_ms);

// Since open(). Frames that were not taken: no_slot, no_reader, and for single readers left_out.
struct framelane_capture_counts {
  uint64_t published;         // frames published
  uint64_t no_reader;         // of these, published while no reader was connected
  uint64_t no_slot;           // borrow() found no free slot in time
  uint64_t announced;         // frames given to readers, counted once for each reader
  uint64_t left_out;          // frames not given to a reader that held its share, likewise
  uint64_t readers_accepted;  // connections
  uint64_t readers_refused;   // connections above FRAMELANE_CAPTURE_MAX_READERS
  uint64_t readers_hung;      // disconnected after reader_timeout_ms
  uint64_t readers_wrong;  // disconnected: they sent something else than acknowledgements of frames
                           // that they held, or did not read what was sent to them
  int readers;             // connected now
  int slots_borrowed;      // now
  int slots_held;          // now, by readers
};
int framelane_capture_get_counts(struct framelane_capture* capture,
                                 struct framelane_capture_counts* counts);

// The area's name, as readers get it. Valid until close().
const char* framelane_capture_area_name(const struct framelane_capture* capture);

// What failed last in this thread: what, where, why, and what to do. "" if nothing has. Valid until
// the next failure in this thread.
const char* framelane_capture_explain(void);

#ifdef __cplusplus
}
#endif

#endif
