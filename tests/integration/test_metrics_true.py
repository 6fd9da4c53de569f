# Longer than 400 lines: each metric has a test, and a count of its own to be held against.
"""Metrics beside a count of somebody else: ffprobe, the file system, the kernel, the peer, the writer. What other files
compare in passing is not repeated here: the luma mean (test_analysis.py), sound (test_audio.py), repaired timestamps
(test_times.py), what a decoder refuses (test_bad_input.py), skipped and missed frames (test_sources.py, test_shm.py),
failed deletions (test_retention.py), threads that hang (test_hangs.py) and reloads (test_reload.py)."""

import os
import pathlib
import re
import socket
import struct
import threading
import time

import pytest

from harness import clock, media
from harness.configs import COPY, IMPATIENT, encoder, looped, one_feed, raw_input, x264
from harness.daemon import STAND_IN_GPU
from harness.events import Events
from harness.preload import preload
from harness.waiting import TIME_FACTOR, wait_until

STEP = "framelane_stage_duration_seconds"


def step(metrics, stage, feed="cam"):
    """(how many, their sum in seconds)"""
    return (metrics.one(f"{STEP}_count", feed=feed, stage=stage), metrics.one(f"{STEP}_sum", feed=feed, stage=stage))


def packet_bytes(path):
    return sum(int(size) for size in media.timestamps(path, "size"))


def test_frames_and_bytes_of_files_are_those_that_ffprobe_and_the_file_system_count(framelane, clip, bgra, tmp_path):
    files = {"clip": {"live-mkv": "live.mkv", "live-ts": "live.ts", "half-mkv": "half.mkv", "copy-mp4": "copy.mp4"},
             "raw": {"raw-mkv": "raw.mkv"}}
    outputs = {feed: {name: {"from": name.split("-")[0], "url": str(tmp_path / file)} for name, file in named.items()}
               for feed, named in files.items()}
    daemon = framelane({"feeds": {
        "clip": {"input": {"url": str(clip)}, "outputs": outputs["clip"], "encodes": {
            "live": x264(), "half": encoder("mpeg2video", convert={"rate": 5}), "copy": COPY}},
        "raw": {"input": raw_input(bgra, "bgra", "64x48"), "outputs": outputs["raw"],
                "encodes": {"raw": encoder("ffv1", convert={"format": "yuv420p"})}}}}).wait_ready()
    for feed in files:
        daemon.wait_state(feed, "ended")
    metrics = daemon.metrics()
    for feed, named in files.items():
        for output, file in named.items():
            assert metrics.one("framelane_output_bytes_total", feed=feed, output=output) == (
                tmp_path / file).stat().st_size, file
    packets = {file: len(media.timestamps(tmp_path / file)) for named in files.values() for file in named.values()}
    came, live, half = (media.frame_count(path) for path in (clip, tmp_path / "live.mkv", tmp_path / "half.mkv"))
    assert metrics.one("framelane_frames_in_total", feed="clip") == came
    assert metrics.one("framelane_frames_out_total", encode="live") == live
    assert metrics.one("framelane_frames_out_total", encode="half") == half
    assert metrics.one("framelane_frames_dropped_total", encode="half", reason="rate") == came - half > 0
    assert metrics.one("framelane_frames_in_total", feed="raw") == bgra.stat().st_size / (64 * 48 * 4)
    assert metrics.one("framelane_input_bytes_total", feed="raw") == bgra.stat().st_size
    assert metrics.one("framelane_input_bytes_total", feed="clip") == packet_bytes(clip)
    assert step(metrics, "decode", "clip")[0] == came
    assert step(metrics, "encode", "clip")[0] == packets["live.mkv"] + packets["half.mkv"]
    assert step(metrics, "kernel", "raw")[0] == packets["raw.mkv"]
    assert step(metrics, "mux", "clip")[0] == sum(packets.values()) - packets["raw.mkv"]


