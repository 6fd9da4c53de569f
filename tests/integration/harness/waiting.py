"""Waiting for a condition, with a deadline. Only this file polls."""

import os
import select
import time

# Sanitizers make everything slower. Deadlines end a test that hangs; they measure nothing.
TIME_FACTOR = float(os.environ.get("FRAMELANE_TEST_TIME_FACTOR", "1"))


def wait_until(condition, what, deadline=15.0):
    """Returns the first true result of condition(); fails with `what` after `deadline` seconds."""
    end = time.monotonic() + deadline * TIME_FACTOR
    while True:
        result = condition()
        if result:
            return result
        if time.monotonic() > end:
            raise AssertionError(f"not within {deadline * TIME_FACTOR:.0f} s: {what}")
        time.sleep(0.02)


def read_until(descriptor, word, deadline=30.0):
    """Reads until `word` has come; after `deadline` seconds fails with what was read."""
    end = time.monotonic() + deadline * TIME_FACTOR
    said = b""
    while word not in said:
        left = end - time.monotonic()
        if left <= 0 or not select.select([descriptor], [], [], left)[0]:
            raise AssertionError(f"not within {deadline * TIME_FACTOR:.0f} s: {word!r} in {said!r}")
        said += os.read(descriptor, 4096)
