// The header compiles as strict C99 by itself, and the contract has the sizes and places that it
// says.
#include "capture/framelane_capture.h"

// C99 has no static assertion; an array cannot have a negative size.
#define HOLDS(name, condition) extern const char name[(condition) ? 1 : -1]
HOLDS(stamp_has_32_bytes, sizeof(struct framelane_capture_stamp) == 32);
HOLDS(sequence_at_8, offsetof(struct framelane_capture_stamp, sequence) == 8);
HOLDS(time_at_16, offsetof(struct framelane_capture_stamp, capture_time_ns) == 16);
HOLDS(rounded_up_to_8, FRAMELANE_CAPTURE_STAMP_OFFSET(1003) == 1008);
HOLDS(whole_as_it_is, FRAMELANE_CAPTURE_STAMP_OFFSET(1008) == 1008);
HOLDS(behind_what_can_be_read,
      7 + sizeof(struct framelane_capture_stamp) <= FRAMELANE_CAPTURE_READABLE);
