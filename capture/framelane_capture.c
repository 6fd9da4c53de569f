// Longer than 400 lines: one file, so that programs can copy it. See framelane_capture.h.
//
// The protocol is that of GStreamer's shmsink and shmsrc (gst-plugins-bad, sys/shm): packets of 24
// bytes over a Unix stream socket, in the machine's byte order, as a 64-bit machine lays them out.
#define _GNU_SOURCE
#include "framelane_capture.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <inttypes.h>
#include <limits.h>
#include <poll.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

enum {
  kNewArea =
      1,  // to the reader: size of the area, length of its name with the NUL; the name follows
  kBuffer = 3,       // to the reader: offset and size of a frame
  kAcknowledge = 4,  // from the reader: offset
  kAreaId = 1,       // there is one area
  kPage = 4096,      // at least; see `page` in make_area
  kDefaultSlots = 12,
  kDefaultMode = 0660,
  kDefaultReaderTimeoutMs = 2000,
  kAreaNameSize = 64
};
#define NANOSECONDS INT64_C(1000000000)
// How often new readers and acknowledgements are looked for while slots are free.
#define SERVE_INTERVAL (NANOSECONDS / 1000)
// How long no reader is accepted after accept() failed (too many open files, say).
#define ACCEPT_PAUSE (NANOSECONDS / 10)
// How long open() waits for another process that takes over a socket in the same folder.
#define TAKE_OVER_LIMIT (2 * NANOSECONDS)

struct packet {
  uint32_t type;
  int32_t area;
  uint64_t offset;  // kNewArea: the area's size
  union {
    uint64_t size;
    uint32_t name_length;
  } u;
};

struct reader {
  int fd;
  uint64_t held;     // bit i: it has not acknowledged slot i
  int64_t progress;  // when it last acknowledged, or got a frame while it held none
  size_t filled;     // bytes of `input`
  unsigned char input[sizeof(struct packet) * FRAMELANE_CAPTURE_MAX_SLOTS];
};

// A thread that waits for something, outside the lock.
struct waiter {
  enum { kForSlot, kForReaders, kForDrain } what;
  int readers;          // kForReaders: so many
  int has_connections;  // somebody may want to be accepted
  uint64_t accepted;    // how many readers had been accepted when it went to sleep
  int64_t until;        // how long it sleeps
  struct waiter* next;
};

struct framelane_capture {
  pid_t owner;
  int slots;
  int lockstep;
  int64_t reader_timeout;  // negative: never
  size_t frame_size;
  size_t stride;  // from one slot's frame to the next
  int area_fd;    // its lock says that the area is in use
  unsigned char* area;
  size_t area_size;
  char area_name[kAreaNameSize];
  int listener;
  int bound;  // the socket's file is ours
  struct sockaddr_un address;
  dev_t socket_device;
  ino_t socket_inode;
  int wake[2];  // a pipe; readable if what a waiter waits for may have come

  pthread_mutex_t lock;  // for all that follows
  int woken;             // a byte is in the pipe
  struct waiter* waiters;
  uint64_t borrowed;  // bit i: slot i is the program's
  int next_slot;
  int64_t served;        // when new readers and acknowledgements were last looked for
  int64_t accept_after;  // accept() failed: not before
  int reader_count;
  struct reader readers[FRAMELANE_CAPTURE_MAX_READERS];
  struct framelane_capture_counts counts;
};

// ---- Errors ----

static __thread char last_failure[512];

#ifdef __GNUC__
__attribute__((format(printf, 2, 3)))
#endif
static int
fail(int code, const char* format, ...) {
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(last_failure, sizeof last_failure, format, arguments);
  va_end(arguments);
  return -code;
}

const char* framelane_capture_explain(void) { return last_failure; }

static int check_owner(const struct framelane_capture* c) {
  if (!c) return fail(EINVAL, "the capture is NULL: check what framelane_capture_open returned");
  if (c->owner == getpid()) return 0;
  return fail(ECHILD,
              "%s was opened by process %ld: a forked child may only write into borrowed slots and "
              "close it",
              c->address.sun_path, (long)c->owner);
}

// ---- Small things ----

int64_t framelane_capture_now(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec * NANOSECONDS + now.tv_nsec;
}

static size_t round_up(size_t value, size_t unit) { return (value + unit - 1) / unit * unit; }

static int count_bits(uint64_t bits) {
  int count = 0;
  for (; bits; bits &= bits - 1) count++;
  return count;
}

static uint64_t held_by_readers(const struct framelane_capture* c) {
  uint64_t held = 0;
  for (int i = 0; i < c->reader_count; i++) held |= c->readers[i].held;
  return held;
}

