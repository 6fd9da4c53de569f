"""What `analyse: true` measures, compared with the same figures computed from the output."""

import random

import pytest

from harness.configs import COPY, encoder, one_feed, raw_input

WIDTH, HEIGHT, FRAMES = 641, 479, 5
PIXELS = WIDTH * HEIGHT
LUMA_MEAN = "framelane_feed_luma_mean"


def random_frames(frame_bytes):
    """Frames of different brightness, so that none can be mistaken for another."""
    source = random.Random(frame_bytes)
    return b"".join(
        bytes(value * (frame + 1) // FRAMES for value in source.randbytes(frame_bytes))
        for frame in range(FRAMES)
    )


def run_to_the_end(framelane, tmp_path, pixel_format, frame_bytes, **convert):
    """The metrics of an analysed feed of raw video that has ended, and the last frame it wrote."""
    source, out = tmp_path / "in.raw", tmp_path / "out.raw"
    source.write_bytes(random_frames(frame_bytes))
    daemon = framelane(
        one_feed(raw_input(source, pixel_format, f"{WIDTH}x{HEIGHT}"),
                 encoder("rawvideo", convert=convert),
                 {"out": {"url": str(out), "format": "rawvideo"}}, analyse=True)
    ).wait_ready()
    metrics = daemon.wait_state("cam", "ended")
    daemon.stop()
    written = out.read_bytes()
    assert len(written) % FRAMES == 0
    return daemon, metrics, written[-len(written) // FRAMES:]


def mean(samples):
    return sum(samples) / len(samples)


@pytest.mark.sanitizers
@pytest.mark.parametrize("target, luma", [
    ("nv12", slice(PIXELS)),
    ("yuv422p", slice(PIXELS)),
    ("gray", slice(PIXELS)),
])
def test_the_luma_mean_is_that_of_the_last_frame_delivered(framelane, tmp_path, target, luma):
    _, metrics, last = run_to_the_end(framelane, tmp_path, "bgra", 4 * PIXELS, format=target)
    assert metrics.one(LUMA_MEAN, feed="cam") == pytest.approx(mean(last[luma]), abs=1e-9)


@pytest.mark.asan
@pytest.mark.parametrize("pixel_format, frame_bytes, luma", [
    ("yuv420p", PIXELS + 2 * ((WIDTH + 1) // 2) * ((HEIGHT + 1) // 2), slice(PIXELS)),
    ("yuv444p", 3 * PIXELS, slice(PIXELS)),
])
def test_a_frame_that_nothing_changes_is_analysed_as_well(framelane, tmp_path, pixel_format,
                                                          frame_bytes, luma):
    daemon, metrics, last = run_to_the_end(framelane, tmp_path, pixel_format, frame_bytes,
                                           format=pixel_format)
    assert "passed on as" in daemon.log()
    assert metrics.one(LUMA_MEAN, feed="cam") == pytest.approx(mean(last[luma]), abs=1e-9)


def test_rgb_has_no_luma_and_the_log_says_so(framelane, tmp_path):
    daemon, metrics, _ = run_to_the_end(framelane, tmp_path, "bgra", 4 * PIXELS)
    assert metrics.series(LUMA_MEAN) == []
    assert "encode main takes bgra, which has no luma" in daemon.log()


def test_the_first_encode_that_decodes_is_the_one_and_other_feeds_have_no_series(
        framelane, clip, bgra, tmp_path):
    raw = tmp_path / "small.gray"
    config = {"feeds": {
        "cam": {"input": {"url": str(clip)}, "analyse": True,
                "encodes": {"copied": COPY,
                            "small": encoder("rawvideo", convert={"format": "gray",
                                                                  "range": "full"}),
                            "large": encoder("rawvideo", convert={"format": "nv12"})},
                "outputs": {"raw": {"from": "small", "url": str(raw), "format": "rawvideo"}}},
        "plain": {"input": raw_input(bgra, "bgra", "64x48"),
                  "encodes": {"main": encoder("rawvideo", convert={"format": "nv12"})}},
        "absent": {"input": raw_input(tmp_path / "none", "bgra", "64x48"), "analyse": True,
                   "encodes": {"main": encoder("rawvideo", convert={"format": "nv12"})}},
    }}
    daemon = framelane(config).wait_ready()
    daemon.wait_state("plain", "ended")
    metrics = daemon.wait_state("cam", "ended")
    assert [labels for labels, _ in metrics.series(LUMA_MEAN)] == [{"feed": "cam"}]
    daemon.stop()
    last = raw.read_bytes()[-768 * 576:]
    assert metrics.one(LUMA_MEAN) == pytest.approx(mean(last), abs=1e-9)