class Reader:
    """A TCP server: takes what one output sends, with the times at which it came."""

    def __init__(self):
        self._server = socket.create_server(("127.0.0.1", 0))
        self.url = f"tcp://127.0.0.1:{self._server.getsockname()[1]}"
        self.data = b""
        self._came = []  # (how much had come, when)
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self):
        peer, _ = self._server.accept()
        while part := peer.recv(1 << 20):
            self.data += part
            self._came.append((len(self.data), time.time()))

    def when(self, size):
        """When the last of so many bytes came."""
        return next(at for length, at in self._came if length >= size)

    def close(self):
        self._server.close()


def test_the_latency_is_what_the_time_in_each_picture_says(framelane, tmp_path):
    """The writer of a FIFO draws its count of pictures into each, and notes when it wrote it; who reads the output looks
    for the count and notes when it came. The encoder looks ten frames ahead, so that what is compared is some 400 ms. What
    framelane does not count, the ways through the FIFO and through the socket, is far below the tolerance of 40 ms, the
    time of one frame."""
    width, height, wanted, lookahead = 160, 32, 40, 10
    fifo = tmp_path / "camera.fifo"
    os.mkfifo(fifo)
    reader = Reader()
    options = {"preset": "veryfast", "rc-lookahead": lookahead, "bf": 0, "threads": 1,
               "x264-params": "aud=1:scenecut=0:sync-lookahead=0"}
    daemon = framelane(one_feed(
        raw_input(fifo, "bgra", f"{width}x{height}", rate=clock.RATE, color={"matrix": "rgb", "range": "full"}),
        encoder("libx264", **options), {"out": {"url": reader.url, "format": "h264"}})).wait_ready()
    written = []
    with open(fifo, "wb", buffering=0) as camera:
        begin = time.time()
        while True:
            number = len(written)
            time.sleep(max(0, begin + number / clock.RATE - time.time()))
            written.append(time.time())
            camera.write(b"".join(b"\xff\xff\xff\xff" * 16 if number >> bit & 1 else b"\0\0\0\xff" * 16
                                  for bit in range(10)) * height)
            if number >= wanted and daemon.metrics().one("framelane_frames_out_total", feed="cam") >= wanted:
                break
        settled = daemon.wait_metrics(
            lambda m: m.one("framelane_frames_in_total", feed="cam") == len(written)
            and m.sum("framelane_ring_jobs", feed="cam") == 0
            and m.one("framelane_output_queue_packets", feed="cam", output="out") == 0
            and step(m, "mux")[0] == m.one("framelane_frame_latency_seconds_count", feed="cam"),
            "the encoder to have all frames, and the reader all packets")
        scraped = time.time()
        count = settled.one("framelane_frame_latency_seconds_count", feed="cam")
        size = settled.one("framelane_output_bytes_total", feed="cam", output="out")
        wait_until(lambda: len(reader.data) >= size, "all bytes at the reader")
        stream = reader.data[:int(size)]
        (tmp_path / "out.h264").write_bytes(stream)
        pictures = [round(at * clock.RATE) for at in clock.read(media.decoded(tmp_path / "out.h264", "gray"))]
        ends = [match.start() for match in re.finditer(b"\0\0\0\1\x09", stream)][1:] + [len(stream)]
        assert pictures == list(range(len(ends))) and len(ends) == count
        seen = [reader.when(end) - written[picture] for picture, end in zip(pictures, ends)]
        mean = sum(seen) / len(seen)
        assert mean > lookahead / 2 / clock.RATE
        ours = settled.one("framelane_frame_latency_seconds_sum", feed="cam") / count
        assert ours == pytest.approx(mean, abs=1 / clock.RATE)
        # There is next to nothing else on the way.
        assert step(settled, "encode") == (count, pytest.approx(ours * count, abs=count / clock.RATE))
        assert written[-1] <= settled.one("framelane_last_frame_timestamp_seconds", feed="cam") <= scraped
        assert settled.one("framelane_input_bytes_total", feed="cam") == len(written) * width * height * 4
        assert settled.one("framelane_frames_in_flight", feed="cam") == len(written) - len(pictures) > lookahead / 2
    reader.close()


