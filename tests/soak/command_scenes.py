"""Commands with wrong arguments, wrong configurations and damaged files."""

import json
import re
import shutil
import signal
import subprocess
import time

from harness import media
from harness.daemon import BINARY, run
from soak.scene import scene

_FEED = "feeds: {cam: {input: {url: /v.mp4}, outputs: {out: {url: %s}}}}"
_INPUT = "feeds: {cam: {input: {url: %s}}}"
# Configurations that cannot be right, and words of what `check` must say of them.
_WRONG = [
    (_FEED % '"/tmp/a\\0b.mp4"', "feeds.cam.outputs.out.url"),
    (_FEED % '"/tmp/a\\nb.mp4"', "feeds.cam.outputs.out.url"),
    (_FEED % '"/tmp/a\\eb.mp4"', "feeds.cam.outputs.out.url"),
    (_INPUT % '"/tmp/a\\0b.mp4"', "feeds.cam.input.url"),
    (_INPUT % '"rtsp://h/\\r\\nx"', "feeds.cam.input.url"),
    (_INPUT % "'tcp://h:9', format: rawvideo, size: 4x4, pixel_format: bgra, rate: 25",
     "is no place of raw video"),
    (_INPUT % "'RTSP://h/'", "lower case"),
    (_INPUT % "'a', nonsense: 1", "nonsense"),
    (_INPUT % "'a', url: 'b'", "url"),
    (_INPUT % "'${NOT_SET_HERE}/${NOR_THIS}'", "NOR_THIS"),
    (_INPUT % "'${file:/does/not/exist}'", "/does/not/exist"),
    (_INPUT % "a, timeout: 0s", "timeout"),
    (_INPUT % "a, timeout: 99999999999999999999s", "timeout"),
    ("feeds: {'a\\0b': {input: {url: a}}}", "feeds"),
    ("feeds: {}", "feeds"), ("feeds: []", "feeds"), ("feeds", ""), ("", ""), ("\x00", ""),
    ("[" * 2000, ""), ("a: &a [*a]", ""), ("feeds: {cam: &x {input: {url: a}, encodes: *x}}", ""),
    ("log: {level: loud}\n" + _INPUT % "a", "log.level"),
    ("admin: {listen: '127.0.0.1:99999'}\n" + _INPUT % "a", "admin.listen"),
    (_FEED % "'/tmp/%Q.mp4'", "outputs.out.url"),
    (_FEED % "'/tmp/a.mp4', segment: 1s", "segment"),
    (_FEED % "'/tmp/a.mp4', options: {movflgs: x}", "movflgs"),
]
_ARGUMENTS = ["-c", "/dev/null", "--once", "-y", "--codec", "libx264", "copy", "--option", "=",
              "k=", "--gop", "-1s", "2s", "99999999999h", "--format", "mp4", "--pixel-format",
              "nv12", "--input-format", "rawvideo", "--input-size", "0x0", "4x4", "1e9x1",
              "--duration", "0s", "1ms", "", "\x1b[31m", "é", "../..", "-", "--", "--help",
              "--json", "--quiet", "a" * 5000, "/", "/dev/full", "null:", "nul:", "lavfi:",
              "lavfi:nosuch", "lavfi:testsrc2=duration=0.1",
              "--ring", "0", "1", "--lanes", "65", "%s", "${X}", "${file:x}"]
_DAMAGE = ['"', "{", "", "\t", "-", "é", "\x01", ":", "*", "9"]
_COMMANDS = ["check", "transcode", "devices", "healthcheck", "schema", "rnu", "transcoder", "run",
             "-", "--nonsense", "tune", "bench"]
_WORDS = re.compile(r"terminate called|std::|Assertion|Sanitizer|runtime error|bad_alloc")


def _check_end(done, statuses, what):
    said = done.stderr[:500]
    assert done.returncode in statuses, f"{what}: exit status {done.returncode}: {said}"
    assert not _WORDS.search(done.stderr), f"{what}: {said}"
    if done.returncode not in (0, 128 + signal.SIGINT):
        assert done.stderr.strip(), f"{what}: exit status {done.returncode} without a word"


@scene("commands")
def wrong_configurations(site, dice):
    path = site.scratch / "wrong.yaml"
    for text, words in dice.sample(_WRONG, 6):
        path.write_text(text)
        done = run("check", "-c", path)
        _check_end(done, [78], f"check of {text[:200]!r}")
        assert words in done.stderr, f"check of {text[:200]!r} says {done.stderr!r}, not {words!r}"
    yield ""


@scene("commands")
def damaged_configurations(site, dice):
    path = site.scratch / "damaged.yaml"
    good = json.dumps(site.config(), indent=1)
    for _ in range(6):
        text = list(good)
        for _ in range(dice.randint(1, 5)):
            at = dice.randrange(len(text))
            text[at : at + dice.randint(0, 3)] = dice.choice(_DAMAGE)
        path.write_text("".join(text))
        _check_end(run("check", "-c", path), [0, 78], f"check of {path.read_text()[:200]!r}")
    yield ""


@scene("commands")
def wrong_arguments(site, dice):
    for _ in range(6):
        command = dice.choice(_COMMANDS)
        arguments = [command] + [dice.choice(_ARGUMENTS) for _ in range(dice.randint(0, 5))]
        if command in ("tune", "bench"):
            arguments.append("--no-such-flag")  # a right one would measure for minutes
        try:
            done = run(*arguments, timeout=20, cwd=site.scratch)
        except subprocess.TimeoutExpired:
            # Only a test source has no end.
            assert "lavfi:" in str(arguments), f"{arguments} does not end"
            continue
        _check_end(done, [0, 1, 2, 78], str(arguments))
    yield ""


