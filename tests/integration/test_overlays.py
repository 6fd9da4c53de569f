"""What overlays draw: exact bytes of images, the time at which pictures were taken, what lies beside
them, and files that cannot be read."""

import contextlib
import datetime
import json
import os
import pathlib
import random
import shutil
import struct
import zlib

import pytest

from harness import media
from harness.configs import encoder, looped, one_feed, raw_input, with_a_file_each
from harness.preload import preload

WIDTH, HEIGHT = 64, 48
UTC = {"TZ": "UTC"}
DEJAVU = "/usr/share/fonts/truetype/dejavu"


def png(rows):
    """A PNG file of rows of (red, green, blue, alpha)."""
    def chunk(kind, data):
        body = kind + data
        return struct.pack(">I", len(data)) + body + struct.pack(">I", zlib.crc32(body))

    header = struct.pack(">IIBBBBB", len(rows[0]), len(rows), 8, 6, 0, 0, 0)
    data = b"".join(b"\0" + bytes(v for pixel in row for v in pixel) for row in rows)
    return (b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(data))
            + chunk(b"IEND", b""))


def drawn(*overlays, codec="rawvideo", **keys):
    """An encode with these overlays."""
    return {**encoder(codec, **keys), "overlay": list(overlays)}


@pytest.mark.asan
@pytest.mark.parametrize("device", ["cpu", "auto"])
def test_an_image_is_blended_exactly_and_only_where_it_is(framelane, tmp_path, device):
    noise = random.Random(5)
    frames = noise.randbytes(4 * WIDTH * HEIGHT * 3)
    image = [[tuple(noise.randbytes(4)) for _ in range(20)] for _ in range(11)]
    source, logo = tmp_path / "in.bgra", tmp_path / "logo.png"
    source.write_bytes(frames)
    logo.write_bytes(png(image))
    encodes = {"plain": encoder("rawvideo"), "drawn": drawn({"image": str(logo), "at": "bottom-right"})}
    daemon = framelane(with_a_file_each(raw_input(source, "bgra", f"{WIDTH}x{HEIGHT}"), encodes,
                                        tmp_path, format_="rawvideo", device=device)).wait_ready()
    daemon.wait_state("cam", "ended")
    daemon.stop()
    assert (tmp_path / "plain").read_bytes() == frames
    expected = bytearray(frames)
    left, top = (WIDTH - 20 - 1) // 2 * 2, (HEIGHT - 11 - 1) // 2 * 2  # the margin is one pixel
    for frame in range(3):
        for y, row in enumerate(image):
            for x, (red, green, blue, alpha) in enumerate(row):
                at = 4 * ((frame * HEIGHT + top + y) * WIDTH + left + x)
                for i, code in enumerate((blue, green, red)):
                    under = expected[at + i]
                    expected[at + i] = (alpha * code + (255 - alpha) * under + 127) // 255
    assert (tmp_path / "drawn").read_bytes() == bytes(expected)


@pytest.mark.parametrize("size, width, margin", [(f"{WIDTH // 2}x{HEIGHT}", 10, 0),
                                                 (f"{WIDTH * 2}x{HEIGHT}", 40, 2)])
def test_an_image_keeps_its_shape_on_the_screen_where_pixels_are_not_square(framelane, tmp_path, size, width,
                                                                            margin):
    source, logo, out = tmp_path / "in.gray", tmp_path / "logo.png", tmp_path / "out.nut"
    source.write_bytes(bytes(WIDTH * HEIGHT))
    logo.write_bytes(png([[(255, 255, 255, 255)] * 20] * 10))
    daemon = framelane(one_feed(
        raw_input(source, "gray", f"{WIDTH}x{HEIGHT}"),
        drawn({"image": str(logo)}, convert={"size": size}),
        {"file": {"url": str(out)}})).wait_ready()
    daemon.wait_state("cam", "ended")
    daemon.stop()
    pitch = int(size.split("x")[0])
    expected = bytearray(pitch * HEIGHT)
    for row in range(10):  # the margin of one row is rounded down to none
        expected[row * pitch + margin:row * pitch + margin + width] = b"\xeb" * width
    assert media.decoded(out) == bytes(expected)


