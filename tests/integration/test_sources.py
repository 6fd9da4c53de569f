"""Every kind of source delivers all its frames, and every frame is accounted for."""

import os
import shutil
import signal
import subprocess
import threading
import time

import pytest

from harness import media
from harness.camera import free_port
from harness.configs import (COPY, IMPATIENT, encoder, looped, one_feed, raw_input,
                             with_a_file_each, x264)
from harness.daemon import BINARY, WITHOUT_PRIVILEGES
from harness.waiting import wait_until


def finish(daemon, frames):
    """Waits for the end of a file; all its frames must be in and out."""
    metrics = daemon.wait_state("cam", "ended")
    assert metrics.one("framelane_frames_in_total", feed="cam") == frames
    assert metrics.one("framelane_frames_out_total", feed="cam", encode="main") == frames
    assert metrics.sum("framelane_frames_dropped_total", feed="cam") == 0
    return metrics


@pytest.mark.sanitizers
def test_mp4_file_is_read_to_its_last_frame(framelane, clip):
    finish(framelane(one_feed({"url": str(clip)})).wait_ready(), 42)


@pytest.mark.parametrize("skip, decoded", [("nonref", 40), ("nonkey", 10)])
def test_what_is_skipped_is_not_decoded_but_copied_and_counted(
    framelane, made, tmp_path, skip, decoded
):
    """100 frames in groups of 10: a keyframe, and P-frames with two B-frames in between."""
    clip = made("groups.mp4", "-f", "lavfi", "-i", "testsrc2=size=160x96:rate=25:duration=4", "-c:v",
                "libx264", "-preset", "ultrafast", "-x264-params",
                "keyint=10:min-keyint=10:scenecut=0:bframes=2:b-adapt=0:b-pyramid=0:open-gop=0")
    assert media.frame_count(clip) == 100
    types = media.probe(clip, "-show_frames", "-select_streams", "v:0")["frames"]
    kept = {"nonref": "IP", "nonkey": "I"}[skip]
    assert sum(frame["pict_type"] in kept for frame in types) == decoded
    daemon = framelane(with_a_file_each({"url": str(clip)}, {"few": x264(), "all": COPY}, tmp_path,
                                        ".mkv", skip=skip)).wait_ready()
    metrics = daemon.wait_state("cam", "ended")
    daemon.stop()
    assert metrics.one("framelane_frames_in_total", feed="cam") == decoded
    assert metrics.one("framelane_decode_skipped_total", feed="cam") == 100 - decoded
    assert metrics.sum("framelane_decode_errors_total", feed="cam") == 0
    assert media.frame_count(tmp_path / "few.mkv") == decoded
    assert media.frame_count(tmp_path / "all.mkv") == 100


def test_mjpeg_avi_file_is_read_to_its_last_frame(framelane, mjpeg_avi):
    finish(framelane(one_feed({"url": str(mjpeg_avi)})).wait_ready(), 20)


def test_test_source_is_read_to_its_end(framelane):
    url = "lavfi:testsrc2=size=320x240:rate=30:duration=1"
    finish(framelane(one_feed({"url": url})).wait_ready(), 30)


@pytest.mark.parametrize("transport", ["tcp", "udp"])
def test_rtsp_camera_delivers_frames(framelane, camera, camera_clip, transport):
    source = camera(camera_clip, transport=transport)
    daemon = framelane(one_feed({"url": source.url, "options": {"rtsp_transport": transport}}))
    metrics = daemon.wait_ready().wait_frames("cam", 25)
    assert metrics.one("framelane_feed_up", feed="cam") == 1
    assert metrics.sum("framelane_source_reconnects_total", feed="cam") == 0


def test_rtsp_camera_that_has_no_such_transport_is_not_read_by_another(
    framelane, camera, camera_clip
):
    source = camera(camera_clip, transport="udp")
    input_ = {"url": source.url, "options": {"rtsp_transport": "tcp"}, **IMPATIENT}
    daemon = framelane(one_feed(input_)).wait_ready()
    metrics = daemon.wait_metrics(
        lambda m: m.sum("framelane_source_reconnects_total", feed="cam") >= 1, "a refusal")
    assert metrics.sum("framelane_frames_in_total", feed="cam") == 0


