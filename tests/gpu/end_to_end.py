"""Tests the program end to end on a real GPU: the files that it writes are those that it writes on the
CPU, every frame is accounted for, and each feed is decoded and converted where it should be. Needs no
pytest.

    FRAMELANE_BINARY=$PWD/build/gpu/daemon/framelane python3 tests/gpu/end_to_end.py CLIPS

CLIPS: the folder with the clips that scripts/gpu-check makes from the shipped clip."""

import filecmp
import json
import pathlib
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests" / "integration"))

from harness.configs import encoder, raw_input, x264  # noqa: E402
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
    for source, options, decoder in ((clip, ["--range", "full"], "h264_nvdec"), (raw, raw_options, "rawvideo")):
        made = {}
        for device in ("cpu", "cuda"):
            made[device] = folder / f"{device}.nut"
            summary = transcode("--device", device, *lossless, *options, source, made[device])
        assert summary["decoder"] == decoder, summary
        assert summary["frames_in"] == summary["frames_out"] > 0 == summary["frames_dropped"], summary
        assert filecmp.cmp(made["cpu"], made["cuda"], shallow=False), f"{source}: other bytes than on the CPU"
        print(f"transcode {source.name}: {decoder}, {summary['frames_in']} frames in, "
              f"{summary['frames_out']} out, the CPU's bytes")


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
        raw = folder / "street_1080p.bgra"
        subprocess.run(["ffmpeg", "-nostdin", "-v", "error", "-i", clips / "street_1080p_x264.mp4", "-frames:v", "120",
                        "-f", "rawvideo", "-pix_fmt", "bgra", raw], check=True)
        transcodes_as_on_the_cpu(clips / "street_1080p_x264.mp4", raw, folder)
        runs_feeds(clips, raw, folder)


if __name__ == "__main__":
    main()
