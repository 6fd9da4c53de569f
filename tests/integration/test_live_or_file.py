"""What is a file, which blocks and ends, and what is live, which drops and is connected to again."""

import contextlib
import os
import pathlib
import re
import shutil
import subprocess
import uuid

import pytest

from harness import media
from harness.camera import free_port
from harness.configs import COPY, IMPATIENT, one_feed
from harness.daemon import BINARY
from harness.http_camera import FileServer
from harness.waiting import TIME_FACTOR, wait_until

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


def test_transcode_of_a_growing_playlist_ends_well_when_the_playlist_does(playlist, tmp_path):
    url, out = playlist(finished=False), tmp_path / "out.mkv"
    with subprocess.Popen([str(BINARY), "transcode", str(url), str(out), "--codec", "copy"],
                          stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True) as process:
        wait_until(lambda: out.with_suffix(".mkv.part").exists(), "the first frames")
        media.close_playlist(tmp_path / "index.m3u8")
        _, errors = process.communicate(timeout=30 * TIME_FACTOR)
    assert process.returncode == 0, errors
    assert media.frame_count(out) == 3 * 25  # of a live playlist FFmpeg reads the last three segments


def test_transcode_of_a_growing_playlist_that_is_lost_fails(file_server, playlist, tmp_path):
    url, out = playlist(finished=False), tmp_path / "out.mkv"
    with subprocess.Popen([str(BINARY), "transcode", str(url), str(out), "--codec", "copy"],
                          stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True) as process:
        wait_until(lambda: out.with_suffix(".mkv.part").exists(), "the first frames")
        (tmp_path / "index.m3u8").unlink()
        _, errors = process.communicate(timeout=30 * TIME_FACTOR)
    assert process.returncode == 1, errors
    assert media.frame_count(out) == 3 * 25


def test_a_feed_whose_playlist_is_finished_says_so(framelane, playlist, tmp_path):
    input_ = {"url": str(playlist(finished=False)), **IMPATIENT, "timeout": "5s"}
    daemon = framelane(one_feed(input_, COPY)).wait_ready()
    daemon.wait_state("cam", "running")
    media.close_playlist(tmp_path / "index.m3u8")
    daemon.wait_metrics(lambda m: m.feed_state("cam") == "backoff", "the end of the playlist")
    assert "is a finished playlist" in daemon.feed("cam")["reason"]


def test_a_playlist_that_becomes_one_of_variants_is_a_lost_source(framelane, playlist, tmp_path):
    input_ = {"url": str(playlist(finished=False)), **IMPATIENT, "timeout": "5s"}
    daemon = framelane(one_feed(input_, COPY)).wait_ready()
    daemon.wait_state("cam", "running")
    whole = (tmp_path / "index.m3u8").read_text()
    (tmp_path / "variants").write_text(
        "#EXTM3U\n#EXT-X-STREAM-INF:BANDWIDTH=1\nindex.m3u8\n")
    (tmp_path / "variants").rename(tmp_path / "index.m3u8")
    daemon.wait_metrics(
        lambda m: m.sum("framelane_source_reconnects_total", feed="cam") >= 2, "two more tries")
    (tmp_path / "whole").write_text(whole)
    (tmp_path / "whole").rename(tmp_path / "index.m3u8")
    daemon.wait_state("cam", "running")


def test_a_variant_that_is_elsewhere_has_its_segments_there(cli, camera_clip, tmp_path,
                                                            tmp_path_factory):
    """As a content delivery network does."""
    folder = tmp_path_factory.mktemp("network")
    (folder / "elsewhere").mkdir()
    media.ffmpeg("-i", camera_clip, "-frames:v", FRAMES, "-c", "copy", "-hls_time", 1,
                 "-hls_list_size", 0, folder / "elsewhere" / "one.m3u8")
    (folder / "index.m3u8").write_text(
        "#EXTM3U\n#EXT-X-STREAM-INF:BANDWIDTH=1\nvariants/one.m3u8\n")
    out = tmp_path / "out.mkv"
    with contextlib.closing(FileServer(folder)) as server:
        server.moved["/variants/one.m3u8"] = "/elsewhere/one.m3u8"
        done = cli("transcode", server.url("index.m3u8"), out, "--codec", "copy")
    assert done.returncode == 0, done.stderr
    assert media.frame_count(out) == FRAMES


