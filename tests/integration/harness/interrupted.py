"""A measurement that is interrupted by the person at the terminal."""

import os
import pty
import signal
import subprocess

from harness.daemon import BINARY
from harness.waiting import TIME_FACTOR, read_until


def interrupted(*arguments):
    """What `framelane ARGUMENTS...` prints when it is interrupted in its second measured round."""
    ours, terminal = pty.openpty()
    with subprocess.Popen([str(BINARY), *arguments], stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=terminal, text=True) as process:
        os.close(terminal)
        try:
            # When the second measured round begins, every contender has had a turn that counts.
            read_until(ours, b"round 2 of")
            process.send_signal(signal.SIGINT)
            text, _ = process.communicate(timeout=30 * TIME_FACTOR)
        finally:
            process.kill()
            os.close(ours)
    assert process.returncode == 128 + signal.SIGINT
    assert "interrupted: this is what was measured so far" in text
    return text