static uint64_t free_slots(const struct framelane_capture* c) {
  const uint64_t all = UINT64_MAX >> (FRAMELANE_CAPTURE_MAX_SLOTS - c->slots);
  return all & ~c->borrowed & ~held_by_readers(c);
}

// The bit of a borrowed frame, or 0.
static uint64_t borrowed_bit(const struct framelane_capture* c, const void* frame) {
  const uintptr_t offset = (uintptr_t)frame - (uintptr_t)c->area;
  if (offset % c->stride != 0 || offset / c->stride >= (size_t)c->slots) return 0;
  return c->borrowed & (UINT64_C(1) << (offset / c->stride));
}

// ---- Readers ----

// Its slots are free if no other reader holds them. The last reader takes its place.
static void remove_reader(struct framelane_capture* c, int index) {
  struct reader* reader = &c->readers[index];
  shutdown(reader->fd, SHUT_RDWR);  // also ends the connection if a forked child has a copy
  close(reader->fd);
  *reader = c->readers[--c->reader_count];
}

static int send_packet(int fd, const void* bytes, size_t size) {
  ssize_t sent;
  do {
    sent = send(fd, bytes, size, MSG_NOSIGNAL | MSG_DONTWAIT);
  } while (sent < 0 && errno == EINTR);
  if (sent == (ssize_t)size) return 0;
  return sent < 0 ? errno : EAGAIN;  // a packet that was sent in part cannot be completed
}

// GStreamer's readers want the packet and the name to be there at once, so both go in one call.
static int announce_area(const struct framelane_capture* c, int fd) {
  unsigned char bytes[sizeof(struct packet) + kAreaNameSize];
  const size_t name_length = strlen(c->area_name) + 1;
  struct packet packet;
  memset(&packet, 0, sizeof packet);
  packet.type = kNewArea;
  packet.area = kAreaId;
  packet.offset = c->area_size;
  packet.u.name_length = (uint32_t)name_length;
  memcpy(bytes, &packet, sizeof packet);
  memcpy(bytes + sizeof packet, c->area_name, name_length);
  return send_packet(fd, bytes, sizeof packet + name_length);
}

