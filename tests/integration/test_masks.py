"""What a mask covers shows in no output. Sources have a pattern in the masked part; outputs are
compared with those of a source that has been covered before, or with FFmpeg's own decoding."""

import json
import random

import pytest

from harness import media
from harness.configs import (COPY, IMPATIENT, encoder, one_feed, raw_input, with_a_file_each,
                             x264)

WIDTH, HEIGHT = 64, 48
LEFT_HALF = {"polygon": [[0, 0], [0.5, 0], [0.5, 1], [0, 1]]}
ENCODES = {
    "same": encoder("rawvideo"),
    "small": encoder("rawvideo", convert={"size": "50%"}),
    "turned": encoder("rawvideo", convert={"rotate": 90, "format": "yuv444p"}),
    "gray": encoder("rawvideo", convert={"format": "gray"}),
}


def run(framelane, folder, input_, **keys):
    """The bytes of each encode's output."""
    folder.mkdir()
    daemon = framelane(
        with_a_file_each(input_, ENCODES, folder, format_="rawvideo", **keys)).wait_ready()
    metrics = daemon.wait_state("cam", "ended")
    daemon.stop()
    return {name: (folder / name).read_bytes() for name in ENCODES}, metrics


def covered(frames):
    """Frames of BGRA whose left halves are black. Alpha stays."""
    rows = [bytearray(frames[i:i + 4 * WIDTH]) for i in range(0, len(frames), 4 * WIDTH)]
    for row in rows:
        for x in range(0, 4 * WIDTH // 2, 4):
            row[x:x + 3] = bytes(3)
    return b"".join(rows)


@pytest.mark.asan
@pytest.mark.parametrize("device", ["cpu", "auto"])
def test_raw_pictures_are_covered_before_all_else(framelane, tmp_path, device):
    frames = random.Random(3).randbytes(4 * WIDTH * HEIGHT * 3)
    plain, done = tmp_path / "plain.bgra", tmp_path / "covered.bgra"
    plain.write_bytes(frames)
    done.write_bytes(covered(frames))
    size = f"{WIDTH}x{HEIGHT}"
    masked, metrics = run(framelane, tmp_path / "a", raw_input(plain, "bgra", size), mask=LEFT_HALF,
                          device=device)
    expected, _ = run(framelane, tmp_path / "b", raw_input(done, "bgra", size), device=device)
    assert masked == expected
    assert metrics.sum("framelane_host_copies_total", feed="cam") == 0


def test_a_decoders_references_stay_as_they_are(framelane, made, tmp_path):
    """Beside the mask the pictures are those that FFmpeg decodes, though later pictures refer to
    earlier ones under the mask as well."""
    clip = made("motion.mkv", "-f", "lavfi", "-i", "testsrc2=size=160x96:rate=25:duration=2", "-c:v",
                "libx264", "-preset", "medium", "-bf", "2")
    masked = tmp_path / "masked.nut"
    config = one_feed({"url": str(clip)}, encoder("rawvideo"), {"raw": {"url": str(masked)}},
                      mask={**LEFT_HALF, "color": "#ffffff"})
    daemon = framelane(config).wait_ready()
    metrics = daemon.wait_state("cam", "ended")
    daemon.stop()
    expected = bytearray(media.decoded(clip))
    size = 160 * 96 * 3 // 2
    assert len(expected) == 50 * size
    for frame in range(0, len(expected), size):
        planes = [(frame, 160, 96, 235), (frame + 160 * 96, 80, 48, 128),
                  (frame + 160 * 96 * 5 // 4, 80, 48, 128)]
        for begin, width, height, code in planes:
            for row in range(begin, begin + width * height, width):
                expected[row:row + width // 2] = bytes([code]) * (width // 2)
    assert media.decoded(masked) == bytes(expected)
    assert metrics.one("framelane_host_copies_total", feed="cam", reason="mask") > 0


def test_a_change_of_size_leaves_no_frame_without_its_mask(framelane, made, clip, tmp_path):
    parts = [made(f"mask-{size}.ts", "-i", clip, "-frames:v", "10", "-vf", f"scale={size}", "-c:v",
                  "libx264", "-bf", "0", "-output_ts_offset", offset, "-f", "mpegts")
             for size, offset in (("320x240", "0"), ("160x120", "2"))]
    whole = tmp_path / "whole.ts"
    whole.write_bytes(b"".join(part.read_bytes() for part in parts))
    everything = {"polygon": [[0, 0], [1, 0], [1, 1], [0, 1]], "color": "#ffffff"}
    config = one_feed({"url": str(whole)}, encoder("rawvideo"), {"raw": {"url": str(tmp_path / "out.nut")}},
                      mask=[everything])
    daemon = framelane(config).wait_ready()
    daemon.wait_state("cam", "ended")
    daemon.stop()
    outputs = sorted(tmp_path.glob("out*.nut"))
    assert [media.frame_count(path) for path in outputs] == [10, 10] or \
        sum(media.frame_count(path) for path in outputs) == 20
    for path in outputs:
        assert set(media.decoded(path)) == {235, 128}, path


def lit(made, clip, size):
    """The clip in this size, whose left 40 % flash in white: what nobody is to see."""
    return made(f"lit-{size.replace(':', 'x')}.mp4", "-stream_loop", "-1", "-i", clip, "-t", "6", "-vf",
                f"scale={size},fps=25,drawbox=w=iw*0.4:c=white:t=fill", "-c:v", "libx264", "-preset",
                "ultrafast", "-bf", "0", "-g", "25", "-an")


def brightest(path, turned):
    """Of the luma that the mask has to cover, and a little away from its edge, and of all."""
    stream = media.video(path)
    width, height = stream["width"], stream["height"]
    pixels = media.decoded(path, "gray")
    assert len(pixels) % (width * height) == 0 and pixels, path
    covered = 0
    for begin in range(0, len(pixels), width * height):
        if turned:  # the left side is at the top
            covered = max(covered, *pixels[begin:begin + width * (height * 4 // 10)])
            continue
        for row in range(begin, begin + width * height, width):
            covered = max(covered, *pixels[row:row + width * 4 // 10])
    return covered, max(pixels)


def test_a_camera_that_comes_back_in_another_size_never_shows_what_is_covered(
    framelane, camera, made, clip, tmp_path
):
    encodes = {"full": x264(), "turned": {**x264(), "convert": {"rotate": 90}},
               "half": {**x264(), "convert": {"size": "50%"},
                        "overlay": {"text": "%T", "at": "bottom-right"}}}
    source = camera(lit(made, clip, "320:240"))
    config = with_a_file_each(
        {"url": source.url, "options": {"rtsp_transport": "tcp"}, **IMPATIENT}, encodes, tmp_path,
        "-%H%M%S.mkv", mask=LEFT_HALF)
    for output in config["feeds"]["cam"]["outputs"].values():
        output["segment"] = "1s"
    daemon = framelane(config).wait_ready()
    daemon.wait_frames("cam", 30, encode="turned")
    source.kill()
    source.start(lit(made, clip, "480:360"))
    daemon.wait_log("480x360")
    daemon.wait_more_frames("cam", 90)
    daemon.restart_feed("cam")
    daemon.wait_more_frames("cam", 45)
    daemon.stop()
    sizes = set()
    for name in encodes:
        files = sorted(tmp_path.glob(f"{name}-*.mkv"))
        assert len(files) >= 3, name
        for path in files:
            covered, all_of_it = brightest(path, name == "turned")
            assert covered < 60, (path, covered)  # black is 16, and codecs are not exact
            assert all_of_it > 100, path
            sizes.add((name, media.video(path)["width"]))
    assert sizes == {("full", 320), ("full", 480), ("half", 160), ("half", 240), ("turned", 240),
                     ("turned", 360)}


def test_pixelated_parts_show_means(framelane, tmp_path):
    source = tmp_path / "in.gray"
    source.write_bytes(random.Random(5).randbytes(64 * 64))
    config = one_feed(raw_input(source, "gray", "64x64"), encoder("rawvideo"),
                      {"raw": {"url": str(tmp_path / "out"), "format": "rawvideo"}},
                      mask={"polygon": [[0, 0], [1, 0], [1, 1], [0, 1]], "style": "pixelate"})
    daemon = framelane(config).wait_ready()
    daemon.wait_state("cam", "ended")
    daemon.stop()
    before, after = source.read_bytes(), (tmp_path / "out").read_bytes()
    for y in range(64):
        for x in range(64):
            block = [before[64 * v + u] for v in range(y // 4 * 4, y // 4 * 4 + 4)
                     for u in range(x // 4 * 4, x // 4 * 4 + 4)]
            assert after[64 * y + x] == (2 * sum(block) + 16) // 32


def test_a_camera_whose_mask_covers_nothing_is_not_shown(framelane, clip, tmp_path):
    sliver = {"polygon": [[0.50001, 0], [0.50002, 0], [0.50002, 1]]}
    config = one_feed({"url": str(clip)}, x264(), {"file": {"url": str(tmp_path / "out.mp4")}},
                      mask=sliver)
    daemon = framelane(config).wait_ready()
    metrics = daemon.wait_state("cam", "failed")
    assert "mask[0] lies between the pixels of 768x576" in daemon.feed("cam")["reason"]
    assert metrics.one("framelane_frames_out_total", feed="cam", encode="main") == 0
    daemon.stop()
    assert not (tmp_path / "out.mp4").exists()


def test_a_copied_stream_beside_a_mask_is_refused(cli, tmp_path):
    config = tmp_path / "framelane.yaml"
    config.write_text(json.dumps(one_feed({"url": "rtsp://127.0.0.1/"}, COPY, None, mask=LEFT_HALF)))
    result = cli("check", "-c", config)
    assert result.returncode == 78
    assert "which the camera's own stream would go around" in result.stderr
