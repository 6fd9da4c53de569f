"""Input that is no video, or broken video: it is reported and counted, and the daemon goes on."""

import random

import pytest

from harness import media
from harness.configs import IMPATIENT, beside_another, one_feed, x264


@pytest.fixture
def bad(tmp_path, made, clip):
    """bad(kind): makes a file that is no valid video, and returns its path."""

    def make(kind):
        path = tmp_path / f"{kind}.mp4"
        if kind == "empty":
            path.write_bytes(b"")
        elif kind == "text":
            path.write_text("This is not a video.\n" * 200)
        elif kind == "noise":
            path.write_bytes(random.Random(1).randbytes(100_000))
        elif kind == "folder":
            path.mkdir()
        elif kind == "headless":  # the index was at the end and is cut off
            whole = made("index-last.mp4", "-i", clip, "-c", "copy", "-movflags", "-faststart")
            path.write_bytes(whole.read_bytes()[:100_000])
        elif kind == "header":  # nothing after the index
            whole = made("index-first.mp4", "-i", clip, "-c", "copy", "-movflags", "+faststart")
            path.write_bytes(whole.read_bytes().partition(b"mdat")[0] + b"mdat")
        elif kind == "frameless":  # a correct index, and zeros in place of the pictures
            head, mdat, media_ = clip.read_bytes().partition(b"mdat")
            path.write_bytes(head + mdat + bytes(len(media_)))
        elif kind == "sound":
            path = made("sound.m4a", "-f", "lavfi", "-i", "sine=duration=1", "-c:a", "aac")
        return path  # for "missing" no file is made

    return make


@pytest.mark.parametrize(
    "kind", ["missing", "empty", "text", "noise", "folder", "headless", "header", "frameless", "sound"])
def test_transcode_says_in_one_line_what_is_wrong(cli, bad, tmp_path, kind):
    path = bad(kind)
    out = tmp_path / "out.mkv"
    done = cli("transcode", path, out)
    assert done.returncode == 1
    assert len(done.stderr.strip().splitlines()) == 1, done.stderr
    assert path.name in done.stderr
    assert not out.exists() and not list(tmp_path.glob("out*"))


@pytest.mark.sanitizers
@pytest.mark.parametrize("kind", ["missing", "empty", "text", "noise"])
def test_a_source_that_cannot_be_opened_is_in_backoff_and_the_others_run(
    framelane, bad, clip, kind
):
    path = bad(kind)
    config = beside_another(one_feed({"url": str(path), **IMPATIENT}), clip)
    daemon = framelane(config).wait_ready()
    label = "io" if kind == "missing" else "decode"
    metrics = daemon.wait_metrics(
        lambda m: m.sum("framelane_source_reconnects_total", feed="cam", reason=label) >= 2,
        f"two more tries because of {label}",
    )
    assert metrics.sum("framelane_source_reconnects_total", feed="cam") == metrics.sum(
        "framelane_source_reconnects_total", feed="cam", reason=label)
    assert metrics.one("framelane_feed_up", feed="cam") == 0
    daemon.wait_state("cam", "backoff")
    assert str(path) in daemon.feed("cam")["reason"]
    assert "feed cam: " in daemon.log() and str(path) in daemon.log()
    daemon.wait_frames("other", 10)


def test_a_quiet_log_does_not_shorten_the_reason(framelane, bad):
    config = {**one_feed({"url": str(bad("headless")), **IMPATIENT}), "log": {"level": "error"}}
    daemon = framelane(config).wait_ready()
    daemon.wait_state("cam", "backoff")
    assert "moov atom not found" in daemon.feed("cam")["reason"]
    assert daemon.log() == ""


@pytest.mark.parametrize("kind", ["header", "frameless", "sound"])
def test_a_file_without_a_frame_fails_its_feed_and_no_other(framelane, bad, clip, kind):
    config = beside_another(one_feed({"url": str(bad(kind)), **IMPATIENT}), clip)
    daemon = framelane(config).wait_ready()
    metrics = daemon.wait_state("cam", "failed")
    assert metrics.sum("framelane_frames_in_total", feed="cam") == 0
    assert daemon.feed("cam")["reason"]
    daemon.wait_frames("other", 10)


