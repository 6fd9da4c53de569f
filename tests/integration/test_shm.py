# Longer than 400 lines: each rule of shared memory has its test, with the same producer.
"""Frames from another program's shared memory (shm:), which are read in place. docs/capture.md."""

import json
import os
import pathlib
import random
import socket
import sys
import time

import pytest

from harness import media
from harness.configs import IMPATIENT, encoder, one_feed, raw_input
from harness.daemon import WITHOUT_PRIVILEGES
from harness.producers import EXAMPLE, finish
from harness.shm_producer import ShmProducer
from harness.waiting import wait_until

WIDTH, HEIGHT = 64, 48
SIZE = f"{WIDTH}x{HEIGHT}"
FRAME_SIZE = WIDTH * HEIGHT * 4
NV12_SIZE = WIDTH * HEIGHT * 3 // 2
UNCHANGED = encoder("rawvideo", threads=1, convert={"format": "bgra"})
NO_DELAY = encoder("libx264", preset="ultrafast", tune="zerolatency")
TO_NV12 = encoder("rawvideo", threads=1, convert={"format": "nv12"})


def shm_input(path, pixel_format="bgra", size=SIZE, **keys):
    return raw_input(f"shm:{path}", pixel_format, size, **{**IMPATIENT, **keys})


def to_file(path):
    return {"out": {"url": str(path), "format": "rawvideo"}}


def random_frames(count):
    return random.Random(count).randbytes(count * FRAME_SIZE)


def copies(metrics):
    return metrics.sum("framelane_host_copies_total", feed="cam")


@pytest.fixture
def producer(tmp_path):
    """ShmProducers at tmp_path/cap.sock: producer(**keywords)."""
    made = []

    def make(frame_bytes=FRAME_SIZE, **keywords):
        made.append(ShmProducer(tmp_path / "cap.sock", frame_bytes, **keywords))
        return made[-1]

    yield make
    for one in made:
        one.close()


@pytest.mark.sanitizers
@pytest.mark.parametrize("encode, in_place", [(UNCHANGED, False), (TO_NV12, True)],
                         ids=["as they are", "converted"])
def test_every_pixel_of_every_frame_arrives(framelane, cli, start, capture_file, tmp_path, encode,
                                            in_place):
    """What an encoder may hold is copied; what is converted is read in place."""
    sent, out = tmp_path / "sent.raw", tmp_path / "out.raw"
    sent.write_bytes(random_frames(50))
    daemon = framelane(one_feed(shm_input(tmp_path / "cap.sock"), encode, to_file(out),
                                on_full="block", ring=2)).wait_ready()
    with sent.open("rb") as frames:
        finish(start(capture_file, tmp_path / "cap.sock", FRAME_SIZE, 1, stdin=frames))
    metrics = daemon.wait_frames("cam", 50)
    assert copies(metrics) == (0 if in_place else 50)
    assert metrics.one("framelane_input_bytes_total", feed="cam") == 50 * FRAME_SIZE
    daemon.stop()
    if not in_place:
        assert out.read_bytes() == sent.read_bytes()
        return
    done = cli("transcode", sent, tmp_path / "expected.raw", "--input-format", "rawvideo",
               "--input-pixel-format", "bgra", "--input-size", SIZE, "--codec", "rawvideo",
               "--pixel-format", "nv12", "--format", "rawvideo")
    assert done.returncode == 0, done.stderr
    assert out.read_bytes() == (tmp_path / "expected.raw").read_bytes()


@pytest.mark.parametrize("format_, pixel_format, width, height", [
    ("NV12", "nv12", 854, 480), ("I420", "yuv420p", 43, 31)])