static void accept_readers(struct framelane_capture* c, int64_t now) {
  // Bounded, so that a client that connects again and again cannot hold up the program.
  for (int i = 0; i < FRAMELANE_CAPTURE_MAX_READERS && now >= c->accept_after; i++) {
    const int fd = accept4(c->listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (fd < 0) {
      if (errno == EINTR || errno == ECONNABORTED) continue;
      if (errno != EAGAIN) c->accept_after = now + ACCEPT_PAUSE;
      return;
    }
    if (c->reader_count == FRAMELANE_CAPTURE_MAX_READERS) {
      c->counts.readers_refused++;
      close(fd);
    } else if (announce_area(c, fd) != 0) {
      close(fd);  // it has left already
    } else {
      struct reader* reader = &c->readers[c->reader_count++];
      memset(reader, 0, sizeof *reader);
      reader->fd = fd;
      reader->progress = now;
      c->counts.readers_accepted++;
    }
  }
}

// False if the packet is no acknowledgement of a frame that the reader holds.
static int acknowledge(struct framelane_capture* c, struct reader* reader,
                       const struct packet* packet) {
  if (packet->type != kAcknowledge || packet->area != kAreaId) return 0;
  if (packet->offset % c->stride != 0 || packet->offset / c->stride >= (uint64_t)c->slots) return 0;
  const uint64_t bit = UINT64_C(1) << (packet->offset / c->stride);
  if (!(reader->held & bit)) return 0;
  reader->held &= ~bit;
  return 1;
}

// Takes what a reader has sent. Returns 0 if it has left or was disconnected; another reader then
// has its place. A reader can make no more work than it was given frames: the first wrong packet
// ends it.
static int hear_reader(struct framelane_capture* c, int index, int64_t now) {
  struct reader* reader = &c->readers[index];
  for (;;) {
    const size_t room = sizeof reader->input - reader->filled;
    const ssize_t got = recv(reader->fd, reader->input + reader->filled, room, MSG_DONTWAIT);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return 1;
    if (got <= 0) {
      remove_reader(c, index);
      return 0;
    }
    reader->filled += (size_t)got;
    size_t used = 0;
    for (; reader->filled - used >= sizeof(struct packet); used += sizeof(struct packet)) {
      struct packet packet;
      memcpy(&packet, reader->input + used, sizeof packet);
      if (!acknowledge(c, reader, &packet)) {
        c->counts.readers_wrong++;
        remove_reader(c, index);
        return 0;
      }
      reader->progress = now;
    }
    reader->filled -= used;
    memmove(reader->input, reader->input + used, reader->filled);
    if ((size_t)got < room) return 1;
  }
}

static void hear_readers(struct framelane_capture* c, int64_t now) {
  for (int i = c->reader_count - 1; i >= 0; i--) hear_reader(c, i, now);
}

static void serve_if_due(struct framelane_capture* c, int64_t now) {
  if (now - c->served < SERVE_INTERVAL) return;
  c->served = now;
  hear_readers(c, now);
  accept_readers(c, now);
}

// When the reader that has made no progress for longest will have hung for too long; INT64_MAX if
// there is none.
static int64_t next_hang(const struct framelane_capture* c) {
  int64_t next = INT64_MAX;
  if (c->reader_timeout < 0 || c->reader_count < 2) return next;
  for (int i = 0; i < c->reader_count; i++) {
    const int64_t hangs = c->readers[i].progress + c->reader_timeout;
    if (c->readers[i].held && hangs < next) next = hangs;
  }
  return next;
}

// Makes room if no slot is free because of readers that hang: the one that has hung for longest
// goes first, the last reader never.
static void cut_off_hung(struct framelane_capture* c, int64_t now) {
  while (!free_slots(c) && next_hang(c) <= now) {
    int longest = -1;
    for (int i = 0; i < c->reader_count; i++) {
      const struct reader* reader = &c->readers[i];
      if (!reader->held) continue;
      if (longest < 0 || reader->progress < c->readers[longest].progress) longest = i;
    }
    c->counts.readers_hung++;
    remove_reader(c, longest);
  }
}

// ---- Waiting ----

static int has_come(const struct framelane_capture* c, const struct waiter* waiter) {
  switch (waiter->what) {
    case kForSlot:
      return free_slots(c) != 0;
    case kForReaders:
      return c->reader_count >= waiter->readers;
    case kForDrain:
      return held_by_readers(c) == 0;
  }
  return 1;
}

// True if a thread that sleeps has to look again: what it waits for has come, there is a reader
// whom it does not hear, or one would hang before the thread wakes.
static int must_wake(const struct framelane_capture* c, const struct waiter* waiter) {
  return has_come(c, waiter) || waiter->accepted != c->counts.readers_accepted ||
         (waiter->what == kForSlot && next_hang(c) < waiter->until);
}

// Another thread may wait for what this call has changed. The byte stays in the pipe until a waiter
// takes it, who leaves it again for the others.
static void leave(struct framelane_capture* c) {
  for (const struct waiter* waiter = c->waiters; waiter && !c->woken; waiter = waiter->next) {
    if (must_wake(c, waiter)) c->woken = write(c->wake[1], "", 1) == 1;
  }
  pthread_mutex_unlock(&c->lock);
}

static int enter(struct framelane_capture* c) {
  const int status = check_owner(c);
  if (status == 0) pthread_mutex_lock(&c->lock);
  return status;
}

// Waits without the lock until a reader or another thread does something. -EINTR, or 0.
static int wait_for_events(struct framelane_capture* c, struct waiter* waiter, int64_t now,
                           int64_t until) {
  struct pollfd fds[FRAMELANE_CAPTURE_MAX_READERS + 2];
  int count = 0;
  fds[count++].fd = c->wake[0];
  fds[count++].fd = now >= c->accept_after ? c->listener : -1;
  if (now < c->accept_after && c->accept_after < until) until = c->accept_after;
  for (int i = 0; i < c->reader_count; i++) fds[count++].fd = c->readers[i].fd;
  for (int i = 0; i < count; i++) fds[i].events = POLLIN;

  int64_t milliseconds = -1;
  if (until != INT64_MAX) {
    milliseconds = (until - now + NANOSECONDS / 1000 - 1) / (NANOSECONDS / 1000);
    if (milliseconds > INT_MAX) milliseconds = INT_MAX;
  }
  waiter->accepted = c->counts.readers_accepted;
  waiter->until = until;
  waiter->next = c->waiters;
  c->waiters = waiter;
  leave(c);
  const int ready = poll(fds, (nfds_t)count, (int)milliseconds);
  const int error = errno;
  waiter->has_connections = fds[1].fd < 0 || (ready > 0 && fds[1].revents != 0);
  pthread_mutex_lock(&c->lock);
  struct waiter** link = &c->waiters;
  while (*link != waiter) link = &(*link)->next;
  *link = waiter->next;
  char byte;
  if (c->woken && read(c->wake[0], &byte, 1) == 1) c->woken = 0;
  return ready < 0 && error == EINTR ? -EINTR : 0;
}

static int wait_for(struct framelane_capture* c, struct waiter* waiter, int timeout_ms) {
  int64_t now = framelane_capture_now();
  const int64_t deadline = timeout_ms < 0 ? INT64_MAX : now + timeout_ms * (NANOSECONDS / 1000);
  for (;;) {
    hear_readers(c, now);
    if (waiter->has_connections) accept_readers(c, now);
    if (waiter->what == kForSlot) cut_off_hung(c, now);
    if (has_come(c, waiter)) return 0;
    if (now >= deadline) return -EAGAIN;
    const int64_t hang = waiter->what == kForSlot ? next_hang(c) : INT64_MAX;
    if (wait_for_events(c, waiter, now, hang < deadline ? hang : deadline) != 0) {
      return fail(EINTR, "%s: a signal ended the wait", c->address.sun_path);
    }
    now = framelane_capture_now();
  }
}

// ---- The calls on frames ----

int framelane_capture_borrow(struct framelane_capture* c, int timeout_ms, void** frame) {
  int status = enter(c);
  if (status != 0) return status;
  const int64_t now = framelane_capture_now();
  serve_if_due(c, now);
  if (!free_slots(c)) {
    struct waiter waiter = {kForSlot, 0, 0, 0, 0, NULL};  // serve_if_due() has accepted
    status = wait_for(c, &waiter, timeout_ms);
  }
  if (status == 0) {
    const uint64_t available = free_slots(c);
    int slot = c->next_slot;
    while (!(available & (UINT64_C(1) << slot))) slot = (slot + 1) % c->slots;
    c->next_slot = (slot + 1) % c->slots;
    c->borrowed |= UINT64_C(1) << slot;
    *frame = c->area + (size_t)slot * c->stride;
  } else if (status == -EAGAIN) {
    c->counts.no_slot++;
    status = fail(EAGAIN,
                  "%s: none of the %d slots is free: the program holds %d, its %d readers hold %d; "
                  "open with more slots, or let the readers give frames back sooner",
                  c->address.sun_path, c->slots, count_bits(c->borrowed), c->reader_count,
                  count_bits(held_by_readers(c)));
  }
  leave(c);
  return status;
}

// False if the reader holds its share of the slots.
static int may_have_more(const struct framelane_capture* c, const struct reader* reader) {
  if (c->lockstep || c->reader_count < 2) return 1;
  const int share = (c->slots - 1) / c->reader_count;
  return count_bits(reader->held) < (share > 1 ? share : 1);
}

static int announce_frame(struct framelane_capture* c, uint64_t bit, size_t offset, int64_t now) {
  struct packet packet;
  memset(&packet, 0, sizeof packet);
  packet.type = kBuffer;
  packet.area = kAreaId;
  packet.offset = offset;
  packet.u.size = c->frame_size;
  int reached = 0;
  for (int i = c->reader_count - 1; i >= 0; i--) {
    struct reader* reader = &c->readers[i];
    if (!may_have_more(c, reader)) {  // as far as its acknowledgements have been taken
      if (!hear_reader(c, i, now)) continue;
      if (!may_have_more(c, reader)) {
        c->counts.left_out++;
        continue;
      }
    }
    const int error = send_packet(reader->fd, &packet, sizeof packet);
    if (error != 0) {
      c->counts.readers_wrong += error == EAGAIN;
      remove_reader(c, i);
      continue;
    }
    if (!reader->held) reader->progress = now;
    reader->held |= bit;
    reached++;
  }
  return reached;
}

int framelane_capture_publish(struct framelane_capture* c, void* frame, int64_t capture_time_ns) {
  const int status = enter(c);
  if (status != 0) return status;
  const uint64_t bit = borrowed_bit(c, frame);
  if (!bit) {
    leave(c);
    return fail(EINVAL, "%s: %p is no frame that is borrowed now", c->address.sun_path, frame);
  }
  const int64_t now = framelane_capture_now();
  serve_if_due(c, now);

  struct framelane_capture_stamp stamp;
  memset(&stamp, 0, sizeof stamp);
  stamp.magic = FRAMELANE_CAPTURE_STAMP_MAGIC;
  stamp.sequence = ++c->counts.published;
  stamp.capture_time_ns = capture_time_ns;
  unsigned char* bytes = frame;
  memcpy(bytes + FRAMELANE_CAPTURE_STAMP_OFFSET(c->frame_size), &stamp, sizeof stamp);

  c->borrowed &= ~bit;
  c->counts.no_reader += c->reader_count == 0;
  const int reached = announce_frame(c, bit, (size_t)(bytes - c->area), now);
  c->counts.announced += (uint64_t)reached;
  leave(c);
  return reached;
}

int framelane_capture_give_back(struct framelane_capture* c, void* frame) {
  int status = enter(c);
  if (status != 0) return status;
  const uint64_t bit = borrowed_bit(c, frame);
  if (!bit)
    status = fail(EINVAL, "%s: %p is no frame that is borrowed now", c->address.sun_path, frame);
  c->borrowed &= ~bit;
  leave(c);
  return status;
}

int framelane_capture_readers(struct framelane_capture* c, int at_least, int timeout_ms) {
  int status = enter(c);
  if (status != 0) return status;
  struct waiter waiter = {kForReaders, at_least, 1, 0, 0, NULL};
  status = wait_for(c, &waiter, timeout_ms);
  if (status == 0) {
    status = c->reader_count;
  } else if (status == -EAGAIN) {
    status = fail(
        EAGAIN,
        "%s: %d readers are connected, %d were waited for; check that they run, use this path, and "
        "may write to the socket",
        c->address.sun_path, c->reader_count, at_least);
  }
  leave(c);
  return status;
}

int framelane_capture_drain(struct framelane_capture* c, int timeout_ms) {
  int status = enter(c);
  if (status != 0) return status;
  struct waiter waiter = {kForDrain, 0, 1, 0, 0, NULL};
  status = wait_for(c, &waiter, timeout_ms);
  if (status == -EAGAIN) {
    status =
        fail(EAGAIN, "%s: readers still hold %d frames; wait for longer, or close without them",
             c->address.sun_path, count_bits(held_by_readers(c)));
  }
  leave(c);
  return status;
}

int framelane_capture_get_counts(struct framelane_capture* c,
                                 struct framelane_capture_counts* counts) {
  const int status = enter(c);
  if (status != 0) return status;
  *counts = c->counts;
  counts->readers = c->reader_count;
  counts->slots_borrowed = count_bits(c->borrowed);
  counts->slots_held = count_bits(held_by_readers(c));
  leave(c);
  return 0;
}

const char* framelane_capture_area_name(const struct framelane_capture* c) { return c->area_name; }

// ---- The area ----

// Removes the areas of killed processes: those of this user that nobody has locked. (Process
// numbers would mean nothing where containers share /dev/shm.)
static void remove_dead_areas(void) {
  DIR* folder = opendir("/dev/shm");
  if (!folder) return;
  const char* prefix = FRAMELANE_CAPTURE_AREA_PREFIX;
  for (const struct dirent* entry; (entry = readdir(folder));) {
    if (strncmp(entry->d_name, prefix + 1, strlen(prefix + 1)) != 0) continue;
    struct stat status;
    const int fd =
        openat(dirfd(folder), entry->d_name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (fd < 0) continue;
    if (fstat(fd, &status) == 0 && S_ISREG(status.st_mode) && status.st_uid == geteuid() &&
        flock(fd, LOCK_EX | LOCK_NB) == 0) {
      unlinkat(dirfd(folder), entry->d_name, 0);
    }
    close(fd);
  }
  closedir(folder);
}

// Creates an area of no size that this process has locked. Its name is free: nobody else knows it.
static int create_area(struct framelane_capture* c) {
  for (int attempt = 0; attempt < 16; attempt++) {
    uint64_t number = 0;
    if (getrandom(&number, sizeof number, GRND_NONBLOCK) != (ssize_t)sizeof number) {
      number = (uint64_t)framelane_capture_now() + (uint64_t)attempt;
    }
    snprintf(c->area_name, sizeof c->area_name, FRAMELANE_CAPTURE_AREA_PREFIX "%ld-%016" PRIx64,
             (long)c->owner, number);
    c->area_fd = shm_open(c->area_name, O_RDWR | O_CREAT | O_EXCL, 0600);
    if (c->area_fd < 0) {
      if (errno == EEXIST) continue;
      return fail(
          errno,
          "%s: cannot make an area of shared memory: %s; check that /dev/shm is mounted and "
          "may be written to",
          c->address.sun_path, strerror(errno));
    }
    // Between these two lines another process may take the area for a dead one, and remove it.
    struct stat status;
    if (flock(c->area_fd, LOCK_EX | LOCK_NB) == 0 && fstat(c->area_fd, &status) == 0 &&
        status.st_nlink > 0) {
      return 0;
    }
    close(c->area_fd);
    c->area_fd = -1;
    shm_unlink(c->area_name);
  }
  return fail(EBUSY, "%s: sixteen areas of shared memory were lost to another process; try again",
              c->address.sun_path);
}

static int no_room(const struct framelane_capture* c, int error) {
  return fail(
      error,
      "%s: /dev/shm has no room for %d frames of %zu bytes, %zu bytes in all: %s; use fewer "
      "slots, or make it larger (mount -o remount,size=N /dev/shm; docker run --shm-size)",
      c->address.sun_path, c->slots, c->frame_size, c->area_size, strerror(error));
}

// Takes the memory now: later a full /dev/shm would end the program with SIGBUS. In pieces, because
// a signal makes the system give back a whole piece.
static int reserve_area(const struct framelane_capture* c) {
  struct statvfs room;
  if (fstatvfs(c->area_fd, &room) == 0 && room.f_blocks > 0 &&
      c->area_size / room.f_frsize > room.f_bavail) {
    return no_room(c, ENOSPC);
  }
  const size_t piece = (size_t)16 << 20;
  for (size_t done = 0; done < c->area_size; done += piece) {
    const size_t left = c->area_size - done;
    int error = EINTR;
    for (int attempt = 0; attempt < 1000 && error == EINTR; attempt++) {
      error = posix_fallocate(c->area_fd, (off_t)done, (off_t)(left < piece ? left : piece));
    }
    if (error != 0) return no_room(c, error);
  }
  return 0;
}

static int make_area(struct framelane_capture* c, const struct framelane_capture_options* options,
                     unsigned mode, gid_t group) {
  const long system_page = sysconf(_SC_PAGESIZE);
  const size_t page = system_page > kPage ? (size_t)system_page : kPage;
  c->stride = round_up(
      (size_t)FRAMELANE_CAPTURE_STAMP_OFFSET(c->frame_size) + FRAMELANE_CAPTURE_READABLE, page);
  c->area_size = c->stride * (size_t)c->slots;
  remove_dead_areas();
  int status = create_area(c);
  if (status != 0) return status;
  status = reserve_area(c);
  if (status != 0) return status;
  struct stat area;
  // The group first: changing it may take permissions away. Readers only read.
  if (fstat(c->area_fd, &area) != 0 ||
      (area.st_gid != group && fchown(c->area_fd, (uid_t)-1, group) != 0) ||
      fchmod(c->area_fd, (mode & 0444) | 0600) != 0) {
    return fail(
        errno,
        "%s: the area cannot be given to group %ld: %s; make this process's user a member of it",
        c->address.sun_path, (long)group, strerror(errno));
  }
  void* area_map = mmap(NULL, c->area_size, PROT_READ | PROT_WRITE,
                        MAP_SHARED | (options->prefault ? MAP_POPULATE : 0), c->area_fd, 0);
  if (area_map == MAP_FAILED) {
    return fail(
        errno,
        "%s: %zu bytes of shared memory cannot be mapped: %s; use fewer slots, or raise the "
        "limit of address space (ulimit -v)",
        c->address.sun_path, c->area_size, strerror(errno));
  }
  c->area = area_map;
  return 0;
}

// ---- The socket ----

// Locks the socket's folder, so that of two processes that find a dead socket only one takes it
// over. *folder becomes a descriptor to close, or stays -1 if the folder cannot be read or locked:
// then without a lock.
static int lock_folder(const struct framelane_capture* c, int* folder) {
  char name[sizeof c->address.sun_path];
  memcpy(name, c->address.sun_path, sizeof name);
  char* slash = strrchr(name, '/');
  if (slash) slash[slash == name] = '\0';
  const int fd = open(slash ? name : ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0 && (errno == EACCES || errno == EPERM)) return 0;
  if (fd < 0) {
    return fail(errno,
                "%s: its folder cannot be opened: %s; create it first (mkdir, systemd's "
                "RuntimeDirectory=, or tmpfiles.d)",
                c->address.sun_path, strerror(errno));
  }
  const int64_t deadline = framelane_capture_now() + TAKE_OVER_LIMIT;
  while (flock(fd, LOCK_EX | LOCK_NB) != 0 && (errno == EWOULDBLOCK || errno == EINTR)) {
    if (framelane_capture_now() > deadline) {
      close(fd);
      return fail(EBUSY, "%s: another process has locked its folder; try again",
                  c->address.sun_path);
    }
    const struct timespec pause = {0, NANOSECONDS / 100};
    nanosleep(&pause, NULL);
  }
  *folder = fd;
  return 0;
}

// Removes the socket of a predecessor, if there is one and nobody listens on it.
static int remove_dead_socket(const struct framelane_capture* c) {
  const char* path = c->address.sun_path;
  struct stat status;
  if (lstat(path, &status) != 0) return 0;  // if there is more to it, bind() says so
  if (!S_ISSOCK(status.st_mode)) {
    return fail(EEXIST, "%s exists and is no socket; remove it, or use another path", path);
  }
  const int probe = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (probe < 0) return fail(errno, "%s: no socket can be made: %s", path, strerror(errno));
  const int connected = connect(probe, (const struct sockaddr*)&c->address, sizeof c->address);
  const int error = connected == 0 ? 0 : errno;
  close(probe);
  if (error == ENOENT) return 0;
  if (error == EACCES || error == EPERM) {
    return fail(error,
                "%s: a socket of user %ld is there, and whether somebody listens on it cannot be "
                "seen: %s; remove it, or use another path",
                path, (long)status.st_uid, strerror(error));
  }
  if (error != ECONNREFUSED) {
    return fail(EADDRINUSE, "%s: another program listens there; stop it, or use another path",
                path);
  }
  if (unlink(path) != 0 && errno != ENOENT) {
    return fail(
        errno,
        "%s: the socket of a program that has ended cannot be removed: %s; remove it as user %ld",
        path, strerror(errno), (long)status.st_uid);
  }
  return 0;
}

// The group that an option names, or -1 with `status` set.
static gid_t find_group(const char* name, int* status) {
  char* end;
  errno = 0;
  const unsigned long number = strtoul(name, &end, 10);
  if (*name >= '0' && *name <= '9' && *end == '\0' && errno == 0 && number < UINT32_MAX)
    return (gid_t)number;
  struct group entry;
  struct group* found = NULL;
  char space[16384];
  const int error = getgrnam_r(name, &entry, space, sizeof space, &found);
  if (found) return found->gr_gid;
  *status = fail(error ? error : EINVAL, "there is no group %s: %s", name,
                 error ? strerror(error) : "create it, or name another one");
  return (gid_t)-1;
}

// Gives the socket its group and permissions; *group becomes its group. By a descriptor: who may
// write to the folder may put something else at the path meanwhile.
static int set_access(struct framelane_capture* c, const char* group_name, unsigned mode,
                      gid_t* group) {
  const char* path = c->address.sun_path;
  struct stat file;
  int status = 0;
  const int fd = open(path, O_PATH | O_NOFOLLOW | O_CLOEXEC);
  if (fd < 0) return fail(errno, "%s: %s", path, strerror(errno));
  if (fstat(fd, &file) != 0 || !S_ISSOCK(file.st_mode) || file.st_uid != geteuid()) {
    status = fail(EEXIST, "%s: another process has put something else there; try again", path);
  }
  if (status == 0) {
    c->socket_device = file.st_dev;
    c->socket_inode = file.st_ino;
    *group = file.st_gid;  // a folder with the setgid bit hands its own down
    if (group_name) *group = find_group(group_name, &status);
  }
  if (status == 0 && *group != file.st_gid &&
      fchownat(fd, "", (uid_t)-1, *group, AT_EMPTY_PATH) != 0) {
    status =
        fail(errno, "%s cannot be given to group %s: %s; make this process's user a member of it",
             path, group_name, strerror(errno));
  }
  char self[32];  // chmod() has no way to take such a descriptor itself
  snprintf(self, sizeof self, "/proc/self/fd/%d", fd);
  if (status == 0 && chmod(self, mode) != 0) {
    status = fail(errno, "%s: chmod %o: %s%s", path, mode, strerror(errno),
                  errno == ENOENT ? "; /proc has to be mounted" : "");
  }
  close(fd);
  return status;
}

// Binds and listens; *group becomes the socket's.
static int bind_locked(struct framelane_capture* c, const char* group_name, unsigned mode,
                       gid_t* group) {
  const char* path = c->address.sun_path;
  int status = remove_dead_socket(c);
  if (status != 0) return status;
  if (bind(c->listener, (const struct sockaddr*)&c->address, sizeof c->address) != 0) {
    return fail(errno,
                "%s: the socket cannot be made there: %s; check that its folder exists and may be "
                "written to",
                path, strerror(errno));
  }
  c->bound = 1;
  status = set_access(c, group_name, mode, group);
  if (status != 0) return status;
  if (listen(c->listener, FRAMELANE_CAPTURE_MAX_READERS) != 0) {
    return fail(errno, "%s: listen: %s", path, strerror(errno));
  }
  return 0;
}

static int make_socket(struct framelane_capture* c, const struct framelane_capture_options* options,
                       unsigned mode, gid_t* group) {
  c->listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (c->listener < 0) {
    return fail(errno, "%s: no socket can be made: %s", c->address.sun_path, strerror(errno));
  }
  int folder = -1;
  int status = lock_folder(c, &folder);
  if (status == 0) status = bind_locked(c, options->group, mode, group);
  if (folder >= 0) close(folder);
  return status;
}

// ---- Open and close ----

static int check_options(const struct framelane_capture_options* options, int slots) {
  if (!options->socket_path || !*options->socket_path) {
    return fail(EINVAL, "socket_path is missing: name the socket where readers connect");
  }
  const size_t limit = sizeof(struct sockaddr_un) - offsetof(struct sockaddr_un, sun_path);
  const size_t length = strlen(options->socket_path);
  if (length >= limit) {
    return fail(ENAMETOOLONG,
                "%.40s...: socket_path has %zu bytes, a socket's may have %zu; use a shorter one",
                options->socket_path, length, limit - 1);
  }
  if (slots < FRAMELANE_CAPTURE_MIN_SLOTS || slots > FRAMELANE_CAPTURE_MAX_SLOTS) {
    return fail(EINVAL, "%s: slots is %d; it may be %d to %d", options->socket_path, slots,
                FRAMELANE_CAPTURE_MIN_SLOTS, FRAMELANE_CAPTURE_MAX_SLOTS);
  }
  // So that sizes of areas can be computed, also as off_t.
  const size_t largest = (size_t)(PTRDIFF_MAX / FRAMELANE_CAPTURE_MAX_SLOTS - (PTRDIFF_MAX >> 16));
  if (options->frame_size == 0 || options->frame_size > largest) {
    return fail(EINVAL, "%s: frame_size is %zu; give the bytes of one frame", options->socket_path,
                options->frame_size);
  }
  if (options->mode > 0777) {
    return fail(EINVAL, "%s: mode is %o; give permissions such as 0660, with the leading 0",
                options->socket_path, options->mode);
  }
  return 0;
}

int framelane_capture_open(const struct framelane_capture_options* options,
                           struct framelane_capture** capture) {
  *capture = NULL;
  const int slots = options->slots ? options->slots : kDefaultSlots;
  int status = check_options(options, slots);
  if (status != 0) return status;
  struct framelane_capture* c = calloc(1, sizeof *c);
  if (!c) return fail(ENOMEM, "%s: no memory", options->socket_path);
  const int64_t timeout_ms =
      options->reader_timeout_ms ? options->reader_timeout_ms : kDefaultReaderTimeoutMs;
  const unsigned mode = options->mode ? options->mode : kDefaultMode;
  c->owner = getpid();
  c->slots = slots;
  c->lockstep = options->lockstep;
  c->reader_timeout = timeout_ms < 0 ? -1 : timeout_ms * (NANOSECONDS / 1000);
  c->frame_size = options->frame_size;
  c->area_fd = c->listener = c->wake[0] = c->wake[1] = -1;
  c->address.sun_family = AF_UNIX;
  memcpy(c->address.sun_path, options->socket_path, strlen(options->socket_path));
  pthread_mutex_init(&c->lock, NULL);

  gid_t group = (gid_t)-1;
  status = make_socket(c, options, mode, &group);
  if (status == 0) status = make_area(c, options, mode, group);
  if (status == 0 && pipe2(c->wake, O_CLOEXEC | O_NONBLOCK) != 0) {
    status = fail(errno, "%s: no pipe can be made: %s", options->socket_path, strerror(errno));
  }
  if (status != 0) {
    framelane_capture_close(c);
    return status;
  }
  *capture = c;
  return 0;
}

static void close_if_open(int fd) {
  if (fd >= 0) close(fd);
}

// The path may be another's by now, if somebody has removed our socket.
static void remove_own_socket(const struct framelane_capture* c) {
  struct stat file;
  if (c->bound && lstat(c->address.sun_path, &file) == 0 && file.st_dev == c->socket_device &&
      file.st_ino == c->socket_inode) {
    unlink(c->address.sun_path);
  }
}

void framelane_capture_close(struct framelane_capture* c) {
  if (!c) return;
  if (c->owner == getpid()) {
    remove_own_socket(c);
    // First: readers whose connection ends see by it that the area is not written to any more.
    if (c->area_fd >= 0) flock(c->area_fd, LOCK_UN);
    while (c->reader_count > 0) remove_reader(c, c->reader_count - 1);
    if (c->area_fd >= 0) shm_unlink(c->area_name);
    pthread_mutex_destroy(&c->lock);
  } else {  // a forked child: its parent goes on
    for (int i = 0; i < c->reader_count; i++) close(c->readers[i].fd);
  }
  if (c->area) munmap(c->area, c->area_size);
  close_if_open(c->listener);
  close_if_open(c->area_fd);
  close_if_open(c->wake[0]);
  close_if_open(c->wake[1]);
  free(c);
}