def gray_frames(path, size):
    data = path.read_bytes()
    assert len(data) % size == 0
    return [data[i:i + size] for i in range(0, len(data), size)]


def test_a_clock_shows_when_each_picture_was_taken(framelane, cli, tmp_path):
    """Each picture of a live source is the picture that is drawn for a second of its run."""
    source = tmp_path / "in.gray"
    source.write_bytes(bytes(WIDTH * 4 * HEIGHT * 4 * 10))
    size = f"{WIDTH * 4}x{HEIGHT * 4}"
    out = tmp_path / "main"
    began = datetime.datetime.now(datetime.timezone.utc)
    daemon = framelane(one_feed(looped(source, **{k: v for k, v in raw_input(
        source, "gray", size, rate=10).items() if k != "url"}),
        drawn({"text": "${feed}  %F %T", "size": "10%"}),
        {"file": {"url": str(out), "format": "rawvideo"}}), env=UTC).wait_ready()
    daemon.wait_frames("cam", 25)
    daemon.stop()
    seconds = int((datetime.datetime.now(datetime.timezone.utc) - began).total_seconds()) + 2
    expected = {}
    for second in range(-1, seconds):
        moment = began + datetime.timedelta(seconds=second)
        text = moment.strftime("cam  %F %T")
        one = tmp_path / f"{second}.raw"
        config = one_feed(raw_input(source, "gray", size),
                          drawn({"text": text, "size": "10%"}),
                          {"file": {"url": str(one), "format": "rawvideo"}})
        still = framelane(config, folder=tmp_path / str(second)).wait_ready()
        still.wait_state("cam", "ended")
        still.stop()
        expected[gray_frames(one, WIDTH * HEIGHT * 16)[0]] = second
    assert len(expected) == seconds + 1, "two seconds look alike"
    shown = [expected[frame] for frame in gray_frames(out, WIDTH * HEIGHT * 16)]
    assert shown == sorted(shown)
    assert len(set(shown)) >= 3


