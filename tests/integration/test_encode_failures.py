"""An encode that cannot encode what comes costs its own frames alone."""

import shutil

import pytest

from harness import media
from harness.configs import COPY, IMPATIENT, encoder, looped, x264
from harness.preload import preload

# H.263 knows five sizes, and none of the clips has one of them.
H263 = encoder("h263")


@pytest.fixture
def shortage(tmp_path):
    """(environment that preloads shortage.c, the file that says what is short)"""
    return preload(tmp_path, "shortage")


def wait_down(daemon, encode, reason):
    """Waits until the encode is down and frames are dropped in it alone; checks its reason."""
    metrics = daemon.wait_metrics(
        lambda m: m.sum("framelane_frames_dropped_total", encode=encode, reason="encoder") >= 10,
        f"frames to be dropped in {encode}")
    assert reason in daemon.feed("cam")["encodes"][encode]["reason"]
    assert metrics.feed_state("cam") == "running"
    return metrics


def test_an_encode_that_cannot_work_is_down_alone(framelane, camera_clip, tmp_path):
    daemon = framelane({"feeds": {"cam": {
        "input": looped(camera_clip), "encodes": {"low": H263, "good": x264()},
        "outputs": {name: {"from": name, "url": str(tmp_path / f"{name}.mkv")}
                    for name in ("low", "good")}}}}).wait_ready()
    wait_down(daemon, "low", "h263 does not open for")
    metrics = daemon.wait_frames("cam", 20, encode="good")
    assert daemon.feed("cam")["encodes"]["good"]["reason"] is None
    assert metrics.sum("framelane_frames_dropped_total", encode="good") == 0
    assert metrics.sum("framelane_source_reconnects_total", feed="cam") == 0
    daemon.wait_log("feed cam: encode low: h263 does not open for")
    assert "check its options and the size; dropping its frames, trying again in" in daemon.log()
    daemon.stop()
    assert len(media.timestamps(tmp_path / "good.mkv")) >= 20
    assert not (tmp_path / "low.mkv").exists()


def test_a_copied_stream_does_not_notice_that_nothing_can_be_encoded(framelane, camera, camera_clip,
                                                                     tmp_path):
    source = camera(camera_clip)
    daemon = framelane({"feeds": {"cam": {
        "input": {"url": source.url, "options": {"rtsp_transport": "tcp"}, **IMPATIENT},
        "encodes": {"copy": COPY, "low": H263},
        "outputs": {"record": {"from": "copy", "url": str(tmp_path / "record.mkv")}}}}}).wait_ready()
    wait_down(daemon, "low", "h263 does not open for")
    metrics = daemon.wait_metrics(lambda m: m.one("framelane_frames_in_total", feed="cam") >= 100,
                                  "four seconds")
    assert metrics.sum("framelane_source_reconnects_total", feed="cam") == 0
    daemon.stop()
    times = media.timestamps(tmp_path / "record.mkv", "dts_time")
    assert len(times) >= 75
    assert [b - a for a, b in zip(times, times[1:]) if b - a > 0.06] == []


def test_an_encode_comes_back_when_the_format_changes(framelane, camera, camera_clip, cif_clip,
                                                      tmp_path):
    """And goes down again in the midst of its work, with a whole file behind it."""
    source = camera(camera_clip)
    daemon = framelane({"feeds": {"cam": {
        "input": {"url": source.url, "options": {"rtsp_transport": "tcp"}, **IMPATIENT},
        "encodes": {"low": H263, "good": x264()},
        "outputs": {"low": {"from": "low", "url": str(tmp_path / "low.avi")},
                    "good": {"from": "good", "url": str(tmp_path / "good.mkv")}}}}}).wait_ready()
    wait_down(daemon, "low", "h263 does not open for")
    source.kill()
    source.start(cif_clip)
    metrics = daemon.wait_frames("cam", 20, encode="low")
    assert daemon.feed("cam")["encodes"]["low"]["reason"] is None
    daemon.wait_log("feed cam: encode low: running again after")
    dropped = metrics.sum("framelane_frames_dropped_total", encode="low", reason="encoder")
    source.kill()
    source.start(camera_clip)
    daemon.wait_metrics(
        lambda m: m.sum("framelane_frames_dropped_total", encode="low", reason="encoder")
        >= dropped + 10, "frames to be dropped again")
    metrics = daemon.metrics()
    assert metrics.sum("framelane_feed_restarts_total") == 0
    assert metrics.sum("framelane_source_reconnects_total", reason="decode") == 0
    daemon.stop()
    assert media.decodes_cleanly(tmp_path / "low.avi")
    assert len(list(tmp_path.glob("good*.mkv"))) == 3


def test_an_encode_that_is_short_of_threads_is_tried_again(framelane, clip, shortage, tmp_path):
    environment, file = shortage
    source = tmp_path / "later.mp4"
    daemon = framelane({"feeds": {"cam": {
        "input": looped(source, options={"threads": 1}, **IMPATIENT),
        "encodes": {"threads": encoder("libx264", threads=2, preset="ultrafast"),
                    "alone": encoder("mjpeg", threads=1)}}}}, env=environment).wait_ready()
    daemon.wait_state("cam", "backoff")
    file.write_text("threads")
    shutil.copy(clip, tmp_path / "copy.mp4")
    (tmp_path / "copy.mp4").rename(source)
    wait_down(daemon, "threads", "threads or memory are short")
    file.unlink()
    metrics = daemon.wait_frames("cam", 10, encode="threads")
    assert metrics.sum("framelane_feed_restarts_total") == 0
    assert metrics.sum("framelane_frames_dropped_total", encode="alone") == 0


def test_a_run_once_fails_as_a_whole(framelane, clip, tmp_path):
    daemon = framelane({"feeds": {"cam": {
        "input": {"url": str(clip)}, "encodes": {"good": x264(), "low": H263},
        "outputs": {"file": {"from": "good", "url": str(tmp_path / "good.mkv")}}}}},
        arguments=["--once"])
    assert daemon.wait_exit() == 1
    assert "feed cam: failed: encode low: h263 does not open for" in daemon.log()