def _some_input(site, dice):
    """A file of one of many kinds, whole."""
    suffix, options = dice.choice([
        ("mp4", ["-c", "copy"]), ("mkv", ["-c", "copy"]), ("ts", ["-c", "copy"]),
        ("flv", ["-c:v", "flv1"]), ("avi", ["-c:v", "mjpeg"]), ("mov", ["-c:v", "prores"]),
        ("webm", ["-c:v", "libvpx", "-deadline", "realtime"]), ("nut", ["-c:v", "ffv1"]),
        ("mpg", ["-c:v", "mpeg2video", "-r", "25"]), ("h264", ["-c", "copy"]),
        ("mp4", ["-c:v", "libx265", "-preset", "ultrafast", "-x265-params", "log-level=error"])])
    path = site.scratch / f"input.{suffix}"
    size = [] if "copy" in options else ["-vf", "scale=160:120"]
    media.ffmpeg("-i", site.clips.street, "-frames:v", 25, *size, *options, path)
    return path


def _damage(path, dice):
    """Flips, zeroes, cuts out or doubles some bytes of a file."""
    data = bytearray(path.read_bytes())
    way = dice.choice(["flip", "zero", "cut", "double", "end", "noise"])
    for _ in range(dice.randint(1, 40)):
        at, size = dice.randrange(len(data)), dice.randint(1, 400)
        if way == "flip":
            data[at] ^= 1 << dice.randrange(8)
        elif way == "zero":
            data[at : at + size] = bytes(len(data[at : at + size]))
        elif way == "noise":
            data[at : at + size] = dice.randbytes(len(data[at : at + size]))
        elif way == "double":
            data[at:at] = data[at : at + size]
        elif len(data) > 2000:
            del data[at : at + size if way == "cut" else None]
    path.write_bytes(data)
    return way


@scene("commands", weight=3)
def damaged_inputs(site, dice):
    path = _some_input(site, dice)
    way = _damage(path, dice)
    suffix = dice.choice(["mkv", "mp4", "ts", "mov", "flv", "nut"])
    codec = dice.choice([["--codec", "mpeg4"], ["--codec", "copy"],
                         ["--codec", "libx264", "--option", "preset=ultrafast"],
                         ["--codec", "libx264", "--pixel-format", "yuv444p"]])
    sound = dice.choice(["none", "copy"])
    out = site.scratch / f"out.{suffix}"
    out.unlink(missing_ok=True)
    what = f"transcode {' '.join(codec)} of {path.name} ({way}) to {suffix}"
    done = run("transcode", "--quiet", "--audio", sound, *codec, path, out, timeout=60)
    _check_end(done, [0, 1], what)
    lines = done.stderr.count("\n")
    assert lines <= 60, f"{what}: {lines} lines of messages"
    assert not list(site.scratch.glob("out.*.part")), f"{what} left a .part"
    if done.returncode == 0:
        assert media.probe(out)["streams"], f"{what} wrote nothing that can be read"
    yield what


@scene("commands", "web")
def finished_playlists(site, dice):
    """A playlist that has ended is a file, over HTTP too: no frame of it is lost."""
    frames = dice.randint(20, 120)
    folder = site.live / "finished"
    folder.mkdir(exist_ok=True)
    kind = dice.choice(["mpegts", "fmp4"])
    media.ffmpeg("-i", site.clips.camera, "-frames:v", frames, "-an", "-c", "copy", "-hls_time",
                 dice.choice([1, 2, 4]), "-hls_list_size", 0, "-hls_segment_type", kind,
                 folder / "index.m3u8")
    out = site.scratch / "finished.mkv"
    source = dice.choice([site.web.url("finished/index.m3u8"), folder / "index.m3u8"])
    done = run("transcode", "-y", "--quiet", "--ring", dice.choice([1, 2, 8]), source, out,
               "--codec", "mpeg4")
    _check_end(done, [0], f"transcode {source}")
    got = media.frame_count(out)
    assert got == frames, f"{frames} frames in {source}, {got} frames out"
    shutil.rmtree(folder)
    yield f"{frames} frames as {kind}"


@scene("commands")
def transcode_is_interrupted(site, dice):
    out = site.scratch / "interrupted.mkv"
    out.unlink(missing_ok=True)
    with subprocess.Popen(
            [BINARY, "transcode", "--quiet", "--codec", "mpeg4", "lavfi:testsrc2=rate=10", out],
            stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        time.sleep(dice.uniform(0, 1.5))
        process.send_signal(signal.SIGINT)
        status = process.wait(timeout=15)
    assert status in (128 + signal.SIGINT, -signal.SIGINT), f"an interrupted transcode: {status}"
    if out.exists():
        assert media.decodes_cleanly(out), "what an interrupted transcode wrote cannot be played"
    assert not list(site.scratch.glob("interrupted*.part")), "an interrupted transcode left a .part"
    yield ""


@scene("commands")
def healthchecks(site, dice):
    done = run("healthcheck", "-c", site.daemon.config_path)
    _check_end(done, [0], "healthcheck")
    yield ""