def test_beside_an_overlay_the_pictures_are_the_decoders(framelane, made, tmp_path):
    """Pictures that later ones refer to are not drawn on, though this encode takes them as they are."""
    clip = made("motion.mkv", "-f", "lavfi", "-i", "testsrc2=size=160x96:rate=25:duration=2", "-c:v",
                "libx264", "-preset", "medium", "-bf", "2")
    logo = tmp_path / "logo.png"
    logo.write_bytes(png([[(255, 255, 255, 255)] * 16] * 8))
    daemon = framelane(with_a_file_each(
        {"url": str(clip)}, {"drawn": drawn({"image": str(logo)}), "plain": encoder("rawvideo")},
        tmp_path, ".nut")).wait_ready()
    daemon.wait_state("cam", "ended")
    daemon.stop()
    expected = bytearray(media.decoded(clip))
    assert media.decoded(tmp_path / "plain.nut") == bytes(expected)
    size = 160 * 96 * 3 // 2
    for frame in range(0, len(expected), size):
        planes = [(frame, 160, 2, 16, 8, 235), (frame + 160 * 96, 80, 1, 8, 4, 128),
                  (frame + 160 * 96 * 5 // 4, 80, 1, 8, 4, 128)]
        for begin, pitch, margin, width, rows, code in planes:
            for row in range(rows):
                at = begin + (margin + row) * pitch + margin
                expected[at:at + width] = bytes([code]) * width
    assert media.decoded(tmp_path / "drawn.nut") == bytes(expected)


@pytest.mark.parametrize("others", [True, False])
def test_an_image_that_is_missing_takes_its_encode_down_until_it_is_there(framelane, tmp_path, others):
    fifo, logo = tmp_path / "in.fifo", tmp_path / "logo.png"
    os.mkfifo(fifo)
    encodes = {"drawn": drawn({"image": str(logo)}), **({"plain": encoder("rawvideo")} if others else {})}
    config = with_a_file_each(raw_input(fifo, "bgra", f"{WIDTH}x{HEIGHT}", rate=10, timeout="60s"),
                              encodes, tmp_path, format_="rawvideo")
    config["feeds"]["cam"]["input"]["reconnect"] = {"first": "100ms", "max": "300ms"}
    daemon = framelane(config).wait_ready()
    frame = bytes(4 * WIDTH * HEIGHT)
    with open(fifo, "wb", buffering=0) as writer:
        writer.write(frame * 5)
        daemon.wait_log(f"encode drawn: overlay: the image {logo} cannot be read: No such file")
        if others:
            daemon.wait_frames("cam", 1, encode="plain")
            assert daemon.feed("cam")["state"] == "running"
        logo.write_bytes(png([[(9, 9, 9, 255)] * 4] * 4))
        keep_writing(daemon, writer, frame, "drawn")
    daemon.stop()


def test_without_threads_for_fonts_a_feed_is_started_again_and_the_process_goes_on(framelane, tmp_path):
    """Pango would end the process."""
    environment, file = preload(tmp_path, "shortage")
    fifo = tmp_path / "in.fifo"
    os.mkfifo(fifo)
    config = one_feed(raw_input(fifo, "bgra", f"{WIDTH}x{HEIGHT}", rate=10, timeout="60s"),
                      drawn({"text": "%T"}, threads=1), {"nothing": {"url": "null:"}})
    daemon = framelane(config, env=environment).wait_ready()
    file.write_text("threads")
    frame = bytes(4 * WIDTH * HEIGHT)
    with open(fifo, "wb", buffering=0) as writer:
        writer.write(frame * 2)
        daemon.wait_log("no thread can be started to read fonts")
        file.unlink()
        keep_writing(daemon, writer, frame, "main")
    daemon.stop()


def keep_writing(daemon, writer, frame, encode):
    """Frames into the FIFO until one is encoded; none while nobody reads."""
    os.set_blocking(writer.fileno(), False)

    def works(metrics):
        with contextlib.suppress(BrokenPipeError):
            writer.write(frame)  # None if the pipe is full
        return metrics.sum("framelane_frames_out_total", feed="cam", encode=encode) > 0

    daemon.wait_metrics(works, f"frames of {encode}")


class ClockBesideAnother:
    """A feed with a clock of a font in a folder of its own, and with an encode that has none."""

    def __init__(self, framelane, folder, by_name):
        self.cache, fonts, source = folder / "cache", folder / "fonts", folder / "in.gray"
        source.write_bytes(bytes(WIDTH * HEIGHT * 10))
        fonts.mkdir()
        self.font = fonts / "font.ttf"
        shutil.copy(f"{DEJAVU}/DejaVuSans.ttf", self.font)
        fontconfig(folder, f"<dir>{fonts}</dir><cachedir>{self.cache}</cachedir>")
        overlay = {"text": "%T", "size": "30%", **({"font": str(self.font)} if by_name else {})}
        config = with_a_file_each(
            {**raw_input(source, "gray", f"{WIDTH}x{HEIGHT}", rate=10), **looped(source)},
            {"drawn": drawn(overlay), "plain": encoder("rawvideo")}, folder, format_="rawvideo")
        config["feeds"]["cam"]["input"]["reconnect"] = {"first": "100ms", "max": "300ms"}
        self.daemon = framelane(config, env={"FONTCONFIG_FILE": str(folder / "fonts.conf")}).wait_ready()
        self.wait_for_a_new_text()

    def wait_for_a_new_text(self):
        metrics = self.daemon.metrics()
        for encode in ("plain", "drawn"):
            out = metrics.sum("framelane_frames_out_total", feed="cam", encode=encode)
            self.daemon.wait_frames("cam", out + 12, encode=encode)


@pytest.mark.parametrize("by_name, other", [(True, None), (False, "DejaVuSansMono.ttf")])
def test_a_font_that_is_overwritten_takes_its_encode_down_until_it_can_be_read(framelane, tmp_path, by_name,
                                                                               other):
    feed = ClockBesideAnother(framelane, tmp_path, by_name)
    feed.font.write_bytes((pathlib.Path(DEJAVU) / other).read_bytes() if other else b"")
    feed.daemon.wait_log(f"encode drawn: overlay: the font {feed.font} was overwritten while it was in use")
    shutil.copy(f"{DEJAVU}/DejaVuSans.ttf", feed.font)
    feed.wait_for_a_new_text()
    feed.daemon.stop()


def test_a_cache_of_fontconfig_that_is_cut_off_does_no_harm(framelane, tmp_path):
    feed = ClockBesideAnother(framelane, tmp_path, by_name=False)
    caches = list(feed.cache.glob("*.cache-*"))
    assert caches
    for file in caches:
        os.truncate(file, 0)
    feed.wait_for_a_new_text()
    feed.daemon.stop()


def test_transcode_writes_a_text(cli, tmp_path):
    source = tmp_path / "in.gray"
    source.write_bytes(bytes(WIDTH * 4 * HEIGHT * 4 * 2))
    arguments = ("--input-pixel-format", "gray", "--input-size", f"{WIDTH * 4}x{HEIGHT * 4}")
    for name, text in (("one", "gate 100%%"), ("two", "")):
        cli("transcode", *arguments, *(["--overlay-text", text] if text else []), "--codec", "rawvideo",
            str(source), str(tmp_path / f"{name}.nut"))
    one, two = (media.decoded(tmp_path / f"{name}.nut") for name in ("one", "two"))
    assert one != two
    assert len(one) == len(two)
    rows = WIDTH * 4 * 20  # below the text nothing is drawn
    assert one[rows:len(one) // 2] == two[rows:len(two) // 2]


def fontconfig(folder, text):
    file = folder / "fonts.conf"
    file.write_text(f"<?xml version=\"1.0\"?><fontconfig>{text}</fontconfig>\n")
    return {**os.environ, "FONTCONFIG_FILE": str(file)}


def config_with(folder, overlay):
    config = folder / "check.yaml"
    config.write_text(json.dumps(one_feed({"url": "in.mkv"}, drawn(overlay), {"o": {"url": "null:"}})))
    return config


def test_check_says_that_a_text_finds_no_font(cli, tmp_path):
    env = fontconfig(tmp_path, "")
    done = cli("check", "-c", config_with(tmp_path, {"text": "%T"}), env=env)
    assert done.returncode == 78
    assert ": feeds.cam.encodes.main.overlay[0].text: cannot be drawn: there is no font" in done.stderr
    assert "fonts-dejavu-core" in done.stderr
    font = "/usr/share/fonts/truetype/dejavu/DejaVuSans.ttf"
    assert cli("check", "-c", config_with(tmp_path, {"text": "%T", "font": font}), env=env).returncode == 0


def test_check_says_what_kind_of_file_is_no_font(cli, tmp_path):
    fifo, missing = tmp_path / "font.ttf", tmp_path / "missing.ttf"
    os.mkfifo(fifo)
    for file, why in ((fifo, "is a pipe or a device"), (tmp_path, "is a folder"),
                      (missing, "cannot be read: No such file")):
        done = cli("check", "-c", config_with(tmp_path, {"text": "%T", "font": str(file)}))
        assert done.returncode == 78
        assert ".overlay[0].font: " in done.stderr
        assert f'" {why}' in done.stderr


@pytest.mark.parametrize("env, complaint, remedy", [
    (lambda folder: {**os.environ, "FONTCONFIG_FILE": "/nowhere.conf"}, "Cannot load default config file",
     "fontconfig-config"),
    (lambda folder: fontconfig(folder, f"<dir>{folder}/fonts</dir><cachedir>/proc/none</cachedir>"),
     "No writable cache directories", "XDG_CACHE_HOME")])
def test_what_fontconfig_complains_of_is_a_line_of_the_log(cli, tmp_path, env, complaint, remedy):
    (tmp_path / "fonts").mkdir()
    shutil.copy("/usr/share/fonts/truetype/dejavu/DejaVuSans.ttf", tmp_path / "fonts")
    done = cli("check", "-c", config_with(tmp_path, {"text": "%T"}), env=env(tmp_path))
    assert done.returncode == 0
    lines = [line for line in done.stderr.splitlines() if complaint in line]
    assert len(lines) == 1, done.stderr
    assert " warn" in lines[0], lines[0]
    assert remedy in lines[0]
    assert not any(line.startswith("Fontconfig ") for line in done.stderr.splitlines())
