"""Exact colour, end to end: raw BGRA in, compared with the formulas of the ITU recommendations in
exact arithmetic; odd sizes; tags that match the pixels; a size that changes in the stream."""

import json
import os
import random

import pytest

from harness import media
from harness.configs import COPY, beside_another, encoder, one_feed, raw_input, x264

# BT.709 (2020 lines up likewise): Kr, Kb in ten-thousandths.
KR, KB = 2126, 722
KG = 10000 - KR - KB
# Left siting: [1 2 1]/4 across columns centred on even ones, [1 1]/2 down rows.
TAPS = ((-1, 1), (0, 2), (1, 1))


def rounded(numerator, denominator):
    """Rounds half up, and clamps to a byte."""
    return max(0, min(255, (2 * numerator + denominator) // (2 * denominator)))


def expected_yuv(bgra, width, height, subsampled):
    """Y, U and V planes: BT.709 (3.2 to 3.5) limited range, each rounded once."""
    pixels = [
        (bgra[i + 2], bgra[i + 1], bgra[i]) for i in range(0, width * height * 4, 4)
    ]  # R, G, B
    luma = [KR * r + KG * g + KB * b for r, g, b in pixels]  # ten-thousandths of a level
    y = bytes(rounded(16 * 2550000 + 219 * value, 2550000) for value in luma)

    def chroma(sums, weight, k, channel):
        # C = (channel - Y') / (2 (1 - K)), scaled by 224/255 around 128.
        denominator = 2 * (10000 - k) * 255 * weight
        return rounded(128 * denominator + 224 * (10000 * sums[channel] - sums[3]), denominator)

    u, v = bytearray(), bytearray()
    if not subsampled:
        for (r, g, b), value in zip(pixels, luma):
            sums = (r, g, b, value)
            u.append(chroma(sums, 1, KB, 2))
            v.append(chroma(sums, 1, KR, 0))
        return y + bytes(u) + bytes(v)
    for row in range(0, height, 2):
        for column in range(0, width, 2):
            sums = [0, 0, 0, 0]
            for line in (row, min(row + 1, height - 1)):
                for step, weight in TAPS:
                    at = line * width + min(max(column + step, 0), width - 1)
                    for channel in range(3):
                        sums[channel] += weight * pixels[at][channel]
                    sums[3] += weight * luma[at]
            u.append(chroma(sums, 8, KB, 2))
            v.append(chroma(sums, 8, KR, 0))
    return y + bytes(u) + bytes(v)


@pytest.mark.asan
@pytest.mark.parametrize("size", [(1, 1), (3, 5), (641, 479)])
@pytest.mark.parametrize("format_", ["yuv444p", "yuv420p", "nv12"])
def test_raw_bgra_becomes_the_exact_yuv_at_odd_sizes(framelane, tmp_path, size, format_):
    width, height = size
    frame = random.Random(width).randbytes(width * height * 4)
    source = tmp_path / "in.bgra"
    source.write_bytes(frame)
    raw = tmp_path / "out.yuv"
    daemon = framelane(
        one_feed(raw_input(source, "bgra", f"{width}x{height}"),
                 encoder("rawvideo", convert={"format": format_}),
                 {"raw": {"url": str(raw), "format": "rawvideo"}})
    ).wait_ready()
    daemon.wait_state("cam", "ended")
    daemon.stop()
    expected = expected_yuv(frame, width, height, format_ != "yuv444p")
    if format_ == "nv12":
        luma, rest = expected[: width * height], expected[width * height :]
        half = len(rest) // 2
        expected = luma + bytes(b for pair in zip(rest[:half], rest[half:]) for b in pair)
    assert raw.read_bytes() == expected


def test_every_raw_format_is_read_as_ffmpeg_writes_it(framelane, cli, tmp_path):
    """One colour with three different channels, so that none can be mistaken for another."""
    rgb, yuv = (200, 90, 40), (90, 60, 200)
    width, height = 64, 48
    pixels = width * height
    feed = json.loads(cli("schema").stdout)["$defs"]["feed"]["properties"]
    names = feed["input"]["anyOf"][0]["properties"]["pixel_format"]["anyOf"][0]["enum"]
    assert len(names) == 20
    feeds, expected = {}, {}
    for name in names:
        gray, full = name == "gray", name.startswith("yuvj")
        if "rgb" in name or "bgr" in name:
            as_, values = "rgb24", bytes(rgb) * pixels
            exact = expected_yuv(bytes((*rgb[::-1], 0)), 1, 1, False)
        else:
            as_ = "gray" if gray else "yuvj444p" if full else "yuv444p"
            values = b"".join(bytes((value,)) * pixels for value in yuv[: 1 if gray else 3])
            exact = (yuv[0], 128, 128) if gray else yuv
            if full:  # luma 16 + y * 219 / 255, chroma around 128 by 224 / 255
                exact = (rounded(16 * 255 + 219 * yuv[0], 255),
                         *(rounded(128 * 255 + 224 * (c - 128), 255) for c in yuv[1:]))
        (tmp_path / "as").write_bytes(values)
        size = ["-video_size", f"{width}x{height}"]
        media.ffmpeg("-f", "rawvideo", "-pixel_format", as_, *size, "-i", tmp_path / "as",
                     "-pix_fmt", name, "-f", "rawvideo", tmp_path / f"{name}.in")
        feeds[name] = {
            "input": raw_input(tmp_path / f"{name}.in", name, f"{width}x{height}"),
            "encodes": {"main": encoder("rawvideo",
                                        convert={"format": "yuv420p", "range": "limited"})},
            "outputs": {"raw": {"url": str(tmp_path / f"{name}.out"), "format": "rawvideo"}},
        }
        expected[name] = b"".join(
            bytes((value,)) * count for value, count in zip(exact, (pixels, pixels // 4, pixels // 4)))
    daemon = framelane({"feeds": feeds}).wait_ready()
    daemon.wait_metrics(lambda m: all(m.feed_state(name) == "ended" for name in names),
                        "all to be read", 60)
    daemon.stop()
    wrong = [name for name in names if (tmp_path / f"{name}.out").read_bytes() != expected[name]]
    assert not wrong


@pytest.mark.parametrize("size", [(1, 1), (3, 5), (641, 479)])
def test_odd_sizes_pass_through_a_lossless_encoder(framelane, tmp_path, size):
    width, height = size
    frame = random.Random(7).randbytes(width * height * 4)
    source = tmp_path / "in.bgra"
    source.write_bytes(frame)
    path = tmp_path / "out.mkv"
    daemon = framelane(
        one_feed(raw_input(source, "bgra", f"{width}x{height}"),
                 encoder("ffv1", convert={"format": "yuv420p"}), {"file": {"url": str(path)}})
    ).wait_ready()
    daemon.wait_state("cam", "ended")
    daemon.stop()
    assert media.decoded(path) == expected_yuv(frame, width, height, True)


def test_untagged_rgb_is_tagged_as_what_was_applied(framelane, bgra, tmp_path):
    path = tmp_path / "out.mp4"
    daemon = framelane(
        one_feed(raw_input(bgra, "bgra", "64x48"), x264(), {"file": {"url": str(path)}})
    ).wait_ready()
    daemon.wait_state("cam", "ended")
    daemon.stop()
    stream = media.video(path)
    assert stream["color_space"] == "bt709"
    assert stream["color_range"] == "tv"
    assert stream["chroma_location"] == "left"


def test_full_range_mjpeg_is_brought_to_limited_and_tagged_so(framelane, mjpeg_avi, tmp_path):
    path = tmp_path / "out.mkv"
    daemon = framelane(
        one_feed({"url": str(mjpeg_avi)}, encoder("ffv1", convert={"range": "limited"}),
                 {"file": {"url": str(path)}})
    ).wait_ready()
    daemon.wait_state("cam", "ended")
    daemon.stop()
    assert media.video(path)["color_range"] == "tv"
    full = media.decoded(mjpeg_avi)
    # Luma 16 + y * 219 / 255, rounded half up.
    frame = 768 * 576
    expected = bytes((2 * (16 * 255 + 219 * value) + 255) // 510 for value in full[:frame])
    assert media.decoded(path)[:frame] == expected


def test_a_named_matrix_is_applied_and_tagged(framelane, bgra, tmp_path):
    path = tmp_path / "out.mkv"
    encode = encoder("ffv1", convert={"format": "yuv444p", "matrix": "bt601", "range": "full"})
    daemon = framelane(
        one_feed(raw_input(bgra, "bgra", "64x48"), encode, {"file": {"url": str(path)}})
    ).wait_ready()
    daemon.wait_state("cam", "ended")
    daemon.stop()
    stream = media.video(path)
    assert stream["color_space"] in ("smpte170m", "bt470bg")
    assert stream["color_range"] == "pc"
    b, g, r = bgra.read_bytes()[:3]
    assert media.decoded(path)[0] == (2 * (299 * r + 587 * g + 114 * b) + 1000) // 2000


@pytest.mark.parametrize("range_", ["limited", "full"], ids=["passed-on", "converted"])
@pytest.mark.parametrize("suffix", ["mkv", "mp4"])
def test_primaries_and_transfer_follow_the_source_into_the_file(
    cli, made, clip, tmp_path, suffix, range_
):
    # The frames are tagged: FFmpeg 7 takes no primaries and no transfer from the encoder's options.
    tags_of_frames = "color_primaries=bt2020:color_trc=smpte2084:colorspace=bt2020nc:range=tv"
    source = made("hdr.mkv", "-i", clip, "-frames:v", "10", "-vf",
                  f"scale=320:240,setparams={tags_of_frames}", "-c:v", "libx264", "-preset", "ultrafast")
    path = tmp_path / f"out.{suffix}"
    done = cli("transcode", "--quiet", source, path, "--codec", "libx264", "--range", range_)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")

    def tags(file):
        stream = media.video(file)
        return [stream[f"color_{key}"] for key in ("primaries", "transfer", "space")]

    assert tags(source) == ["bt2020", "smpte2084", "bt2020nc"]
    assert tags(path) == tags(source)
    assert media.video(path)["color_range"] == {"limited": "tv", "full": "pc"}[range_]


COEFFICIENTS = {"bt709": (0.2126, 0.0722), "smpte170m": (0.299, 0.114),
                "bt470bg": (0.299, 0.114)}  # Kr, Kb


def yuv_as_tagged(rgb, stream):
    """The Y, U and V that a player expects for a colour, by the tags that ffprobe finds. Without
    tags a stream of few lines means BT.601, limited range."""
    kr, kb = COEFFICIENTS[stream.get("color_space", "smpte170m")]
    r, g, b = (value / 255 for value in rgb)
    y = kr * r + (1 - kr - kb) * g + kb * b
    u, v = (b - y) / (2 - 2 * kb), (r - y) / (2 - 2 * kr)
    if stream.get("color_range", "tv") == "pc":
        return 255 * y, 128 + 255 * u, 128 + 255 * v
    return 16 + 219 * y, 128 + 224 * u, 128 + 224 * v


@pytest.mark.parametrize("source_kind", ["rgb", "yuv"])
@pytest.mark.parametrize("codec, suffix, range_", [
    ("libx264", "mp4", "auto"), ("libx264", "ts", "full"), ("libx265", "mkv", "full"),
    ("mjpeg", "mkv", "auto"), ("mjpeg", "avi", "auto"), ("mjpeg", "mp4", "auto"),
    ("mpeg4", "mkv", "full"), ("mpeg4", "mp4", "auto"), ("mpeg4", "mp4", "full"),
    ("mpeg4", "ts", "auto"), ("mpeg4", "avi", "auto"), ("mpeg2video", "ts", "auto"),
    ("libvpx-vp9", "mkv", "full"), ("libvpx-vp9", "mp4", "auto"), ("libvpx", "avi", "auto"),
    ("ffv1", "mkv", "limited"), ("rawvideo", "mkv", "limited")])
def test_players_find_the_colour_that_was_put_in(cli, tmp_path, source_kind, codec, suffix, range_):
    """The frames have one colour, so that no codec can change it; "yuv" is BT.709, full range."""
    red, green, blue = 200, 90, 40
    source = tmp_path / "in.bgra"
    source.write_bytes(bytes((blue, green, red, 255)) * (64 * 48) * 50)
    arguments = ["--input-format", "rawvideo", "--input-pixel-format", "bgra", "--input-size",
                 "64x48"]
    if source_kind == "yuv":
        tagged = tmp_path / "in.mkv"
        done = cli("transcode", source, tagged, *arguments, "--codec", "ffv1", "--matrix", "bt709",
                   "--range", "full")
        assert done.returncode == 0, done.stderr
        source, arguments = tagged, []
    path = tmp_path / f"out.{suffix}"
    done = cli("transcode", "--quiet", source, path, *arguments, "--codec", codec,
               *([] if range_ == "auto" else ["--range", range_]))
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    stream = media.video(path)
    if codec not in ("mpeg4", "libvpx"):
        assert stream["color_space"] in COEFFICIENTS and stream["color_range"] in ("tv", "pc")
    frame, chroma = media.decoded(path), 64 * 48
    assert stream["pix_fmt"] in ("yuv420p", "yuvj420p", "nv12")
    # A pixel in the middle, because codecs may be less exact at an edge.
    if stream["pix_fmt"] == "nv12":
        u = chroma + 12 * 64 + 32
        found = frame[24 * 64 + 32], frame[u], frame[u + 1]
    else:
        u = chroma + 12 * 32 + 16
        found = frame[24 * 64 + 32], frame[u], frame[u + 32 * 24]
    expected = yuv_as_tagged((red, green, blue), stream)
    assert all(abs(a - b) <= 3 for a, b in zip(found, expected)), (found, expected, stream)


@pytest.fixture(scope="session")
def two_sizes(made, clip):
    """An MPEG-TS that changes from 320x240 to 160x120 after 20 frames, as some DVRs do."""
    parts = [
        made(f"size-{size}.ts", "-i", clip, "-frames:v", "20", "-vf", f"scale={size}", "-c:v",
             "libx264", "-g", "10", "-bf", "0", "-output_ts_offset", offset, "-f", "mpegts")
        for size, offset in (("320x240", "0"), ("160x120", "2"))
    ]
    whole = parts[0].with_name("two-sizes.ts")
    if not whole.exists():
        partial = whole.with_suffix(f".{os.getpid()}")  # other workers make the same file
        partial.write_bytes(parts[0].read_bytes() + parts[1].read_bytes())
        partial.rename(whole)
    return whole


@pytest.mark.sanitizers
def test_a_change_of_size_continues_in_a_second_file(framelane, two_sizes, clip, tmp_path):
    config = one_feed({"url": str(two_sizes)}, x264(), {"file": {"url": str(tmp_path / "out.mp4")}})
    daemon = framelane(beside_another(config, clip)).wait_ready()
    metrics = daemon.wait_state("cam", "ended")
    daemon.wait_more_frames("other", 5)
    daemon.stop()
    assert metrics.sum("framelane_frames_dropped_total", feed="cam") == 0
    assert metrics.sum("framelane_feed_restarts_total", feed="cam") == 0
    first, second = tmp_path / "out.mp4", tmp_path / "out.2.mp4"
    assert (media.video(first)["width"], media.video(second)["width"]) == (320, 160)
    assert media.frame_count(first) + media.frame_count(second) == 40


@pytest.mark.sanitizers
def test_a_copied_change_of_size_continues_in_second_files(framelane, two_sizes, tmp_path):
    """In MPEG-TS the size is only in the coded pictures, which are not decoded here."""
    daemon = framelane(
        one_feed({"url": str(two_sizes)}, COPY,
                 {suffix: {"url": f"{tmp_path}/out.{suffix}"} for suffix in ("mp4", "mkv", "ts")})
    ).wait_ready()
    metrics = daemon.wait_state("cam", "ended")
    daemon.stop()
    assert metrics.sum("framelane_frames_in_total", feed="cam") == 0
    assert metrics.sum("framelane_output_packets_dropped_total") == 0
    for suffix in ("mp4", "mkv", "ts"):
        first, second = tmp_path / f"out.{suffix}", tmp_path / f"out.2.{suffix}"
        assert (media.video(first)["width"], media.video(second)["width"]) == (320, 160)
        assert (media.frame_count(first), media.frame_count(second)) == (20, 20)
        assert media.decodes_cleanly(first) and media.decodes_cleanly(second)


@pytest.mark.parametrize("encode", [x264(), COPY], ids=["encoded", "copied"])
def test_a_change_of_size_shows_as_a_discontinuity_in_hls(framelane, two_sizes, tmp_path, encode):
    playlist = tmp_path / "hls" / "index.m3u8"
    daemon = framelane(
        one_feed({"url": str(two_sizes)}, encode,
                 {"hls": {"url": str(playlist), "options": {"hls_time": 1, "hls_list_size": 0}}})
    ).wait_ready()
    daemon.wait_state("cam", "ended")
    daemon.stop()
    lines = playlist.read_text().splitlines()
    assert "#EXT-X-DISCONTINUITY" in lines
    names = [line for line in lines if line and line[0] != "#"]
    assert len(names) == len(set(names))
    total = sum(media.frame_count(playlist.parent / name) for name in names)
    assert total == 40
