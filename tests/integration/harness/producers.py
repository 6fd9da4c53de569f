"""Programs that use capture/framelane_capture.h."""

from harness.daemon import BINARY, ROOT
from harness.waiting import TIME_FACTOR

BUILD = BINARY.resolve().parents[1]
EXAMPLE = BUILD / "examples" / "moving_picture"
CAPTURE = ROOT / "capture"
STRICT = ("-std=c99", "-Wall", "-Wextra", "-Wpedantic", "-Werror", "-O1")


def finish(process, status=0):
    """Waits for the end of a program, whose status must be this. Its output."""
    output, _ = process.communicate(timeout=60 * TIME_FACTOR)
    assert process.returncode == status, output
    return (output or b"").decode()
