"""What is a file, which blocks and ends, and what is live, which drops and is connected to again."""

import os
import pathlib
import shutil
import subprocess
import uuid

import pytest

from harness import media
from harness.camera import free_port
from harness.configs import COPY, IMPATIENT, one_feed
from harness.waiting import wait_until

FRAMES = 150


@pytest.fixture(params=["http", "local"])
def playlist(request, tmp_path, camera_clip, file_server):
    """playlist(finished): the URL of a playlist of FRAMES frames."""

    def make(finished):
        flags = [] if finished else ["-hls_flags", "omit_endlist"]
        media.ffmpeg("-i", camera_clip, "-frames:v", FRAMES, "-c", "copy", "-hls_time", 1,
                     "-hls_list_size", 0, *flags, tmp_path / "index.m3u8")
        return file_server.url("index.m3u8") if request.param == "http" else tmp_path / "index.m3u8"

    return make


def test_a_finished_playlist_is_a_file_of_which_no_frame_is_lost(cli, playlist, tmp_path):
    out = tmp_path / "out.mkv"
    done = cli("transcode", playlist(finished=True), out, "--ring", "1")
    assert done.returncode == 0, done.stderr
    assert media.frame_count(out) == FRAMES


def test_a_growing_playlist_is_live_and_is_not_read_once_more_when_it_is_finished(
    framelane, playlist, tmp_path
):
    input_ = {"url": str(playlist(finished=False)), **IMPATIENT}
    daemon = framelane(one_feed(input_, COPY)).wait_ready()
    metrics = daemon.wait_metrics(
        lambda m: m.sum("framelane_source_reconnects_total", feed="cam") >= 1, "a silence")
    assert metrics.feed_state("cam") in ("backoff", "connecting")
    media.close_playlist(tmp_path / "index.m3u8")
    daemon.wait_log("is a finished playlist or a file now")
    before = daemon.metrics()
    ends = before.sum("framelane_source_reconnects_total", feed="cam", reason="eof")
    after = daemon.wait_metrics(
        lambda m: m.sum("framelane_source_reconnects_total", feed="cam", reason="eof") >= ends + 2,
        "two more tries")
    last = "framelane_last_frame_timestamp_seconds"
    assert after.one(last, feed="cam") == before.one(last, feed="cam")


def test_rtp_by_an_sdp_file_is_live(framelane, camera_clip, tmp_path):
    sdp = tmp_path / "camera.sdp"
    senders = []

    def send():
        senders.append(subprocess.Popen(
            ["ffmpeg", "-v", "error", "-re", "-i", str(camera_clip), "-an", "-c", "copy", "-f", "rtp",
             f"rtp://127.0.0.1:{port}", "-sdp_file", str(sdp)],
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL))

    port = free_port() & ~1
    send()
    try:
        wait_until(lambda: sdp.exists() and "a=fmtp" in sdp.read_text(), "the SDP file")
        input_ = {"url": str(sdp), "options": {"protocol_whitelist": "file,udp,rtp"}, **IMPATIENT}
        daemon = framelane(one_feed(input_, COPY)).wait_ready()
        daemon.wait_state("cam", "running")
        senders[-1].kill()
        senders[-1].wait()
        metrics = daemon.wait_metrics(
            lambda m: m.sum("framelane_source_reconnects_total", feed="cam") >= 1, "the silence")
        assert metrics.feed_state("cam") != "failed"
        send()
        daemon.wait_state("cam", "running")
    finally:
        for sender in senders:
            sender.kill()
            sender.wait()


def test_a_file_in_shared_memory_may_be_looped(framelane, clip):
    path = pathlib.Path(f"/dev/shm/framelane-{uuid.uuid4().hex}.mp4")
    shutil.copy(clip, path)
    try:
        daemon = framelane(one_feed({"url": str(path), "loop": True}, COPY)).wait_ready()
        daemon.wait_state("cam", "running")
        daemon.stop()
    finally:
        os.unlink(path)


@pytest.mark.parametrize("url", ["tcp://127.0.0.1:9", "udp://127.0.0.1:9", "http://h/raw"])
def test_raw_video_from_the_network_is_refused_at_once(cli, tmp_path, url):
    config = tmp_path / "framelane.yaml"
    config.write_text(f"feeds: {{cam: {{input: {{url: '{url}', format: rawvideo, size: 4x4,"
                      " pixel_format: bgra, rate: 25}}}\n")
    done = cli("check", "-c", config)
    assert done.returncode == 78, done.stderr
    assert "feeds.cam.input.url: is no place of raw video" in done.stderr
    done = cli("transcode", url, "out.mkv", "--input-format", "rawvideo", "--input-size", "4x4",
               "--input-pixel-format", "bgra", cwd=tmp_path)
    assert done.returncode == 2 and "is no place of raw video" in done.stderr, done.stderr
