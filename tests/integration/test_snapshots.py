"""Snapshots: /api/v1/feeds/NAME/snapshot.jpg."""

import json
import subprocess

import pytest

from harness import media
from harness.configs import ALL_WHITE, COPY, IMPATIENT, encoder, looped, one_feed, raw_input, x264
from harness.waiting import wait_until


def ask(daemon, query="", feed="cam"):
    """(status, headers, body)"""
    return daemon.ask_feed(f"{feed}/snapshot.jpg{query}")


def picture(daemon, query=""):
    """(width, height, its RGB bytes), as FFmpeg decodes it."""
    status, headers, body = ask(daemon, query)
    assert (status, headers["Content-Type"]) == (200, "image/jpeg"), body
    header = subprocess.run(["ffprobe", "-v", "error", "-f", "mjpeg", "-show_entries", "stream=width,height",
                             "-of", "csv=p=0", "-"], input=body, stdout=subprocess.PIPE, check=True).stdout
    width, height = map(int, header.decode().strip().split(","))
    rgb = subprocess.run(["ffmpeg", "-v", "error", "-f", "mjpeg", "-i", "-", "-f", "rawvideo", "-pix_fmt", "rgb24",
                          "-"], input=body, stdout=subprocess.PIPE, check=True).stdout
    assert len(rgb) == 3 * width * height
    return width, height, rgb


def refused(daemon, query="", feed="cam"):
    status, _, body = ask(daemon, query, feed)
    error = json.loads(body)["error"]
    return status, error["code"], error["key"], error["message"]


def solid(path, blue, green, red, frames=25):
    path.write_bytes(bytes([blue, green, red, 255]) * (64 * 48 * frames))
    return raw_input(path, "bgra", "64x48", loop=True, pace="realtime")


@pytest.mark.sanitizers
@pytest.mark.parametrize("convert", [None, {"format": "yuv444p", "matrix": "bt709", "range": "full"}])
def test_a_snapshot_has_the_colours_and_the_size_of_the_picture(framelane, tmp_path, convert):
    codec = encoder("libx264", preset="ultrafast", convert=convert)
    daemon = framelane(one_feed(solid(tmp_path / "in", 30, 200, 90), codec)).wait_ready()
    daemon.wait_frames("cam", 1)
    width, height, rgb = picture(daemon)
    assert (width, height) == (64, 48)
    middle = rgb[3 * (24 * 64 + 32):][:3]
    assert all(abs(a - b) <= 4 for a, b in zip(middle, (90, 200, 30))), list(middle)
    assert picture(daemon, "?width=32")[:2] == (32, 24)
    assert picture(daemon, "?width=640")[:2] == (640, 480)


def test_a_feed_that_only_copies_shows_its_newest_keyframe_once_a_second(framelane, clip):
    daemon = framelane(one_feed(looped(clip), COPY)).wait_ready()
    daemon.wait_metrics(lambda m: m.feed_state("cam") == "running", "the feed to run")
    assert picture(daemon, "?width=320")[:2] == (320, 240)
    assert refused(daemon)[:2] == (429, "too_often")
    wait_until(lambda: ask(daemon)[0] == 200, "the next one")


def test_masks_cover_snapshots_too(framelane, tmp_path):
    source = solid(tmp_path / "in", 0, 0, 0)
    daemon = framelane(one_feed(source, x264(), mask=[ALL_WHITE])).wait_ready()
    daemon.wait_frames("cam", 1)
    assert min(picture(daemon)[2]) >= 250


def test_what_cannot_be_shown_says_why(framelane, clip, tmp_path):
    feeds = {"cam": {"input": looped(clip), "encodes": {"main": x264()}},
             "dead": {"input": {"url": "rtsp://127.0.0.1:1/x", **IMPATIENT}, "encodes": {"main": COPY}}}
    daemon = framelane({"feeds": feeds}).wait_ready()
    daemon.wait_frames("cam", 1)
    assert refused(daemon, feed="other")[:3] == (404, "no_such_feed", "feeds.other")
    for query, key in [("?width=1", "width"), ("?width=9000", "width"), ("?height=9", "height")]:
        assert refused(daemon, query)[:3] == (400, "wrong_parameter", key)
    wait_until(lambda: "refused" in refused(daemon, feed="dead")[3].lower(), "the reason")


def test_snapshots_do_not_delay_the_feed(framelane, tmp_path, clip):
    """Many are taken, and the recording has every frame at its time."""
    config = one_feed(looped(clip), x264(), {"file": {"url": str(tmp_path / "out.mkv")}})
    daemon = framelane(config).wait_ready()
    daemon.wait_frames("cam", 1)
    taken = 0
    while taken < 15:
        taken += ask(daemon, "?width=64")[0] == 200
    assert daemon.metrics().sum("framelane_frames_dropped_total", feed="cam") == 0
    daemon.stop()
    times = sorted(media.timestamps(tmp_path / "out.mkv"))
    assert len(times) >= 15
    assert all(abs(b - a - 0.1) < 0.002 for a, b in zip(times, times[1:])), times
