"""Frames keep the times at which they were taken: of slow sources, of those that have no times, and after
a burst."""

import os
import shutil
import signal
import subprocess
import time

import pytest

from harness import media
from harness.configs import COPY, IMPATIENT, encoder, looped, one_feed, raw_input, x264

NO_DELAY = x264(tune="zerolatency")
# Frames. A busy machine holds a feed up for less than that, and a burst is longer.
RING_OF_A_BURST = 16


def assert_apart(path, times, within):
    """The recorded frames are as far from the first as `times` are."""
    recorded = media.timestamps(path)[: len(times)]
    assert len(recorded) == len(times), recorded
    for frame, (is_, should) in enumerate(zip(recorded, times)):
        assert abs((is_ - recorded[0]) - (should - times[0])) < within, (frame, recorded, times)


def test_mjpeg_over_http_has_the_times_at_which_it_comes(
    framelane, http_camera, mjpeg_avi, tmp_path
):
    stream = media.ffmpeg("-i", mjpeg_avi, "-frames:v", 8, "-c", "copy", "-f", "mjpeg", "-")
    pictures = [b"\xff\xd8" + rest for rest in stream.split(b"\xff\xd8")[1:]]
    parts = [b"--frame\r\nContent-Type: image/jpeg\r\nContent-Length: %d\r\n\r\n%b\r\n"
             % (len(picture), picture) for picture in pictures]
    source = http_camera(parts, "multipart/x-mixed-replace;boundary=frame", interval=0.25)
    source.stay()
    copied, encoded = tmp_path / "copied.mkv", tmp_path / "encoded.mkv"
    daemon = framelane({"feeds": {"cam": {
        "input": {"url": source.url}, "encodes": {"copy": COPY, "main": NO_DELAY},
        "outputs": {"c": {"from": "copy", "url": str(copied)},
                    "m": {"from": "main", "url": str(encoded)}}}}}).wait_ready()
    metrics = daemon.wait_frames("cam", len(parts), encode="main")
    assert metrics.sum("framelane_timestamp_repairs_total", feed="cam") == 0
    daemon.stop()
    for path in (copied, encoded):
        assert_apart(path, source.sent, within=0.15)


@pytest.mark.parametrize("through", ["fifo", "stdin"])
def test_pictures_without_times_have_those_at_which_they_come_through_a_pipe(
    framelane, mjpeg_avi, tmp_path, through
):
    stream = media.ffmpeg("-i", mjpeg_avi, "-frames:v", 7, "-c", "copy", "-f", "mjpeg", "-")
    pictures = [b"\xff\xd8" + rest for rest in stream.split(b"\xff\xd8")[1:]]
    fifo, record = tmp_path / "pictures.fifo", tmp_path / "record.mkv"
    os.mkfifo(fifo)
    reader = os.open(fifo, os.O_RDONLY | os.O_NONBLOCK) if through == "stdin" else None
    daemon = framelane(
        one_feed({"url": "-" if reader else str(fifo), "format": "mjpeg"}, NO_DELAY,
                 {"file": {"url": str(record)}}),
        **({"stdin": reader} if reader else {})).wait_ready()
    sent = []
    with open(fifo, "wb", buffering=0) as writer:
        for picture in pictures:
            writer.write(picture)
            sent.append(time.monotonic())
            time.sleep(0.4)
    if reader:
        os.close(reader)
    # A picture is known to be whole when the next one begins, and the last one at the end.
    metrics = daemon.wait_frames("cam", len(pictures))
    assert metrics.sum("framelane_timestamp_repairs_total", feed="cam") == 0
    daemon.stop()
    assert_apart(record, sent[1:], within=0.15)


@pytest.mark.parametrize("rate", [10, None])
def test_pictures_that_are_piped_into_transcode_have_a_rate(cli, clip, tmp_path, rate):
    """The stream itself says 10, too."""
    out = tmp_path / "out.mkv"
    command = ["ffmpeg", "-v", "error", "-i", clip, "-frames:v", "20", "-c", "copy", "-f", "h264", "-"]
    with subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE) as writer:
        done = cli("transcode", "-", out, "--input-format", "h264", "--codec", "ffv1",
                   *(["--input-rate", rate] if rate else []), stdin=writer.stdout)
    assert done.returncode == 0, done.stderr
    assert_apart(out, [i / 10 for i in range(20)], within=0.01)