@pytest.fixture(params=["http", "local"])
def manifest(request, tmp_path, camera_clip, file_server):
    """The URL of a DASH manifest of FRAMES frames, manifest.mpd in tmp_path: a static one."""
    media.ffmpeg("-i", camera_clip, "-frames:v", FRAMES, "-c", "copy", "-seg_duration", 1, "-f", "dash",
                 tmp_path / "manifest.mpd")
    return file_server.url("manifest.mpd") if request.param == "http" else tmp_path / "manifest.mpd"


def test_a_static_manifest_is_a_file_of_which_no_frame_is_lost(cli, manifest, tmp_path):
    out = tmp_path / "out.mkv"
    done = cli("transcode", manifest, out, "--ring", "1", "--option", "preset=ultrafast")
    assert done.returncode == 0, done.stderr
    assert media.frame_count(out) == FRAMES


def test_a_feed_of_a_static_manifest_ends(framelane, manifest, tmp_path):
    out = tmp_path / "out.mkv"
    daemon = framelane(one_feed({"url": str(manifest)}, COPY, {"file": {"url": str(out)}})).wait_ready()
    daemon.wait_state("cam", "ended")
    daemon.stop()
    assert media.frame_count(out) == FRAMES


def test_a_dynamic_manifest_is_live(framelane, manifest, tmp_path):
    path = tmp_path / "manifest.mpd"
    static = path.read_text()
    duration = re.search(r'mediaPresentationDuration="[^"]*"', static)[0]
    path.write_text(static.replace(duration, 'minimumUpdatePeriod="PT1S"').replace(
        'type="static"', 'type="dynamic" availabilityStartTime="2026-01-01T00:00:00Z"'))
    daemon = framelane(one_feed({"url": str(manifest), **IMPATIENT}, COPY)).wait_ready()
    daemon.wait_state("cam", "running")
    metrics = daemon.wait_metrics(
        lambda m: m.sum("framelane_source_reconnects_total", feed="cam", reason="timeout") >= 2,
        "two silences")
    assert metrics.feed_state("cam") not in ("ended", "failed")


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
        input_ = {"url": str(sdp), **IMPATIENT}
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


RECORDINGS = {  # the file's ending, and input.format
    "by its ending": ("mjpg", None),
    "mpegts": ("ts", "mpegts"),
}


@pytest.mark.parametrize("kind", RECORDINGS)
def test_a_recording_over_http_is_a_file_of_which_no_frame_is_lost(
    cli, file_server, clip, tmp_path, kind
):
    ending, format_ = RECORDINGS[kind]
    codec = "copy" if format_ == "mpegts" else "mjpeg"
    media.ffmpeg("-i", clip, "-c:v", codec, "-f", format_ or "mjpeg", tmp_path / f"in.{ending}")
    out = tmp_path / "out.mkv"
    done = cli("transcode", file_server.url(f"in.{ending}"), out, "--ring", "1", "--option",
               "preset=ultrafast", *(["--input-format", format_] if format_ else []))
    assert done.returncode == 0, done.stderr
    assert media.frame_count(out) == 42


@pytest.mark.parametrize("kind, content_type", [
    ("mjpeg", "video/x-motion-jpeg"),
    ("mpjpeg", "multipart/x-mixed-replace;boundary=ffmpeg"),
])
def test_a_stream_over_http_is_live_whatever_its_format(
    framelane, http_camera, clip, kind, content_type
):
    """A multipart answer even if the camera claims a length."""
    stream = media.ffmpeg("-i", clip, "-c:v", "mjpeg", "-f", kind, "-")
    source = http_camera(stream, content_type, "length" if kind == "mpjpeg" else None)
    daemon = framelane(one_feed({"url": source.url, "format": kind, **IMPATIENT}, COPY)).wait_ready()
    metrics = daemon.wait_metrics(
        lambda m: m.sum("framelane_source_reconnects_total", feed="cam") >= 2, "two reconnects")
    assert metrics.feed_state("cam") != "failed"


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