def test_frames_of_shmsink_are_read_in_its_layout(framelane, start, tmp_path, format_, pixel_format,
                                                  width, height):
    path, out, sent = tmp_path / "cap.sock", tmp_path / "out.raw", tmp_path / "sent.raw"
    start(sys.executable, pathlib.Path(__file__).parent / "harness" / "gst_pipeline.py",
          f"videotestsrc pattern=smpte75 is-live=true ! "
          f"video/x-raw,format={format_},width={width},height={height},framerate=50/1 ! tee name=t ! "
          f"queue ! identity drop-allocation=true ! shmsink socket-path={path} wait-for-connection=false "
          f"t. ! queue ! filesink location={sent} buffer-mode=unbuffered")
    daemon = framelane(one_feed(shm_input(path, pixel_format, f"{width}x{height}"),
                                encoder("rawvideo", threads=1, convert={"format": pixel_format}),
                                to_file(out))).wait_ready()
    daemon.wait_frames("cam", 5)
    daemon.stop()
    pitches = [(width + 3) // 4 * 4]
    even_height = (height + 1) // 2 * 2
    row = (width + 1) // 2 * 2
    if format_ == "NV12":
        planes = [(pitches[0], width, height, even_height), (pitches[0], row, even_height // 2, 0)]
    else:
        half = (row // 2 + 3) // 4 * 4
        planes = [(pitches[0], width, height, even_height), (half, row // 2, even_height // 2, 0),
                  (half, row // 2, even_height // 2, 0)]
    packed, padded, at = b"", sent.read_bytes(), 0
    for pitch, bytes_, rows, stored in planes:
        packed += b"".join(padded[at + y * pitch:at + y * pitch + bytes_] for y in range(rows))
        at += pitch * (stored or rows)
    frames = out.read_bytes()
    assert frames == packed * (len(frames) // len(packed))


def test_each_frame_is_given_back_once_and_areas_may_be_replaced(framelane, producer, tmp_path):
    made = producer()
    out = tmp_path / "out.raw"
    daemon = framelane(one_feed(shm_input(made.path), TO_NV12, to_file(out), on_full="block"))
    made.accept()
    old = made.make_area()
    made.announce_area(old)
    for slot in range(6):
        made.publish(old, slot, bytes([slot]) * FRAME_SIZE)
    new = made.make_area(slots=4)
    made.announce_area(new)
    made.close_area(old)
    made.take_all_back()
    for slot in range(4):
        made.publish(new, slot, bytes([16 + slot]) * FRAME_SIZE)
    made.take_all_back()
    daemon.wait_frames("cam", 10)
    daemon.stop()
    assert out.stat().st_size == 10 * NV12_SIZE


def test_a_mask_covers_a_copy_and_leaves_the_producers_frames_as_they_are(framelane, producer, tmp_path):
    made, out = producer(), tmp_path / "out.raw"
    left = {"polygon": [[0, 0], [0.5, 0], [0.5, 1], [0, 1]]}
    daemon = framelane(one_feed(shm_input(made.path), UNCHANGED, to_file(out), on_full="block",
                                mask=left))
    made.accept()
    area = made.make_area()
    made.announce_area(area)
    for slot in range(10):
        made.publish(area, slot, bytes([200 + slot]) * FRAME_SIZE)
    made.take_all_back()
    daemon.wait_frames("cam", 10)
    daemon.stop()
    for slot in range(10):
        at = slot * area.slot
        assert area.memory[at:at + FRAME_SIZE] == bytes([200 + slot]) * FRAME_SIZE
        half = 4 * WIDTH // 2
        row = bytes([0, 0, 0, 200 + slot]) * (WIDTH // 2) + bytes([200 + slot]) * half
        frame = out.read_bytes()[slot * FRAME_SIZE:(slot + 1) * FRAME_SIZE]
        assert frame == row * HEIGHT


def test_a_producer_with_few_slots_never_runs_out_of_them(framelane, producer, tmp_path):
    """The encoder holds eight frames until it gets more: if they were the producer's, nothing would go on."""
    made = producer()
    encode = encoder("rawvideo", threads=8, convert={"format": "bgra"})
    daemon = framelane(one_feed(shm_input(made.path), encode, to_file(tmp_path / "out.raw"),
                                on_full="block", ring=8)).wait_ready()
    made.accept()
    area = made.make_area(slots=2)
    made.announce_area(area)
    for number in range(40):
        made.publish(area, number % 2, bytes([number]) * FRAME_SIZE)
        if len(made.held) == 2:
            made.take_back()
    made.take_all_back()
    assert "has room for 2 frames, and the ring for 8" in daemon.log()
    metrics = daemon.metrics()
    assert metrics.sum("framelane_frames_dropped_total", feed="cam") == 0
    assert metrics.one("framelane_frames_in_total", feed="cam") == 40
    assert copies(metrics) == 40


def test_the_time_of_a_frame_is_that_at_which_it_was_taken(framelane, producer, tmp_path):
    made, record = producer(), tmp_path / "record.mkv"
    daemon = framelane(one_feed(shm_input(made.path, timestamps="producer"),
                                NO_DELAY,
                                {"file": {"url": str(record)}}))
    made.accept()
    area = made.make_area(stamped=True)
    made.announce_area(area)
    begin = time.monotonic() - 2
    taken = [0, 0.04, 0.16, 0.2, 0.7, 0.74]
    for slot, offset in enumerate(taken):
        made.publish(area, slot, bytes(FRAME_SIZE), begin + offset)
    made.take_all_back()
    daemon.wait_frames("cam", len(taken))
    daemon.stop()
    assert media.timestamps(record) == pytest.approx(taken, abs=0.002)


def test_a_clock_shows_when_a_frame_was_taken_and_not_when_it_came(framelane, producer, tmp_path):
    """The frame is half a minute old."""
    width, height = 256, 64
    made, shown, still = producer(width * height), tmp_path / "shown.raw", tmp_path / "still.raw"
    wall = int(time.time()) - 30 + 0.5
    text = time.strftime("%T", time.gmtime(wall))

    def drawn(text, input_, out):
        encode = {**encoder("rawvideo", threads=1), "overlay": {"text": text, "size": "40%"}}
        return one_feed(input_, encode, to_file(out))

    daemon = framelane(drawn("%T", shm_input(made.path, "gray", f"{width}x{height}", timestamps="producer"),
                             shown), env={"TZ": "UTC"})
    made.accept()
    area = made.make_area(stamped=True)
    made.announce_area(area)
    made.publish(area, 0, bytes(width * height), time.monotonic() - (time.time() - wall))
    daemon.wait_frames("cam", 1)
    daemon.stop()
    source = tmp_path / "in.gray"
    source.write_bytes(bytes(width * height))
    daemon = framelane(drawn(text, raw_input(source, "gray", f"{width}x{height}"), still)).wait_ready()
    daemon.wait_state("cam", "ended")
    daemon.stop()
    assert any(shown.read_bytes())
    assert shown.read_bytes() == still.read_bytes()


def test_without_a_capture_time_a_frame_has_the_time_of_its_arrival(framelane, producer, tmp_path):
    made, record = producer(), tmp_path / "record.mkv"
    daemon = framelane(one_feed(shm_input(made.path, timestamps="producer"), NO_DELAY,
                                {"file": {"url": str(record)}}))
    made.accept()
    area = made.make_area()
    made.announce_area(area)
    made.publish(area, 0, bytes(FRAME_SIZE))
    begin = time.monotonic()
    daemon.wait_log("the producer gives no capture time")
    daemon.wait_frames("cam", 1)
    made.publish(area, 1, bytes(FRAME_SIZE))
    passed = time.monotonic() - begin
    daemon.wait_frames("cam", 2)
    daemon.stop()
    assert media.timestamps(record) == pytest.approx([0, passed], abs=0.2)


@pytest.mark.parametrize("taken", [-2**63 + 1, 0, -61, 3600])
def test_a_capture_time_that_cannot_be_true_is_not_believed(framelane, producer, tmp_path, taken):
    """In nanoseconds, or in seconds from now."""
    made, record = producer(), tmp_path / "record.mkv"
    daemon = framelane(one_feed(shm_input(made.path, timestamps="producer"), NO_DELAY,
                                {"file": {"url": str(record)}}))
    made.accept()
    area = made.make_area(stamped=True)
    made.announce_area(area)
    for slot in range(3):
        now = time.monotonic()
        made.publish(area, slot, bytes(FRAME_SIZE), taken / 1e9 if taken < -100 or not taken else now + taken)
        daemon.wait_frames("cam", slot + 1)
    daemon.stop()
    assert "the producer gives no capture time" in daemon.log()
    assert max(media.timestamps(record)) < 20


def test_times_before_the_last_ones_do_not_silence_a_feed_that_comes_back(framelane, producer, tmp_path):
    made = producer()
    daemon = framelane(one_feed(shm_input(made.path, timestamps="producer"), NO_DELAY))
    for back in (0, 5):
        made.accept()
        area = made.make_area(stamped=True)
        made.announce_area(area)
        for slot in range(5):
            made.publish(area, slot, bytes(FRAME_SIZE), time.monotonic() - back)
            made.take_back()
        daemon.wait_metrics(lambda m: m.sum("framelane_frames_out_total", feed="cam") >= (5 if not back else 10),
                            "all frames are out")


def test_a_live_feed_drops_what_it_has_no_room_for(framelane, producer):
    """Slow work behind a short ring; every frame comes back all the same."""
    made = producer(frame_bytes=640 * 480 * 4)
    slow = encoder("libx264", preset="veryslow", threads=1)
    # The last frames may take longer than a second to come back.
    daemon = framelane(one_feed(shm_input(made.path, size="640x480", timeout="20s"), slow, ring=1))
    made.accept()
    area = made.make_area()
    made.announce_area(area)
    noise = random.Random(1).randbytes(made.frame_bytes)
    for number in range(150):
        while len(made.held) == 8:
            made.take_back()
        made.publish(area, number % 12, noise)
    made.take_all_back()
    metrics = daemon.metrics()
    assert metrics.one("framelane_frames_dropped_total", feed="cam", encode="main", reason="ring_full") > 0
    assert metrics.one("framelane_frames_in_total", feed="cam") == 150


def test_a_producer_that_is_killed_is_followed_by_the_next_one(framelane, start, tmp_path):
    path = tmp_path / "cap.sock"
    daemon = framelane(one_feed(shm_input(path), TO_NV12)).wait_ready()
    daemon.wait_state("cam", "backoff")
    assert "start the producer, or correct input.url" in daemon.feed("cam")["reason"]
    first = start(EXAMPLE, path, WIDTH, HEIGHT, 50)
    daemon.wait_frames("cam", 5)
    first.kill()
    daemon.wait_metrics(
        lambda m: m.one("framelane_source_reconnects_total", feed="cam", reason="eof") > 0,
        "the loss is counted")
    daemon.wait_log("nobody listens there")
    start(EXAMPLE, path, WIDTH, HEIGHT, 50)
    daemon.wait_more_frames("cam", 5)
    daemon.wait_state("cam", "running")


def test_a_socket_that_a_killed_shmsink_left_is_explained(framelane, tmp_path):
    path = tmp_path / "cap.sock"
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(path))
    daemon = framelane(one_feed(shm_input(path), TO_NV12)).wait_ready()
    daemon.wait_state("cam", "backoff")
    assert "cap.sock.0" in daemon.feed("cam")["reason"]
    assert daemon.metrics().one("framelane_source_reconnects_total", feed="cam", reason="refused") > 0


@pytest.mark.skipif(os.geteuid() == 0 and not WITHOUT_PRIVILEGES, reason="runs as root")
@pytest.mark.parametrize("what", ["socket", "area"])
def test_a_producer_that_may_not_be_read_is_explained(framelane, producer, what):
    made = producer(mode=0 if what == "socket" else 0o666)
    daemon = framelane(one_feed(shm_input(made.path), TO_NV12), wrapper=WITHOUT_PRIVILEGES)
    if what == "area":
        made.accept()
        area = made.make_area()
        os.chmod(area.path, 0)
        made.announce_area(area)
    daemon.wait_log("perms=432 of shmsink")
    assert "Permission denied" in daemon.log()


@pytest.mark.parametrize("wrong", ["http", "type", "unknown area", "outside", "odd", "name", "pipe", "size", "large",
                                   "twice"])
def test_a_peer_that_speaks_something_else_is_one_line_and_backoff(framelane, producer, wrong):
    made = producer()
    daemon = framelane(one_feed(shm_input(made.path), TO_NV12))
    made.accept()
    area = made.make_area()
    if wrong == "http":
        made.connection.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n")
    elif wrong == "type":
        made.send(4, 0)
    elif wrong == "unknown area":
        made.send(3, 7, 0, FRAME_SIZE)
    elif wrong == "outside":
        made.announce_area(area)
        made.send(3, area.number, 2**64 - 8, 16)
    elif wrong == "odd":
        made.announce_area(area)
        made.send(3, area.number, 4, FRAME_SIZE)
    elif wrong == "pipe":
        area.path.unlink()
        os.mkfifo(area.path)
        made.announce_area(area)
    elif wrong == "large":
        area.truncate(2**45)
        made.announce_area(area, size=2**45)
    elif wrong == "name":
        made.announce_area(area, name="/../../etc/passwd")
    elif wrong == "size":
        made.announce_area(area, size=area.bytes + 4096)
    else:
        made.announce_area(area)
        made.announce_area(area)
    daemon.wait_state("cam", "backoff")
    reason = daemon.feed("cam")["reason"]
    said = {"size": f"has {area.bytes + 4096} bytes, and it has {area.bytes}", "pipe": "is no shared memory",
            "large": "framelane maps at most"}
    assert said.get(wrong, "does not speak the protocol of GStreamer's shmsink") in reason
    assert len([line for line in daemon.log().splitlines() if "trying again" in line]) == 1


def test_a_frame_of_another_size_is_dropped_counted_and_said_once(framelane, producer):
    made = producer()
    daemon = framelane(one_feed(shm_input(made.path), TO_NV12))
    made.accept()
    area = made.make_area()
    made.announce_area(area)
    for slot in range(3):
        made.announce(area, slot, size=FRAME_SIZE - 4)
    made.publish(area, 3, bytes(FRAME_SIZE))
    made.take_all_back()
    daemon.wait_frames("cam", 1)
    made.accept()  # another connection, with the same fault
    made.announce_area(area)
    made.announce(area, 0, size=FRAME_SIZE - 4)
    made.take_all_back()
    assert daemon.metrics().one("framelane_decode_errors_total", feed="cam", reason="unsupported") == 4
    assert daemon.log().count(f"frames of {FRAME_SIZE - 4} bytes, and bgra of {SIZE} have {FRAME_SIZE}") == 1


def test_a_producer_that_sends_nothing_is_lost_after_the_timeout(framelane, producer):
    made = producer()
    daemon = framelane(one_feed(shm_input(made.path, timeout="300ms"), TO_NV12))
    made.accept()
    made.announce_area(made.make_area())
    daemon.wait_log(f"no frame from shm:{made.path} for 0.3 s; check the producer, or raise input.timeout")
    made.accept()  # it tries again
    assert daemon.metrics().one("framelane_source_reconnects_total", feed="cam", reason="timeout") >= 1


def test_frames_that_the_producer_gave_to_others_alone_are_counted(framelane, producer):
    """It numbers its frames in each area, from the first that this reader gets. One has another size."""
    made = producer()
    daemon = framelane(one_feed(shm_input(made.path), TO_NV12))
    made.accept()
    for sequences in ([5, 6, 9], [1, 2], [40, 140]):
        area = made.make_area(stamped=True)
        made.announce_area(area)
        for slot, sequence in enumerate(sequences):
            made.publish(area, slot, bytes(FRAME_SIZE), time.monotonic(), sequence)
    made.take_all_back()
    metrics = daemon.wait_frames("cam", 7)
    assert metrics.one("framelane_input_frames_missed_total", feed="cam") == 2 + 99
    assert daemon.log().count("the producer published 2 frames that it did not give to this feed") == 1


def test_a_producer_of_other_frames_alone_is_lost(framelane, producer):
    made = producer()
    daemon = framelane(one_feed(shm_input(made.path), TO_NV12))
    made.accept()
    area = made.make_area()
    made.announce_area(area)

    def reason():
        try:
            made.announce(area, 0, size=FRAME_SIZE - 8)
            made.take_back()
        except (AssertionError, OSError):
            return daemon.feed("cam")["reason"]

    wait_until(lambda: f"sends frames of {FRAME_SIZE - 8} bytes" in (reason() or ""), "the reason is shown")


def test_a_file_in_the_place_of_the_socket_is_explained(framelane, tmp_path):
    (tmp_path / "cap.sock").touch()
    daemon = framelane(one_feed(shm_input(tmp_path / "cap.sock"), TO_NV12)).wait_ready()
    daemon.wait_state("cam", "backoff")
    assert "it is no socket" in daemon.feed("cam")["reason"]


@pytest.mark.sanitizers
@pytest.mark.parametrize("encode", [UNCHANGED, TO_NV12], ids=["as they are", "converted"])
def test_an_area_that_is_truncated_ends_the_feed_and_not_the_process(framelane, producer, tmp_path, encode):
    made, out = producer(), tmp_path / "out.raw"
    daemon = framelane(one_feed(shm_input(made.path), encode, to_file(out), on_full="block"))
    made.accept()
    area = made.make_area()
    made.announce_area(area)
    made.publish(area, 0, bytes([7]) * FRAME_SIZE)
    made.take_all_back()
    daemon.wait_metrics(lambda m: m.one("framelane_output_bytes_total", feed="cam", output="out") > 0,
                        "the frame is in the file")
    area.truncate(0)
    made.announce(area, 1)
    daemon.wait_log("has changed under them: it was truncated")
    made.accept()
    area = made.make_area()
    made.announce_area(area)
    made.publish(area, 0, bytes([7]) * FRAME_SIZE)
    daemon.wait_frames("cam", 2)
    metrics = daemon.metrics()
    assert metrics.one("framelane_feed_restarts_total", feed="cam", reason="memory") == 1
    daemon.stop()
    first, second = (path.read_bytes() for path in sorted(tmp_path.glob("out*.raw")))
    assert first == second and len(first) == (FRAME_SIZE if encode is UNCHANGED else NV12_SIZE)


def test_a_stop_while_the_producer_is_silent_is_quick(framelane, producer):
    made = producer()
    daemon = framelane(one_feed(shm_input(made.path, timeout="1h"), TO_NV12)).wait_ready()
    made.accept()
    daemon.stop(deadline=3)


@pytest.mark.parametrize("input_, problem", [
    ({"url": "shm:/run/cap.sock"}, "it needs the format rawvideo"),
    ({"url": "shm:"}, "names no socket"),
    ({"url": "shm:/" + "a" * 107}, "a path of 108 bytes"),
    (raw_input("shm:/run/cap.sock", "bgra", "64x48", pitch=256), "remove it"),
    (raw_input("shm:/run/cap.sock", "bgra", "64x48", loop=True), "works only with files"),
    (raw_input("shm:/run/cap.sock", "bgra", "64x48", pace="realtime"), "shared memory is live already"),
    (raw_input("shm:/run/cap.sock", "bgra", "64x48", decoder="nvdec"), "raw video is not decoded"),
    (raw_input("/run/cap.fifo", "bgra", "64x48", timestamps="producer"), "only shared memory"),
])
def test_what_shared_memory_cannot_do_is_refused_by_check(cli, tmp_path, input_, problem):
    config = tmp_path / "framelane.yaml"
    config.write_text(json.dumps(one_feed(input_)))
    done = cli("check", "-c", config)
    assert done.returncode == 78
    assert problem in done.stderr + (done.stdout or "")


def test_transcode_reads_shared_memory_too(cli, start, tmp_path):
    path, out = tmp_path / "cap.sock", tmp_path / "out.mkv"
    start(EXAMPLE, path, WIDTH, HEIGHT, 100)
    wait_until(path.is_socket, "the example listens")
    done = cli("transcode", f"shm:{path}", out, "--input-pixel-format", "bgra", "--input-size", SIZE,
               "--duration", "400ms")
    assert done.returncode == 0, done.stderr
    assert media.frame_count(out) == 10