class Counts:
    """What slow.c has counted: (calls, seconds) by kind."""

    def __init__(self, file):
        numbers = struct.unpack("8Q", file.read_bytes())
        for at, kind in enumerate(("decode", "encode", "mux", "copy")):
            setattr(self, kind, (numbers[2 * at], numbers[2 * at + 1] / 1e9))


def about(seconds, calls):
    """A metric of so many calls that took so long; up to 10 ms for each may pass around it, on a machine with other work."""
    return pytest.approx(seconds + calls * 0.005, abs=calls * 0.005 + 0.001)


def black(path, width, height, frames):
    """A file of black frames of BGRA, which takes no room on the disk."""
    with open(path, "wb") as file:
        file.truncate(width * height * 4 * frames)
    return path


def test_steps_take_as_long_as_their_calls(framelane, keyed_clip, tmp_path):
    """Calls of FFmpeg take a known time: the decoder's 4 ms, the encoder's 20 ms, the muxer's 5 ms."""
    environment, file = preload(tmp_path, "slow")
    begin = time.monotonic()
    daemon = framelane(
        one_feed({"url": str(keyed_clip), "options": {"threads": "1"}}, x264(tune="zerolatency", threads=1),
                 {"out": {"url": str(tmp_path / "out.ts")}}, ring=2), env=environment).wait_ready()
    daemon.wait_metrics(lambda m: m.one("framelane_feed_bottleneck", feed="cam", stage="encode") == 1,
                        "the slowest step to be the limit")
    metrics = daemon.wait_state("cam", "ended")
    took = time.monotonic() - begin
    known = Counts(file)
    frames, wait = step(metrics, "wait")
    assert step(metrics, "decode") == (frames, about(known.decode[1], frames))
    assert step(metrics, "encode") == (frames, about(known.encode[1], frames))
    assert step(metrics, "mux") == (frames, about(known.mux[1], frames))
    # The source waits while the encoder works, but for the time that it decodes and for the last frames in the ring.
    assert known.encode[1] * (1 - 4 / frames) - known.decode[1] < wait < took - known.decode[1]


def on_cpu(pid, all_threads=False):
    """Seconds on a processor, and seconds in which they waited for one, of all threads or of those with the program's
    name, which have none of their own."""
    ran = waited = 0
    name = pathlib.Path(f"/proc/{pid}/comm").read_text()
    for task in pathlib.Path(f"/proc/{pid}/task").iterdir():
        if all_threads or (task / "comm").read_text() == name:
            spent = (task / "schedstat").read_text().split()
            ran, waited = ran + int(spent[0]) / 1e9, waited + int(spent[1]) / 1e9
    return ran, waited


def test_the_cpus_lanes_are_busy_as_long_as_their_threads_run(framelane, tmp_path):
    """Linux counts how long a thread runs, and how long it waits for a processor. The threads that convert do little
    else (on a busy machine, being woken takes up to a millisecond a frame), so their lanes are busy for what they ran,
    and for what they waited at most."""
    frames = 60
    source = black(tmp_path / "in.raw", 1920, 1080, frames)
    daemon = framelane(one_feed(raw_input(source, "bgra", "1920x1080"), encoder("rawvideo", convert={"format": "nv12"}),
                                {"out": {"url": "null:"}})).wait_ready()
    metrics = daemon.wait_state("cam", "ended")
    ran, waited = on_cpu(daemon.process.pid)
    count, converted = step(metrics, "kernel")
    lanes = metrics.sum("framelane_lane_busy_seconds_total", feed="cam", op="kernel")
    engine = metrics.one("framelane_engine_busy_seconds_total", device="cpu", engine="kernel")
    assert count == frames and lanes == pytest.approx(converted, rel=0.02)
    assert 0.8 * (ran - 0.05 - 0.001 * frames) < lanes < ran + waited + 0.05, (ran, waited)
    # The device works while any lane does.
    busiest = max(value for _, value in metrics.series("framelane_lane_busy_seconds_total", feed="cam"))
    assert busiest <= engine * 1.001 and engine <= lanes * 1.001
    assert metrics.one("framelane_device_busy_seconds_total", device="cpu") == pytest.approx(engine, rel=0.01)
    assert metrics.one("framelane_overlap_ratio", device="cpu") == 1