def test_once_fails_when_a_source_cannot_be_opened(framelane, bad):
    daemon = framelane(one_feed({"url": str(bad("missing"))}), arguments=["--once"])
    assert daemon.wait_exit() == 1


@pytest.mark.sanitizers
def test_a_corrupted_file_is_read_on_to_its_end(framelane, clip, tmp_path):
    broken = tmp_path / "broken.mp4"
    media.with_noise(clip, broken, begin=20_000, every=6000, length=1500, seed=3)
    config = beside_another(one_feed({"url": str(broken)}), clip)
    daemon = framelane(config).wait_ready()
    metrics = daemon.wait_state("cam", "ended")
    frames = metrics.one("framelane_frames_in_total", feed="cam")
    errors = metrics.sum("framelane_decode_errors_total", feed="cam")
    assert 0 < frames <= 42
    assert errors > 0
    daemon.wait_frames("other", 10)


def test_a_frame_that_is_garbage_is_a_decode_error(framelane, mjpeg_avi, tmp_path):
    packets = media.probe(mjpeg_avi, "-show_packets")["packets"]
    data = bytearray(mjpeg_avi.read_bytes())
    for number in (5, 6):
        at, size = int(packets[number]["pos"]), int(packets[number]["size"])
        data[at : at + size] = bytes(size)
    broken = tmp_path / "broken.avi"
    broken.write_bytes(data)
    daemon = framelane(one_feed({"url": str(broken)})).wait_ready()
    metrics = daemon.wait_state("cam", "ended")
    assert metrics.one("framelane_frames_in_total", feed="cam") == 18
    assert metrics.one("framelane_decode_errors_total", feed="cam", reason="corrupt") == 2


def test_a_codec_that_nothing_decodes_is_unsupported(framelane, clip, tmp_path):
    head, name, rest = clip.read_bytes().rpartition(b"avc1")  # the avc1 of the video's description
    assert name
    strange = tmp_path / "strange.mp4"
    strange.write_bytes(head + b"xyzw" + rest)
    daemon = framelane(beside_another(one_feed({"url": str(strange)}), clip)).wait_ready()
    metrics = daemon.wait_state("cam", "failed")
    assert metrics.one("framelane_decode_errors_total", feed="cam", reason="unsupported") == 1
    assert "no decoder" in daemon.feed("cam")["reason"]
    daemon.wait_more_frames("other", 5)


def test_a_file_that_is_cut_short_delivers_what_it_holds(framelane, clip, tmp_path, made):
    whole = made("streamable.ts", "-i", clip, "-c", "copy")
    short = tmp_path / "short.ts"
    short.write_bytes(whole.read_bytes()[: whole.stat().st_size // 2])
    daemon = framelane(one_feed({"url": str(short)})).wait_ready()
    metrics = daemon.wait_state("cam", "ended")
    assert 5 < metrics.one("framelane_frames_out_total", feed="cam", encode="main") < 42


def test_a_file_that_appears_later_is_found(framelane, clip, tmp_path):
    path = tmp_path / "later.mp4"
    daemon = framelane(one_feed({"url": str(path), **IMPATIENT})).wait_ready()
    daemon.wait_state("cam", "backoff")
    partial = tmp_path / "partial"
    partial.write_bytes(clip.read_bytes())
    partial.rename(path)
    daemon.wait_state("cam", "ended")


def test_sound_whose_picture_never_comes_is_counted(framelane, made, clip, tmp_path):
    """The output waits for the first picture, because a file begins with one. None comes here."""
    source = made("noise.mkv", "-i", clip, "-f", "lavfi", "-i", "sine=duration=4", "-map", "0:v",
                  "-map", "1:a", "-c:v", "copy", "-c:a", "aac", "-shortest", "-bsf:v",
                  "noise=amount=1")
    audio = [s for s in media.probe(source, "-count_packets")["streams"]
             if s["codec_type"] == "audio"]
    daemon = framelane(one_feed({"url": str(source)}, {**x264(), "audio": "copy"},
                                {"file": {"url": str(tmp_path / "out.mkv")}})).wait_ready()
    metrics = daemon.wait_state("cam", "failed")
    assert metrics.one("framelane_output_packets_dropped_total", feed="cam", output="file",
                       reason="wait_keyframe") == int(audio[0]["nb_read_packets"])