def test_raw_frames_that_arrive_one_by_one_have_the_times_at_which_they_arrive(
    framelane, tmp_path, bgra
):
    fifo, record = tmp_path / "capture.fifo", tmp_path / "record.mkv"
    os.mkfifo(fifo)
    frame = bgra.read_bytes()[: 64 * 48 * 4]
    input_ = raw_input(fifo, "bgra", "64x48", timestamps="arrival")
    daemon = framelane(one_feed(input_, NO_DELAY, {"file": {"url": str(record)}})).wait_ready()
    arrivals = []
    for count in range(1, 5):  # each by a writer of its own
        fifo.write_bytes(frame)
        arrivals.append(time.monotonic())
        daemon.wait_frames("cam", count)
        time.sleep(0.3)
    assert daemon.metrics().sum("framelane_timestamp_repairs_total", feed="cam") == 0
    daemon.stop()
    assert_apart(record, arrivals, within=0.15)


def test_raw_frames_of_one_slow_writer_have_the_times_at_which_they_arrive(framelane, tmp_path, bgra):
    """It takes 6 s, since a clock that jumps by less than 5 s is believed anyway."""
    fifo, record = tmp_path / "capture.fifo", tmp_path / "record.mkv"
    os.mkfifo(fifo)
    frame = bgra.read_bytes()[: 64 * 48 * 4]
    input_ = raw_input(fifo, "bgra", "64x48", timestamps="arrival")
    daemon = framelane(one_feed(input_, NO_DELAY, {"file": {"url": str(record)}},
                                on_gap={"split_after": "never"})).wait_ready()
    arrivals = []
    with open(fifo, "wb", buffering=0) as writer:
        for count in range(1, 3):
            writer.write(frame)
            arrivals.append(time.monotonic())
            daemon.wait_frames("cam", count)
            if count == 1:
                time.sleep(5.5)
    assert daemon.metrics().sum("framelane_timestamp_repairs_total", feed="cam") == 0
    daemon.stop()
    assert_apart(record, arrivals, within=0.15)


@pytest.mark.parametrize("over", ["disk", "http"])
def test_a_sparse_file_keeps_its_times(framelane, made, file_server, tmp_path, over):
    source = made("sparse.mkv", "-f", "lavfi", "-i", "testsrc2=size=64x48:rate=25:duration=61", "-vf",
                  "select='not(mod(n,500))+eq(n,1)'", "-fps_mode", "vfr", "-c:v", "libx264",
                  "-bf", "0")
    record = tmp_path / "record.mkv"
    shutil.copy(source, tmp_path / "sparse.mkv")
    url = file_server.url("sparse.mkv") if over == "http" else str(source)
    daemon = framelane(one_feed({"url": url}, NO_DELAY, {"file": {"url": str(record)}}))
    metrics = daemon.wait_ready().wait_state("cam", "ended")
    assert metrics.sum("framelane_timestamp_repairs_total", feed="cam") == 0
    assert media.timestamps(record) == media.timestamps(source)


@pytest.mark.parametrize("kind", ["ts", "playlist"])
@pytest.mark.parametrize("encode", [COPY, NO_DELAY], ids=["copied", "encoded"])
def test_a_sparse_transport_stream_keeps_its_times(framelane, made, tmp_path, kind, encode):
    source = made("sparse.ts", "-f", "lavfi", "-i", "testsrc2=size=64x48:rate=25:duration=61", "-vf",
                  "select='not(mod(n,250))'", "-fps_mode", "vfr", "-c:v", "libx264", "-g", "1",
                  "-bf", "0", "-f", "mpegts")
    url = tmp_path / "index.m3u8" if kind == "playlist" else source
    if kind == "playlist":
        media.ffmpeg("-i", source, "-c", "copy", "-hls_time", 10, "-hls_list_size", 0, url)
    record = tmp_path / "record.mkv"
    daemon = framelane(one_feed({"url": str(url)}, encode, {"file": {"url": str(record)}}))
    metrics = daemon.wait_ready().wait_state("cam", "ended")
    assert metrics.sum("framelane_timestamp_repairs_total", feed="cam") == 0
    assert_apart(record, [10 * i for i in range(7)], within=0.01)


def test_a_burst_after_the_process_did_not_run_is_not_dropped(framelane, camera_clip):
    """The pacer catches up as a camera does: with all that is due at once. The ring is much shorter than the
    burst, and long enough for what a busy machine holds up at other times."""
    daemon = framelane(one_feed(looped(camera_clip), x264(preset="medium"), ring=RING_OF_A_BURST)).wait_ready()
    daemon.wait_frames("cam", 5)
    daemon.process.send_signal(signal.SIGSTOP)
    time.sleep(3)  # 75 frames
    daemon.process.send_signal(signal.SIGCONT)
    metrics = daemon.wait_more_frames("cam", 85)
    assert metrics.sum("framelane_frames_dropped_total", feed="cam") == 0