def test_a_gpus_upload_is_as_busy_as_its_copies_take(framelane, tmp_path):
    """The stand-in runtime copies a frame row by row, and each row to the GPU takes a known time."""
    if not STAND_IN_GPU.exists():
        pytest.skip("needs the stand-in runtime")
    width, height, frames = 1004, 64, 30
    fifo = tmp_path / "camera.fifo"
    os.mkfifo(fifo)
    environment, file = preload(tmp_path, "slow")
    daemon = framelane(
        {"device": "cuda", **one_feed(
            raw_input(fifo, "bgra", f"{width}x{height}", rate=20),
            encoder("rawvideo", threads=1, convert={"format": "nv12"}),
            {"out": {"url": "null:"}}, lanes=1, ring=1, on_full="block")},
        env={**environment, "FRAMELANE_TEST_SLOW_ROW": str(width * 4)}, binary=STAND_IN_GPU).wait_ready()
    with open(fifo, "wb", buffering=0) as camera:
        begin = time.monotonic()
        for number in range(frames):
            time.sleep(max(0, begin + number / 20 - time.monotonic()))
            camera.write(bytes(width * 4) * height)
        metrics = daemon.wait_frames("cam", frames)
        took = time.monotonic() - begin
        page = Events(daemon)
        shown = page.next("status")
        page.close()
    rows, known = Counts(file).copy
    assert rows == frames * height
    uploads = about(known, frames)
    assert step(metrics, "h2d") == (frames, uploads)
    assert metrics.one("framelane_lane_busy_seconds_total", lane="0", op="h2d") == uploads
    assert metrics.one("framelane_engine_busy_seconds_total", device="cuda:0", engine="h2d") == uploads
    engines = metrics.sum("framelane_engine_busy_seconds_total", device="cuda:0")
    device = metrics.one("framelane_device_busy_seconds_total", device="cuda:0")
    # One frame at a time: nothing overlaps, and the lane works for what its three kinds of work take.
    assert device == pytest.approx(engines, rel=0.02)
    assert metrics.one("framelane_overlap_ratio", device="cuda:0") == pytest.approx(1, abs=0.02)
    assert metrics.one("framelane_lane_occupancy_ratio", lane="0") == pytest.approx(device / took, rel=0.2)
    assert device / took > 0.2
    # The feed is all that the GPU works for.
    gpu = next(one for one in shown["devices"] if one["device"] == "cuda:0")
    assert shown["feeds"][0]["engines"] == pytest.approx(gpu["occupancy"], abs=0.01)
    assert gpu["occupancy"]["h2d"] == pytest.approx(known / took, rel=0.2)
    # One frame of BGRA and one of NV12.
    assert metrics.one("framelane_device_memory_bytes", device="cuda:0") == pytest.approx(width * height * 5.5, rel=0.02)


