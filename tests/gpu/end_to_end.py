"""Tests the program end to end on a real GPU: the files that it writes are those that it writes on the
CPU, every frame is accounted for, and each feed is decoded and converted where it should be. Needs no
pytest.

    FRAMELANE_BINARY=$PWD/build/gpu/daemon/framelane python3 tests/gpu/end_to_end.py CLIPS

CLIPS: the folder with the clips that scripts/gpu-check makes from the shipped clip, and a font."""

import filecmp
import json
import os
import pathlib
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests" / "integration"))

from harness.configs import encoder, raw_input, x264  # noqa: E402
from harness.media import ffmpeg  # noqa: E402
from harness.daemon import Daemon, run  # noqa: E402

SIZE = "1920x1080"


def transcode(*arguments):
    done = run("transcode", "-y", "--json", *arguments)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def transcodes_as_on_the_cpu(clip, raw, folder):
    """Transcodes a clip, which NVDEC decodes, and raw pixels, once on the CPU and once on the GPU. Both
    must give the same bytes. The encoder has one thread, so that equal pixels become equal bytes."""
    lossless = ["--codec", "libx264", "--option", "preset=ultrafast", "--option", "qp=0", "--option", "threads=1"]
    raw_options = ["--input-format", "rawvideo", "--input-pixel-format", "bgra", "--input-size", SIZE,
                   "--input-rate", "25"]
    part = ["--crop", "1500x840+200+100", "--size", "1280x720", "--overlay-text", "gate 1"]
    for source, options, decoder in ((clip, ["--range", "full"], "h264_nvdec"), (clip, part, "h264_nvdec"),
                                     (raw, raw_options, "rawvideo"), (raw, raw_options + part, "rawvideo")):
        made = {}
        for device in ("cpu", "cuda"):
            made[device] = folder / f"{device}.nut"
            summary = transcode("--device", device, *lossless, *options, source, made[device])
        assert summary["decoder"] == decoder, summary
        assert summary["frames_in"] == summary["frames_out"] > 0 == summary["frames_dropped"], summary
        assert filecmp.cmp(made["cpu"], made["cuda"], shallow=False), f"{source}: other bytes than on the CPU"
        print(f"transcode {source.name}{', a part of it' if part[0] in options else ''}: {decoder}, "
              f"{summary['frames_in']} frames in, "
              f"{summary['frames_out']} out, the CPU's bytes")


def makes_pictures_as_on_the_cpu(clip, raw, folder):
    """Runs each feed once on the CPU and once on the GPU, with masks, and with encodes that differ in what
    they make of a frame. Both must give the same bytes."""
    logo = folder / "logo.png"
    ffmpeg("-f", "lavfi", "-i", "testsrc2=size=160x90,format=rgba", "-frames:v", "1", logo)
    lossless = {"preset": "ultrafast", "qp": 0, "threads": 1}
    drawn = {"overlay": [{"text": "${feed} 1", "at": "top-left", "box": "#00000080"},
                         {"image": str(logo), "at": "bottom-right", "width": "10%", "opacity": 0.8}]}
    encodes = {name: {**encoder("libx264", convert=convert, **lossless), **more} for name, convert, more in (
        ("p1080", {}, drawn),
        ("p720", {"size": "1280x720"}, drawn),
        ("p480", {"size": "854x480", "filter": "spline36", "rate": 10}, drawn),
        ("part", {"crop": "960x540+480+270", "size": "640x-2", "filter": "area"}, {}),
        ("bars", {"size": "800x800", "fit": "contain", "background": "#204060", "filter": "bilinear"}, drawn),
        ("turned", {"rotate": 90, "flip": "horizontal", "size": "50%", "matrix": "bt709"}, {}),
        ("large", {"crop": "500x282+6+2", "size": "1280x720", "fit": "cover"}, {}))}
    mask = [{"polygon": [[0.1, 0.2], [0.4, 0.25], [0.3, 0.7]], "style": "pixelate"},
            {"polygon": [[0.6, 0.5], [0.9, 0.5], [0.9, 0.95], [0.6, 0.9]], "color": "#ff8000"}]
    inputs = {"nvdec": {"url": str(clip)}, "raw": raw_input(raw, "bgra", SIZE)}

    for device in ("cpu", "cuda"):
        here = folder / device
        here.mkdir()
        daemon = Daemon(here, {"device": device, "feeds": {
            source: {"input": input_, "mask": mask, "encodes": encodes, "outputs": {
                name: {"from": name, "url": f"{source}-{name}.nut"} for name in encodes}}
            for source, input_ in inputs.items()}})
        try:
            daemon.wait_ready(60)
            for source in inputs:
                daemon.wait_state(source, "ended", 240)
                where = daemon.feed(source)
                assert where["device"].startswith(device), where
            daemon.stop()
        finally:
            daemon.kill()
    for source in inputs:
        for name in encodes:
            # The files differ in the time at which they were made, so their packets are compared.
            on_cpu, on_gpu = (ffmpeg("-i", folder / device / f"{source}-{name}.nut", "-c", "copy", "-f", "framehash",
                                     "-").splitlines() for device in ("cpu", "cuda"))
            frames = sum(not line.startswith(b"#") for line in on_cpu)
            assert frames > 0, f"{source}, {name}: no frames"
            assert on_cpu == on_gpu, f"{source}, {name}: other bytes than on the CPU"
            print(f"run {source}, encode {name}: {frames} frames, the CPU's bytes")


