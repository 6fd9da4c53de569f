"""What the tests of reloads have in common."""

import os

from harness import media
from harness.configs import looped, x264


def feed(clip, folder=None, encode=None, **keys):
    """A feed whose output is a file in `folder`, or nothing."""
    url = str(folder / "%s.ts") if folder else "null:"
    return {"input": looped(clip), "encodes": {"main": encode or x264()},
            "outputs": {"out": {"from": "main", "url": url}}, **keys}


def rated(bitrate):
    encode = x264("400ms")
    encode["video"]["bitrate"] = bitrate
    return encode


def descriptors(daemon):
    return len(os.listdir(f"/proc/{daemon.process.pid}/fd"))


def require_consecutive(path, step):
    """No picture of the file is missing, and none is there twice."""
    times = sorted(media.timestamps(path))
    assert len(times) > 20
    gaps = [(a, b) for a, b in zip(times, times[1:]) if abs(b - a - step) > 0.002]
    assert not gaps, gaps