def test_lost_sources_are_as_many_as_the_cameras_that_hung_up(framelane, camera_clip):
    short = media.ffmpeg("-i", camera_clip, "-t", 2, "-c", "copy", "-f", "mpegts", "-")
    whole = media.ffmpeg("-i", camera_clip, "-c", "copy", "-f", "mpegts", "-")
    hung_up = 4
    with socket.create_server(("127.0.0.1", 0)) as server:
        def serve():
            for number in range(hung_up + 1):
                peer, _ = server.accept()
                peer.sendall(short if number < hung_up else whole)
                if number < hung_up:
                    peer.close()
            last.set()
            stay.wait()
            peer.close()

        last, stay = threading.Event(), threading.Event()
        threading.Thread(target=serve, daemon=True).start()
        url = f"tcp://127.0.0.1:{server.getsockname()[1]}"
        daemon = framelane(one_feed({"url": url, **IMPATIENT, "timeout": "20s"}, COPY, {"out": {"url": "null:"}}))
        daemon.wait_ready()
        metrics = daemon.wait_metrics(
            lambda m: last.is_set() and m.feed_state("cam") == "running", "the last camera")
        assert metrics.one("framelane_source_reconnects_total", feed="cam", reason="eof") == hung_up
        assert metrics.sum("framelane_source_reconnects_total", feed="cam") == hung_up
        stay.set()