@pytest.mark.parametrize("method", ["basic", "digest"])
def test_rtsp_camera_with_login_shows_it_nowhere(framelane, camera, camera_clip, method):
    source = camera(camera_clip, auth=method)
    config = one_feed({"url": source.url_with_login, "options": {"rtsp_transport": "tcp"}})
    config["log"] = {"level": "trace"}
    secrets = ["s3cr3t", "view.er"]
    daemon = framelane(config, secrets=secrets).wait_ready()
    metrics = daemon.wait_frames("cam", 10)
    said = metrics.text + daemon.request("GET", "/api/v1/feeds")[1]
    with open(f"/proc/{daemon.process.pid}/cmdline", encoding="utf-8") as command_line:
        said += command_line.read()
    assert not any(secret in said for secret in secrets)


@pytest.mark.sanitizers
def test_raw_bgra_file_is_read_to_its_last_frame(framelane, bgra):
    finish(framelane(one_feed(raw_input(bgra, "bgra", "64x48"))).wait_ready(), 50)


def test_raw_video_comes_through_standard_input(framelane, bgra):
    with open(bgra, "rb") as frames:
        daemon = framelane(one_feed(raw_input("-", "bgra", "64x48")), stdin=frames).wait_ready()
        finish(daemon, 50)


@pytest.mark.sanitizers
def test_raw_video_comes_through_a_fifo(framelane, tmp_path, bgra):
    fifo = tmp_path / "capture.fifo"
    os.mkfifo(fifo)
    input_ = raw_input(fifo, "bgra", "64x48", **IMPATIENT)
    daemon = framelane(one_feed(input_)).wait_ready()
    # The capture program is started twice: framelane waits for the second writer.
    for count in (50, 100):
        threading.Thread(target=lambda: fifo.write_bytes(bgra.read_bytes()), daemon=True).start()
        metrics = daemon.wait_metrics(
            lambda m, count=count: m.one("framelane_frames_in_total", feed="cam") == count,
            f"{count} frames in",
        )
    assert metrics.sum("framelane_frames_dropped_total", feed="cam") == 0
    assert metrics.sum("framelane_feed_restarts_total", feed="cam") == 0


@pytest.mark.sanitizers
def test_writers_of_a_fifo_hand_over_and_a_broken_off_frame_is_counted(framelane, tmp_path, bgra):
    fifo = tmp_path / "capture.fifo"
    os.mkfifo(fifo)
    frame = 64 * 48 * 4
    data = bgra.read_bytes()
    daemon = framelane(one_feed(raw_input(fifo, "bgra", "64x48", **IMPATIENT))).wait_ready()
    with open(fifo, "wb", buffering=0) as first:
        first.write(data[: 7 * frame + 1000])
    daemon.wait_metrics(
        lambda m: m.sum("framelane_decode_errors_total", feed="cam", reason="truncated") == 1,
        "the first writer's end",
    )
    with open(fifo, "wb", buffering=0) as second:
        second.write(data)
        metrics = daemon.wait_metrics(
            lambda m: m.one("framelane_frames_in_total", feed="cam") >= 57, "57 frames in")
    assert metrics.sum("framelane_decode_errors_total", feed="cam", reason="truncated") == 1
    assert metrics.sum("framelane_timestamp_repairs_total", feed="cam") == 0
    assert metrics.sum("framelane_frames_dropped_total", feed="cam") == 0


def test_a_stop_does_not_wait_for_the_writer_of_a_fifo(framelane, tmp_path):
    feeds = {}
    for name, keys in {"raw": raw_input("", "bgra", "64x48"), "demuxed": {"url": ""}}.items():
        os.mkfifo(tmp_path / f"{name}.fifo")
        keys["url"] = str(tmp_path / f"{name}.fifo")
        feeds[name] = {"input": {**keys, "timeout": "60s"}, "encodes": {"main": x264()}}
    daemon = framelane({"feeds": feeds}).wait_ready()
    daemon.stop(deadline=5)