def test_a_burst_is_not_dropped_beside_a_copied_stream(framelane, camera, camera_clip, tmp_path):
    """What is copied goes on in step."""
    source = camera(camera_clip)
    record = tmp_path / "record.mkv"
    daemon = framelane({"feeds": {"cam": {
        "input": {"url": source.url, "options": {"rtsp_transport": "tcp"}},
        "ring": RING_OF_A_BURST, "encodes": {"copy": COPY, "main": x264(preset="medium")},
        "outputs": {"record": {"from": "copy", "url": str(record)}}}}}).wait_ready()
    daemon.wait_frames("cam", 10, encode="main")
    daemon.process.send_signal(signal.SIGSTOP)
    time.sleep(3)  # 75 frames
    daemon.process.send_signal(signal.SIGCONT)
    metrics = daemon.wait_more_frames("cam", 85)
    assert metrics.sum("framelane_frames_dropped_total", feed="cam") == 0
    daemon.stop()
    times = media.timestamps(record, "dts_time")
    assert [b - a for a, b in zip(times, times[1:]) if b - a > 0.06] == []


def test_the_burst_of_a_camera_that_is_connected_to_again_is_not_dropped(
    framelane, camera, camera_clip
):
    """Finding out what it sends takes packets, which are decoded all at once."""
    source = camera(camera_clip)
    input_ = {"url": source.url, "options": {"rtsp_transport": "tcp"}, **IMPATIENT}
    daemon = framelane(one_feed(input_, x264(preset="medium"), ring=2)).wait_ready()
    daemon.wait_frames("cam", 10)
    source.kill()
    daemon.wait_state("cam", "backoff")
    source.start()
    metrics = daemon.wait_more_frames("cam", 20)
    assert metrics.sum("framelane_frames_dropped_total", feed="cam", reason="ring_full") == 0


def test_a_slow_encode_costs_a_copied_stream_no_packet(framelane, camera, camera_clip, tmp_path):
    """A camera that sends by UDP does not wait, and the system keeps less than two seconds of this one.
    It takes 7 s, until three bursts have come."""
    record = tmp_path / "record.mkv"
    source = camera(camera_clip, transport="udp")
    slow = encoder("libvpx-vp9", gop="1s", deadline="best", threads=1, **{"lag-in-frames": 0})
    daemon = framelane({"feeds": {"cam": {
        "input": {"url": source.url, "options": {"buffer_size": 80_000}},
        "encodes": {"copy": COPY, "slow": slow},
        "outputs": {"record": {"from": "copy", "url": str(record)}}}}}).wait_ready()
    daemon.wait_frames("cam", 1, encode="slow")
    for _ in range(3):
        daemon.process.send_signal(signal.SIGSTOP)
        time.sleep(0.8)
        daemon.process.send_signal(signal.SIGCONT)
        read = daemon.metrics().one("framelane_frames_in_total", feed="cam")
        daemon.wait_metrics(lambda m, read=read: m.one("framelane_frames_in_total", feed="cam")
                            >= read + 35, "the burst and some frames more")
    daemon.stop()
    times = media.timestamps(record, "dts_time")
    assert [b - a for a, b in zip(times, times[1:]) if b - a > 0.06] == []
    assert media.decodes_cleanly(record)


def test_a_writer_that_takes_over_from_a_stalled_one_loses_nothing(framelane, tmp_path, bgra):
    fifo = tmp_path / "capture.fifo"
    os.mkfifo(fifo)
    frame = 64 * 48 * 4
    daemon = framelane(one_feed(raw_input(fifo, "bgra", "64x48", **IMPATIENT))).wait_ready()
    with open(fifo, "wb", buffering=0) as stalled:
        stalled.write(bgra.read_bytes()[: 7 * frame + 1000])
        daemon.wait_metrics(
            lambda m: m.sum("framelane_source_reconnects_total", feed="cam", reason="timeout") >= 1,
            "the stall to be noticed")
        with open(fifo, "wb", buffering=0) as second:
            second.write(bgra.read_bytes())
            metrics = daemon.wait_metrics(
                lambda m: m.one("framelane_frames_in_total", feed="cam") >= 57, "57 frames in")
    assert metrics.sum("framelane_decode_errors_total", feed="cam", reason="truncated") == 1
