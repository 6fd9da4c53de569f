"""Parts and sizes of pictures: exact bytes, turned pictures, bars, the shape that players show, a part
that is not there, fewer frames, and one decode for several sizes."""

import json
import random
from fractions import Fraction

import pytest

from harness import media
from harness.configs import encoder, looped, one_feed, raw_input, with_a_file_each, x264


def rounded(value):
    return max(0, min(255, (2 * value.numerator + value.denominator) // (2 * value.denominator)))


def half(line):
    """A line of half the length, bilinear: [1 3 3 1]/8, and beyond the edges the last sample."""
    last = len(line) - 1
    return [sum(Fraction(w, 8) * line[min(max(2 * i - 1 + j, 0), last)]
                for j, w in enumerate((1, 3, 3, 1))) for i in range(len(line) // 2)]


def halved(rows):
    columns = zip(*(half(row) for row in rows))
    return bytes(rounded(value) for row in zip(*map(half, columns)) for value in row)


def gray_rows(width, height):
    """The rows of a picture of noise."""
    noise = random.Random(width)
    return [noise.randbytes(width) for _ in range(height)]


def run(framelane, folder, rows, converts, device):
    """The gray picture, as each encode converts it, goes to the file of its name."""
    source = folder / "in.gray"
    source.write_bytes(b"".join(rows))
    encodes = {name: encoder("rawvideo", convert=convert) for name, convert in converts.items()}
    daemon = framelane(with_a_file_each(raw_input(source, "gray", f"{len(rows[0])}x{len(rows)}"),
                                        encodes, folder, format_="rawvideo", device=device)).wait_ready()
    daemon.wait_state("cam", "ended")
    daemon.stop()


@pytest.mark.asan
@pytest.mark.parametrize("device", ["cpu", "auto"])
def test_half_a_picture_is_exact_and_so_is_a_part_of_it(framelane, tmp_path, device):
    rows = gray_rows(64, 48)
    run(framelane, tmp_path, rows, {"half": {"size": "50%", "filter": "bilinear"},
                                    "part": {"crop": "20x10+7+31"},
                                    "both": {"crop": "40x20+3+5", "size": "20x-2",
                                             "filter": "bilinear"}}, device)
    assert (tmp_path / "half").read_bytes() == halved(rows)
    assert (tmp_path / "part").read_bytes() == b"".join(row[7:27] for row in rows[31:41])
    assert (tmp_path / "both").read_bytes() == halved([row[3:43] for row in rows[5:25]])


def test_transcode_takes_a_part_and_a_size(cli, tmp_path):
    rows = gray_rows(64, 48)
    source = tmp_path / "in.gray"
    source.write_bytes(b"".join(rows))
    raw = ["--input-pixel-format", "gray", "--input-size", "64x48", "--codec", "rawvideo", "--format",
           "rawvideo", "--crop", "20x10+7+31"]
    for name, size, expected in (("part", [], b"".join(row[7:27] for row in rows[31:41])),
                                 ("same", ["--size", "20x-2"], b"".join(row[7:27] for row in rows[31:41]))):
        done = cli("transcode", source, tmp_path / name, *raw, *size)
        assert done.returncode == 0, done.stderr
        assert (tmp_path / name).read_bytes() == expected
    done = cli("transcode", source, tmp_path / "beyond", *raw[:-1], "20x10+50+0")
    assert done.returncode == 1
    assert "crop 20x10+50+0 lies outside the picture of 64x48" in done.stderr and "--crop" in done.stderr


def test_a_part_that_is_gone_when_the_picture_changes_comes_back_with_it(framelane, made, clip, tmp_path):
    """The middle one of three sizes is too small for the part: its encode alone is down meanwhile."""
    parts = [made(f"crop-{size}-{offset}.ts", "-i", clip, "-frames:v", "10", "-vf", f"scale={size}", "-c:v",
                  "libx264", "-bf", "0", "-output_ts_offset", offset, "-f", "mpegts")
             for size, offset in (("320x240", "0"), ("160x120", "2"), ("320x240", "4"))]
    source = tmp_path / "in.ts"
    source.write_bytes(b"".join(part.read_bytes() for part in parts))
    encodes = {"whole": encoder("rawvideo"), "part": encoder("rawvideo", convert={"crop": "200x200+100+0"})}
    daemon = framelane(with_a_file_each({"url": str(source)}, encodes, tmp_path, ".nut")).wait_ready()
    metrics = daemon.wait_state("cam", "ended")
    daemon.stop()
    assert metrics.one("framelane_frames_out_total", encode="whole") == 30
    assert metrics.one("framelane_frames_out_total", encode="part") == 20
    assert metrics.one("framelane_frames_dropped_total", encode="part", reason="encoder") == 10
    assert "crop 200x200+100+0 lies outside the picture of 160x120" in daemon.log()
    assert sum(media.frame_count(path) for path in tmp_path.glob("part*.nut")) == 20


def flipped(rows, flip):
    if flip == "vertical":
        return rows[::-1]
    return [row[::-1] for row in rows] if flip == "horizontal" else rows


def rotated(rows, degrees):
    for _ in range(degrees // 90):
        rows = [bytes(column) for column in zip(*rows[::-1])]
    return rows


@pytest.mark.asan
@pytest.mark.parametrize("device", ["cpu", "auto"])
def test_turned_pictures_are_exact(framelane, tmp_path, device):
    rows = gray_rows(40, 24)
    turns = [(degrees, flip) for degrees in (0, 90, 180, 270)
             for flip in ("none", "horizontal", "vertical")]
    run(framelane, tmp_path, rows, {f"{flip}-{degrees}": {"rotate": degrees, "flip": flip}
                                    for degrees, flip in turns}, device)
    for degrees, flip in turns:
        expected = b"".join(flipped(rotated(rows, degrees), flip))
        assert (tmp_path / f"{flip}-{degrees}").read_bytes() == expected, (degrees, flip)


def test_fewer_frames_are_evenly_apart_and_counted(framelane, tmp_path):
    """Frame n has the value n. What is left out is no loss, and other encodes get all."""
    source = tmp_path / "in.gray"
    source.write_bytes(b"".join(bytes([n]) * 16 * 16 for n in range(100)))
    encodes = {"all": encoder("rawvideo"), "few": encoder("rawvideo", convert={"rate": 5})}
    daemon = framelane(with_a_file_each(raw_input(source, "gray", "16x16", rate=25), encodes,
                                        tmp_path, ".nut")).wait_ready()
    daemon.wait_state("cam", "ended")
    metrics = daemon.metrics()
    assert metrics.one("framelane_frames_dropped_total", encode="few", reason="rate") == 80
    assert metrics.one("framelane_frames_out_total", encode="few") == 20
    assert metrics.sum("framelane_frames_dropped_total") == 80
    daemon.stop()
    few = tmp_path / "few.nut"
    assert media.timestamps(few) == [n / 5 for n in range(20)]
    assert media.decoded(few)[::16 * 16] == bytes(range(0, 100, 5))
    assert media.video(few)["avg_frame_rate"] == "5/1"
    assert media.frame_count(tmp_path / "all.nut") == 100


def test_bars_have_the_background_and_the_picture_lies_between(framelane, tmp_path):
    source = tmp_path / "in.yuv"
    source.write_bytes(bytes([200]) * 64 * 32 + bytes([90]) * 32 * 16 + bytes([160]) * 32 * 16)
    raw = tmp_path / "out.yuv"
    daemon = framelane(one_feed(
        raw_input(source, "yuv420p", "64x32"),
        encoder("rawvideo", convert={"size": "32x32", "fit": "contain", "background": "#ffffff"}),
        {"raw": {"url": str(raw), "format": "rawvideo"}})).wait_ready()
    daemon.wait_state("cam", "ended")
    daemon.stop()
    bar, picture = bytes([235]) * 32 * 8, bytes([200]) * 32 * 16
    chroma = [bytes([128]) * 16 * 4 + bytes([c]) * 16 * 8 + bytes([128]) * 16 * 4 for c in (90, 160)]
    assert raw.read_bytes() == bar + picture + bar + chroma[0] + chroma[1]


def test_players_show_every_size_in_the_shape_of_the_source(cli, clip, tmp_path):
    stream = media.probe(clip)["streams"][0]
    shape = Fraction(stream["width"], stream["height"])
    for size, expected in (("160x-2", None), ("-2x90", None), ("25%", None), ("100x200", (100, 200))):
        out = tmp_path / f"{size}.mkv"
        result = cli("transcode", "--size", size, clip, out)
        assert result.returncode == 0, result.stderr
        made = media.probe(out)["streams"][0]
        if expected:
            assert (made["width"], made["height"]) == expected
        across, down = map(int, made.get("sample_aspect_ratio", "1:1").split(":"))
        shown = Fraction(made["width"] * across, made["height"] * down)
        assert abs(shown / shape - 1) < Fraction(1, 1000), (size, made)
        media.decodes_cleanly(out)


@pytest.mark.parametrize("size, is_said", [("33%", True), ("40%", False)])
def test_a_live_feed_that_needs_a_third_of_its_pictures_names_the_substream(
    framelane, clip, size, is_said
):
    encodes = {"a": {**x264(), "convert": {"size": size}}, "b": {**x264(), "convert": {"size": "10%"}}}
    daemon = framelane(one_feed(looped(clip), encodes["a"], None, encodes=encodes)).wait_ready()
    daemon.wait_frames("cam", 5, encode="b")
    assert ("its largest encode shows" in daemon.log()) == is_said
    daemon.stop()


@pytest.mark.parametrize("convert, problem", [
    ({"crop": "20x10+50+0"}, "crop 20x10+50+0 lies outside the picture of 64x48"),
    ({"crop": "21x10+0+0"}, "use even numbers"),
    ({"crop": "21x10+0+0", "format": "gray"}, "use even numbers"),
    ({"size": "0x10"}, "must be a size such as 1280x720"),
    ({"size": "-2x-2"}, "must be a size such as 1280x720"),
    ({"crop": "10x10"}, "must be a part of the picture such as 640x480+0+120"),
    ({"background": "red"}, "must be a colour such as"),
    ({"rotate": 45}, "must be 0, 90, 180 or 270"),
    ({"flip": "left"}, "must be one of"),
    ({"rate": 0}, "must be a frame rate such as"),
])
def test_what_is_wrong_is_found_before_the_start(cli, tmp_path, convert, problem):
    config = tmp_path / "framelane.yaml"
    config.write_text(json.dumps(one_feed(raw_input("/dev/zero", "yuv420p", "64x48"),
                                          encoder("rawvideo", convert=convert))))
    result = cli("check", "-c", config)
    assert result.returncode == 78
    assert problem in result.stderr


def test_a_part_that_is_not_there_or_an_odd_size_takes_its_encode_down_and_no_other(framelane, clip, tmp_path):
    config = one_feed({"url": str(clip), "loop": True, "pace": "realtime"}, None, None)
    feed = config["feeds"]["cam"]
    feed["encodes"] = {"whole": x264(), "part": {**x264(), "convert": {"crop": "64x64+9000+0"}},
                       "odd": {**x264(), "convert": {"size": "853x479"}}}
    feed["outputs"] = {name: {"from": name, "url": "null:"} for name in feed["encodes"]}
    daemon = framelane(config).wait_ready()
    daemon.wait_frames("cam", 10, encode="whole")
    encodes = daemon.feed("cam")["encodes"]
    assert encodes["whole"]["reason"] is None
    assert "crop 64x64+9000+0 lies outside the picture of 768x576" in encodes["part"]["reason"]
    refusal = "libx264 does not open for 853x479 yuv420p: width not divisible by 2 (853x479); "
    assert refusal in encodes["odd"]["reason"]
    assert "set convert.size to 854x480, or to 854x-2, which keeps the shape" in encodes["odd"]["reason"]
    daemon.stop()
