"""Programs that use capture/framelane_capture.h, read by GStreamer's own shmsrc."""

import os
import pathlib
import random
import re
import subprocess
import sys

import pytest

from harness.producers import BUILD, CAPTURE, EXAMPLE, STRICT, finish
from harness.waiting import wait_until

WIDTH, HEIGHT = 64, 48
FRAME_SIZE = WIDTH * HEIGHT * 4


def shmsrc(start, path, frames, sink):
    """GStreamer's shmsrc, which reads `frames` frames and ends. It needs the socket to be there. (A filesink that
    is not told to be unbuffered keeps frames until it has 64 KiB, and their slots with them.)"""
    wait_until(path.is_socket, f"{path} is there")
    description = (f"shmsrc socket-path={path} is-live=true num-buffers={frames} ! "
                   f"video/x-raw,format=BGRA,width={WIDTH},height={HEIGHT},framerate=25/1 ! {sink}")
    return start(sys.executable, pathlib.Path(__file__).parent / "harness" / "gst_pipeline.py", description,
                 stdout=subprocess.PIPE, stderr=subprocess.STDOUT)


def random_frames(count):
    return random.Random(count).randbytes(count * FRAME_SIZE)


@pytest.mark.parametrize("readers", [1, 2])
def test_shmsrc_reads_every_pixel_of_every_frame(start, capture_file, tmp_path, readers):
    frames = random_frames(50)
    (tmp_path / "sent.raw").write_bytes(frames)
    path = tmp_path / "cap.sock"
    with (tmp_path / "sent.raw").open("rb") as sent:
        producer = start(capture_file, path, FRAME_SIZE, readers, stdin=sent, stdout=subprocess.PIPE)
    sources = [shmsrc(start, path, 50, f"filesink buffer-mode=unbuffered location={tmp_path}/got{i}.raw")
               for i in range(readers)]
    for i, source in enumerate(sources):
        finish(source)
        assert (tmp_path / f"got{i}.raw").read_bytes() == frames
    assert finish(producer) == f"published 50, announced {50 * readers}\n"


def bars(frame):
    """By how many pixels the bars of a frame of the example are shifted; fails if they are not its bars."""
    colours = [0xffffffff, 0xffffff00, 0xff00ffff, 0xff00ff00, 0xffff00ff, 0xffff0000, 0xff0000ff, 0xff101010]
    row = b"".join(colours[x * 8 // WIDTH].to_bytes(4, "little") for x in range(WIDTH))
    shifts = [4 * shift for shift in range(WIDTH // 4)
              if frame.startswith((row[16 * shift:] + row[:16 * shift]) * (HEIGHT // 2))]
    assert len(shifts) == 1
    return shifts[0]


def shown(path):
    """The shifts of all frames of a file of the example's frames."""
    frames = path.read_bytes()
    return [bars(frames[at:at + FRAME_SIZE]) for at in range(0, len(frames), FRAME_SIZE)]


def areas_of(process):
    return list(pathlib.Path("/dev/shm").glob(f"framelane1-{process.pid}-*"))


def test_after_a_reader_that_held_all_slots_was_killed_the_next_one_gets_frames(start, tmp_path):
    path, seen = tmp_path / "cap.sock", tmp_path / "seen.raw"
    start(EXAMPLE, path, WIDTH, HEIGHT, 200)
    # Blocks for good with its first frame; all others wait for it in the socket.
    hangs = shmsrc(start, path, -1, f"tee name=t ! filesink location={seen} buffer-mode=unbuffered async=false "
                   "t. ! identity sleep-time=1000000000 ! fakesink async=false")
    wait_until(lambda: seen.exists() and seen.stat().st_size, "the first reader has a frame")
    hangs.kill()
    finish(shmsrc(start, path, 20, f"filesink buffer-mode=unbuffered location={tmp_path}/got.raw"))
    shifts = shown(tmp_path / "got.raw")
    assert len(shifts) == 20 and len(set(shifts)) > 1


def test_a_producer_that_was_killed_is_followed_by_another_at_the_same_path(start, tmp_path):
    path = tmp_path / "cap.sock"
    first = start(EXAMPLE, path, WIDTH, HEIGHT, 200)
    reader = shmsrc(start, path, -1, "fakesink")
    wait_until(lambda: areas_of(first), "it has an area")
    first.kill()
    finish(reader, status=1)  # shmsrc calls the end of the connection an error
    start(EXAMPLE, path, WIDTH, HEIGHT, 200)
    wait_until(lambda: not areas_of(first), "its area is removed")
    finish(shmsrc(start, path, 5, f"filesink buffer-mode=unbuffered location={tmp_path}/got.raw"))
    assert len(shown(tmp_path / "got.raw")) == 5


def test_the_example_says_how_many_frames_were_not_taken(start, tmp_path):
    path = tmp_path / "cap.sock"
    said = finish(start(EXAMPLE, path, WIDTH, HEIGHT, 1000, 50, stdout=subprocess.PIPE))
    assert "50 frames published; not taken: 50 without a reader, 0 without a free slot" in said
    assert not path.exists()


def test_the_example_ends_and_cleans_up_on_a_signal(start, tmp_path):
    path = tmp_path / "cap.sock"
    example = start(EXAMPLE, path, WIDTH, HEIGHT, 1, stdout=subprocess.PIPE)
    wait_until(path.is_socket, "the example listens")
    example.terminate()
    assert "frames published" in finish(example)
    assert not path.exists()


def test_the_example_builds_from_an_installation_as_its_first_lines_say(start, tmp_path):
    subprocess.run(["cmake", "--install", BUILD, "--component", "capture", "--prefix", tmp_path / "usr"],
                   check=True, stdout=subprocess.DEVNULL)
    source = tmp_path / "usr/share/doc/framelane/examples/moving_picture.c"
    line = re.search(r"^// +(cc .*pkg-config.*)$", source.read_text(), re.MULTILINE).group(1)
    assert "moving_picture.c" in line
    # A library that was built with a sanitizer needs it.
    cache = (BUILD / "CMakeCache.txt").read_text()
    sanitizers = re.search(r"^FRAMELANE_SANITIZE:STRING=(.*)$", cache, re.MULTILINE).group(1)
    strict = " ".join(STRICT) + (f" -fsanitize={sanitizers}" if sanitizers else "")
    pc = next((tmp_path / "usr").rglob("framelane-capture.pc"))
    subprocess.run(line.replace("cc ", f"cc {strict} ", 1), shell=True, check=True, cwd=source.parent,
                   env={**os.environ, "PKG_CONFIG_PATH": str(pc.parent)})
    said = finish(start(source.with_suffix(""), tmp_path / "cap.sock", WIDTH, HEIGHT, 1000, 3,
                        stdout=subprocess.PIPE))
    assert "3 frames published" in said


def test_the_header_compiles_as_cxx_too(tmp_path):
    (tmp_path / "use.cpp").write_text('#include "framelane_capture.h"\n'
                                      "int main() { framelane_capture_close(0); }\n")
    for standard in ("c++11", "c++20"):
        subprocess.run(["c++", f"-std={standard}", *STRICT[1:], f"-I{CAPTURE}", "-c", "-o",
                        tmp_path / "use.o", tmp_path / "use.cpp"], check=True)