def test_lost_packets_are_those_that_the_peer_did_not_get(framelane, camera_clip, tmp_path):
    """A peer that reads nothing until packets were lost: their times are missing in what it gets."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        daemon = framelane(one_feed(looped(camera_clip), encoder("rawvideo"), {"out": {
            "url": f"tcp://127.0.0.1:{server.getsockname()[1]}", "format": "nut", "queue": 10, "timeout": "30s"}}))
        daemon.wait_ready()
        peer, _ = server.accept()

        def lost(m):
            return m.sum("framelane_output_packets_dropped_total", feed="cam")

        def queued(m):
            return m.one("framelane_output_queue_packets", feed="cam", output="out")

        full = daemon.wait_metrics(lambda m: lost(m) >= 10, "lost packets", deadline=60)
        assert 9 <= queued(full) <= 10
        received = []
        thread = threading.Thread(target=lambda: received.extend(iter(lambda: peer.recv(1 << 20), b"")), daemon=True)
        thread.start()
        daemon.wait_metrics(lambda m: queued(m) == 0, "an empty queue")
        metrics = daemon.wait_more_frames("cam", 5)
        daemon.reload(one_feed(looped(camera_clip), encoder("rawvideo")))  # the output ends
        thread.join(20)
        peer.close()
    (tmp_path / "out.nut").write_bytes(b"".join(received))
    times = media.timestamps(tmp_path / "out.nut")
    assert round((times[-1] - times[0]) * 25) + 1 - len(times) == lost(metrics) >= 10


def test_lost_outputs_are_as_many_as_the_peers_that_hung_up(framelane, camera_clip):
    hung_up, last = 3, threading.Event()
    with socket.create_server(("127.0.0.1", 0)) as server:
        def serve():
            for _ in range(hung_up):
                server.accept()[0].close()
            peer, _ = server.accept()
            last.set()
            while peer.recv(1 << 20):
                pass

        threading.Thread(target=serve, daemon=True).start()
        daemon = framelane(one_feed(looped(camera_clip), x264(), {"out": {
            "url": f"tcp://127.0.0.1:{server.getsockname()[1]}", "format": "mpegts",
            "reconnect": {"first": "300ms", "max": "300ms"}}})).wait_ready()

        def is_up(m):
            return m.one("framelane_output_up", feed="cam", output="out")

        def waits(m):
            return m.one("framelane_output_paused", feed="cam", output="out")

        daemon.wait_metrics(lambda m: waits(m) == 1 and is_up(m) == 0, "a wait before a reconnect")
        metrics = daemon.wait_metrics(lambda m: last.is_set() and is_up(m) == 1, "the last peer")
        assert waits(metrics) == 0
        assert metrics.sum("framelane_output_reconnects_total", feed="cam", output="out") == hung_up


def test_the_process_is_what_proc_says(framelane, clip):
    daemon = framelane(one_feed(looped(clip))).wait_ready()
    daemon.wait_frames("cam", 5)
    proc = pathlib.Path(f"/proc/{daemon.process.pid}")

    def cpu_seconds():
        fields = (proc / "stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    before = cpu_seconds()
    metrics = daemon.metrics()
    after = cpu_seconds()
    status = dict(line.split(":", 1) for line in (proc / "status").read_text().splitlines())
    for name, field in (("resident", "VmRSS"), ("virtual", "VmSize")):
        kilobytes = int(status[field].split()[0])
        assert metrics.one(f"process_{name}_memory_bytes") == pytest.approx(kilobytes * 1024, rel=0.05), name
    assert before - 0.02 <= metrics.one("process_cpu_seconds_total") <= after + 0.02
    # One more is the connection of the scrape.
    assert metrics.one("process_open_fds") - len(list((proc / "fd").iterdir())) in (0, 1)
    limit = re.search(r"Max open files\s+(\d+)", (proc / "limits").read_text()).group(1)
    assert metrics.one("process_max_fds") == int(limit)
    # /proc says when it started in ticks after the boot, and when that was in seconds.
    ticks = int((proc / "stat").read_text().rpartition(")")[2].split()[19])
    boot = int(re.search(r"btime (\d+)", pathlib.Path("/proc/stat").read_text()).group(1))
    began = boot + ticks / os.sysconf("SC_CLK_TCK")
    assert metrics.one("process_start_time_seconds") == pytest.approx(began, abs=0.02)


def test_memory_of_frames_is_what_the_process_grows_by(framelane, clip, tmp_path):
    """Frames of 1080p in BGRA are 8.3 MB each: they are most of what a feed needs beside its code and its encoder."""
    source = black(tmp_path / "in.raw", 1920, 1080, 60)
    config = {"feeds": {"copied": {"input": looped(clip), "encodes": {"main": COPY}}}}
    daemon = framelane(config).wait_ready()
    before = daemon.wait_metrics(lambda m: m.one("framelane_feed_up", feed="copied") == 1, "video")
    assert before.one("framelane_host_pinned_bytes") == 0
    config["feeds"]["raw"] = {"input": raw_input(source, "bgra", "1920x1080", loop=True, pace="realtime"),
                              "encodes": {"main": encoder("rawvideo", convert={"format": "nv12"})}}
    daemon.reload(config)
    after = daemon.wait_frames("raw", 20)
    held = after.one("framelane_host_pinned_bytes")
    grown = after.one("process_resident_memory_bytes") - before.one("process_resident_memory_bytes")
    assert 2 * 4 * 1920 * 1080 < held < 1.05 * grown < 2.5 * held, (held, grown)


def test_a_scrape_of_64_feeds_takes_less_than_20_ms_of_a_processor(framelane, clip, bgra):
    """Every fourth feed encodes. They have ended and have all their series, so that the process does nothing but answer."""
    outputs = {"one": {"url": "null:"}, "two": {"url": "null:"}}
    feeds = {f"cam{number}": {"input": {"url": str(clip)}, "encodes": {"main": COPY}, "outputs": outputs}
             for number in range(48)}
    feeds |= {f"raw{number}": {"input": raw_input(bgra, "bgra", "64x48"), "encodes": {"main": encoder("mpeg2video")},
                               "outputs": outputs} for number in range(16)}
    daemon = framelane({"feeds": feeds}).wait_ready()
    metrics = daemon.wait_metrics(lambda m: m.sum("framelane_feed_state", state="ended") == 64, "the end")
    assert len(metrics.series("framelane_lane_busy_seconds_total")) >= 16
    pid, taken = daemon.process.pid, []
    for _ in range(20):
        before = on_cpu(pid, all_threads=True)[0]
        assert daemon.request("GET", "/metrics")[0] == 200
        taken.append(on_cpu(pid, all_threads=True)[0] - before)
    # The least: what other programs do to the caches is not the scrape's.
    assert 0 < min(taken) < 0.020 * TIME_FACTOR, taken