def runs_feeds(clips, raw, folder):
    """Runs all feeds at once, as fast as possible, until their files end."""
    full = {"range": "full"}
    # An H100 has no encoder: there the list falls through to libx264, and says so.
    hardware_first = {"video": {"codec": ["h264_nvenc", {"name": "libx264",
                                                        "options": {"preset": "ultrafast"}}]}}
    feeds = {
        "nvdec": ({"url": str(clips / "street_1080p_x264.mp4"), "decoder": "nvdec"},
                  encoder("libx264", convert=full, preset="ultrafast"), "h264_nvdec"),
        "auto": ({"url": str(clips / "street_1080p_x265.mp4")}, x264(), "hevc_nvdec"),
        "raw": (raw_input(raw, "bgra", SIZE), hardware_first, "rawvideo"),
    }
    daemon = Daemon(folder, {"device": "cuda", "feeds": {
        name: {"input": source, "encodes": {"main": encode},
               "outputs": {"file": {"url": str(folder / f"{name}.mp4")}}}
        for name, (source, encode, _) in feeds.items()}})
    try:
        daemon.wait_ready(60)
        for name in feeds:
            metrics = daemon.wait_state(name, "ended", 120)
        for name, (_, _, decoder) in feeds.items():
            where = daemon.feed(name)
            assert where["device"] == "cuda:0" and where["decoder"] == decoder, where
            counted = {what: int(metrics.sum(f"framelane_frames_{what}", feed=name))
                       for what in ("in_total", "out_total", "dropped_total", "in_flight")}
            assert counted["in_total"] == counted["out_total"] > 0, f"{name}: {counted}"
            busy = {op: metrics.sum("framelane_lane_busy_seconds_total", feed=name, op=op)
                    for op in ("h2d", "kernel", "d2h")}
            assert busy["d2h"] > 0 and (busy["h2d"] > 0) == (name == "raw"), f"{name}: {busy}"
            codec = metrics.series("framelane_encode_info", feed=name)[0][0]["codec"]
            print(f"run {name}: {decoder}, {codec}; {counted['in_total']} frames in, {counted['out_total']} out, "
                  f"{counted['dropped_total']} dropped, {counted['in_flight']} in flight; "
                  + ", ".join(f"{op} {seconds * 1e3:.1f} ms" for op, seconds in busy.items()))
        daemon.stop()
        print("".join(line for line in daemon.log().splitlines(keepends=True) if "nvenc" in line), end="")
    finally:
        daemon.kill()


def main():
    clips = pathlib.Path(sys.argv[1]).resolve()
    devices = run("devices")
    print(devices.stdout, end="")
    assert devices.returncode == 0 and "cuda:0" in devices.stdout, devices.stderr
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        fonts = folder / "fonts.conf"
        fonts.write_text(f"<fontconfig><dir>{clips}</dir><cachedir>{folder}</cachedir></fontconfig>")
        os.environ["FONTCONFIG_FILE"] = str(fonts)
        raw = folder / "street_1080p.bgra"
        clip = clips / "street_1080p_x264.mp4"
        ffmpeg("-i", clip, "-frames:v", "120", "-f", "rawvideo", "-pix_fmt", "bgra", raw)
        part = folder / "part.mp4"
        ffmpeg("-i", clip, "-frames:v", "120", "-c", "copy", part)
        transcodes_as_on_the_cpu(clip, raw, folder)
        makes_pictures_as_on_the_cpu(part, raw, folder)
        runs_feeds(clips, raw, folder)


if __name__ == "__main__":
    main()