def test_a_source_stuck_in_a_call_is_abandoned_and_its_feed_rebuilt(framelane, tmp_path, clip):
    """With "concat:" FFmpeg itself opens the FIFO, and waits for a writer beyond every deadline.
    tests/daemon/supervised_feed_test.cpp tests what happens when several runs are stuck."""
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    config = one_feed({"url": f"concat:{fifo}", **IMPATIENT})
    config["feeds"]["other"] = {"input": looped(clip), "encodes": {"main": x264()}}
    daemon = framelane(config).wait_ready()
    metrics = daemon.wait_state("cam", "backoff")
    assert metrics.one("framelane_threads_abandoned_total") == 1
    assert metrics.sum("framelane_feed_restarts_total", feed="cam", reason="internal") == 1
    assert "stuck in a call" in daemon.feed("cam")["reason"]
    assert daemon.request("GET", "/healthz")[0] == 200
    assert metrics.feed_state("other") == "running"
    daemon.wait_state("cam", "connecting")  # by a new run
    daemon.process.send_signal(signal.SIGTERM)

    def ended():
        os.close(os.open(fifo, os.O_RDWR))  # opening the FIFO lets the stuck calls return
        return daemon.process.poll() is not None

    wait_until(ended, "the daemon to end")
    daemon.stop()


def test_interlaced_video_keeps_its_flags_to_the_encoder(framelane, made, tmp_path):
    source = made("interlaced.ts", "-f", "lavfi", "-i", "testsrc2=size=320x240:rate=25:duration=1",
                  "-c:v", "mpeg2video", "-b:v", "4M", "-flags", "+ildct+ilme", "-top", "1")
    bypass, converted = tmp_path / "bypass.mkv", tmp_path / "converted.mkv"
    encodes = {"bypass": encoder("ffv1", level=3),
               "full": encoder("ffv1", level=3, convert={"range": "full"})}
    outputs = {"b": {"from": "bypass", "url": str(bypass)},
               "c": {"from": "full", "url": str(converted)}}
    daemon = framelane({"feeds": {"cam": {"input": {"url": str(source)}, "encodes": encodes,
                                          "outputs": outputs}}}).wait_ready()
    daemon.wait_state("cam", "ended")
    daemon.stop()
    for path in (bypass, converted):
        frames = media.probe(path, "-show_frames")["frames"]
        assert len(frames) == 25
        assert all((f["interlaced_frame"], f["top_field_first"]) == (1, 1) for f in frames), path


def test_a_raw_frame_that_is_cut_short_is_counted_and_not_delivered(framelane, tmp_path, bgra):
    short = tmp_path / "short.raw"
    short.write_bytes(bgra.read_bytes()[: 64 * 48 * 4 * 3 + 100])
    metrics = finish(framelane(one_feed(raw_input(short, "bgra", "64x48"))).wait_ready(), 3)
    assert metrics.one("framelane_decode_errors_total", feed="cam", reason="truncated") == 1


def test_rows_with_padding_are_read_by_their_pitch(framelane, tmp_path, cli):
    rows = b"".join(bytes([row, 2 * row, 3 * row, 255]) * 4 + b"\xee" * 16 for row in range(6))
    padded = tmp_path / "padded.raw"
    padded.write_bytes(rows)
    tight = b"".join(bytes([row, 2 * row, 3 * row, 255]) * 4 for row in range(6))
    daemon = framelane(
        one_feed(raw_input(padded, "bgra", "4x6", pitch=32),
                 {"video": {"codec": [{"name": "rawvideo"}]}},
                 {"file": {"url": str(tmp_path / "out.bgra"), "format": "rawvideo"}})
    ).wait_ready()
    finish(daemon, 1)
    daemon.stop()
    assert (tmp_path / "out.bgra").read_bytes() == tight


def test_a_paced_and_looped_file_behaves_as_a_camera(framelane, mjpeg_avi):
    daemon = framelane(one_feed(looped(mjpeg_avi))).wait_ready()
    start = time.monotonic()
    first = daemon.wait_frames("cam", 5).sum("framelane_frames_out_total")
    # More frames than the clip has: 20, at 10 frames/s.
    last = daemon.wait_frames("cam", 28).sum("framelane_frames_out_total")
    assert last - first <= (time.monotonic() - start) * 10 + 15
    assert daemon.feed("cam")["state"] == "running"


