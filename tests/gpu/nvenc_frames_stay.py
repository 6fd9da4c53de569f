"""Tests on a real GPU that frames on their way to NVENC stay there, with and without NVDEC: nothing is
copied down, and NVENC is handed, byte for byte, what the CPU makes. NVENC itself is the stand-in of
tests/nvenc, so that a GPU without an encoder will do; its copies are on its own stream and not framelane's.
Needs no pytest.

    FRAMELANE_BINARY=$PWD/build/gpu/daemon/framelane python3 tests/gpu/nvenc_frames_stay.py STAND_IN

STAND_IN: the folder of the stand-in libnvidia-encode.so.1."""

import filecmp
import os
import pathlib
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests" / "integration"))

from harness.configs import raw_input  # noqa: E402
from harness.daemon import Daemon, run  # noqa: E402

SIZE = (1920, 1080)
RAW_FRAMES = 40
CLIP = ROOT / "tests" / "data" / "street_h264.mp4"
CONVERT = {"format": "nv12", "matrix": "bt709", "range": "full"}


def pixels(source, target, *options):
    done = run("transcode", "-y", "--device", "cpu", "--codec", "rawvideo", "--pixel-format", "nv12",
               "--format", "rawvideo", *options, source, target, timeout=240)
    assert done.returncode == 0, done.stderr
    return target


def main():
    stand_in = pathlib.Path(sys.argv[1]).resolve()
    assert (stand_in / "libnvidia-encode.so.1").exists(), f"no libnvidia-encode.so.1 in {stand_in}"
    libraries = ":".join(filter(None, [str(stand_in), os.environ.get("LD_LIBRARY_PATH")]))
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        raw = folder / "noise.bgra"
        raw.write_bytes(os.urandom(SIZE[0] * SIZE[1] * 4 * RAW_FRAMES))
        raw_size = f"{SIZE[0]}x{SIZE[1]}"
        sources = {"nvdec": {"url": str(CLIP), "decoder": "nvdec"}, "raw": raw_input(raw, "bgra", raw_size)}
        daemon = Daemon(folder, {"device": "cuda", "feeds": {
            name: {"input": source, "encodes": {"main": {"convert": CONVERT, "video": {"codec": "h264_nvenc"}}},
                   "outputs": {"file": {"url": str(folder / f"{name}.nut")}}}
            for name, source in sources.items()}}, env={**os.environ, "LD_LIBRARY_PATH": libraries})
        try:
            daemon.wait_ready(60)
            for name in sources:
                metrics = daemon.wait_state(name, "ended", 240)
            for name in sources:
                frames = int(metrics.sum("framelane_frames_out_total", feed=name))
                assert frames == int(metrics.sum("framelane_frames_in_total", feed=name)) > 0, name
                codec = metrics.series("framelane_encode_info", feed=name)[0][0]["codec"]
                assert codec == "h264_nvenc", f"{name}: {codec}\n{daemon.log()}"
                down = metrics.sum("framelane_lane_busy_seconds_total", feed=name, op="d2h")
                assert down == 0, f"{name}: {down} s of copies down"
                print(f"{name}: {frames} frames to NVENC, none copied down")
            assert metrics.sum("framelane_engine_busy_seconds_total", engine="d2h") == 0
            assert metrics.sum("framelane_device_encoder_sessions") == 0, "encoders left open"
            daemon.stop()
        finally:
            daemon.kill()
        matrix = ["--range", "full", "--matrix", "bt709"]
        options = {"nvdec": matrix,
                   "raw": [*matrix, "--input-format", "rawvideo", "--input-pixel-format", "bgra", "--input-size",
                           raw_size, "--input-rate", "25"]}
        for name, source in sources.items():
            expected = pixels(source["url"], folder / "expected.yuv", *options[name])
            got = pixels(folder / f"{name}.nut", folder / "got.yuv")  # of no known colour: nothing is converted
            assert expected.stat().st_size > 0
            assert filecmp.cmp(expected, got, shallow=False), f"{name}: NVENC got other pixels than the CPU makes"
            print(f"{name}: NVENC got the CPU's bytes ({got.stat().st_size} bytes)")


if __name__ == "__main__":
    main()