def test_formats_without_a_kernel_go_through_swscale_and_are_counted(framelane, made):
    ten_bit = made("ten-bit.mkv", "-f", "lavfi", "-i", "testsrc2=size=64x48:rate=10:duration=1",
                   "-pix_fmt", "yuv420p10le", "-c:v", "ffv1")
    metrics = finish(framelane(one_feed({"url": str(ten_bit)})).wait_ready(), 10)
    assert metrics.one("framelane_host_copies_total", feed="cam", reason="format") == 10


def test_an_option_that_nothing_consumes_fails_the_feed(framelane, clip):
    daemon = framelane(one_feed({"url": str(clip), "options": {"rtsp_transport": "tcp"}}))
    daemon.wait_ready().wait_state("cam", "failed")
    assert "rtsp_transport" in daemon.feed("cam")["reason"]


def test_an_inherited_option_may_go_unused(framelane, clip):
    config = one_feed({"url": str(clip)})
    config["defaults"] = {"input": {"options": {"rtsp_transport": "tcp"}}}
    finish(framelane(config).wait_ready(), 42)


def test_a_feed_without_outputs_discards(framelane, clip):
    config = {"feeds": {"cam": {"input": {"url": str(clip)}}}}
    finish(framelane(config).wait_ready(), 42)


def test_impatient_settings_do_not_hurt_a_healthy_source(framelane, camera_clip):
    daemon = framelane(one_feed({**looped(camera_clip), **IMPATIENT}, x264())).wait_ready()
    metrics = daemon.wait_frames("cam", 30)
    assert metrics.sum("framelane_source_reconnects_total", feed="cam") == 0


@pytest.mark.parametrize("scheme, listens", [("udp", ""), ("srt", "?mode=listener"),
                                             ("tcp", "?listen=1")])
def test_a_sender_that_falls_silent_shows_as_timeout(framelane, camera_clip, scheme, listens):
    url = f"{scheme}://127.0.0.1:{free_port()}"
    daemon = framelane(one_feed({"url": url, "format": "mpegts", **IMPATIENT}, COPY)).wait_ready()
    with subprocess.Popen(["ffmpeg", "-v", "error", "-re", "-i", str(camera_clip), "-c", "copy",
                           "-f", "mpegts", url + listens], stdin=subprocess.DEVNULL) as sender:
        try:
            daemon.wait_state("cam", "running")
            sender.send_signal(signal.SIGSTOP)
            daemon.wait_log(f"{url} sent nothing usable for 1000 ms; check that it is up")
        finally:
            sender.kill()
    assert "Immediate exit" not in daemon.log()


@pytest.mark.parametrize("kind", ["container", "raw"])
def test_a_file_that_may_not_be_read_is_no_failed_login(framelane, clip, bgra, tmp_path, kind):
    path = tmp_path / "denied"
    shutil.copy(clip if kind == "container" else bgra, path)
    path.chmod(0)
    input_ = {"url": str(path)} if kind == "container" else raw_input(path, "bgra", "64x48")
    daemon = framelane(one_feed({**input_, **IMPATIENT}), wrapper=WITHOUT_PRIVILEGES).wait_ready()
    metrics = daemon.wait_metrics(
        lambda m: m.sum("framelane_source_reconnects_total", feed="cam") >= 1, "a refusal")
    assert metrics.sum("framelane_source_reconnects_total", feed="cam", reason="auth") == 0
    assert f"cannot open {path}: Permission denied; let framelane's user (uid " in daemon.log()
    assert "password" not in daemon.log()
    path.chmod(0o600)
    daemon.wait_state("cam", "ended")


def test_a_camera_that_may_not_be_opened_is_told_with_the_remedy(tmp_path):
    path = tmp_path / "video0"
    path.touch(mode=0)
    done = subprocess.run([*WITHOUT_PRIVILEGES, BINARY, "transcode", "--input-format", "v4l2", path, "null:"],
                          capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 1
    assert f"cannot open {path}: Permission denied; let framelane's user (uid " in done.stderr
