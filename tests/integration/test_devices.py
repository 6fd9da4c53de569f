"""Where frames are converted, on a machine without a GPU (conftest.py hides one)."""

import json
import re
from pathlib import Path

from harness.configs import looped, one_feed


def test_cuda_without_a_gpu_is_refused_with_the_reason(cli, clip, tmp_path):
    config = tmp_path / "framelane.yaml"
    config.write_text(json.dumps(
        {"admin": {"listen": f"unix:{tmp_path}/admin.sock"}, "device": "cuda:1",
         **one_feed({"url": str(clip)})}))
    done = cli("run", "-c", config)
    assert done.returncode == 1
    refusals = [line for line in done.stderr.splitlines() if "device: cuda:" in line]
    assert len(refusals) == 1, done.stderr
    assert any(reason in refusals[0] for reason in
               ("no CUDA backend", "no NVIDIA driver", "finds no GPU", "stub", "update the driver"))


def test_transcode_to_cuda_without_a_gpu_is_refused_in_one_line(cli, clip, tmp_path):
    out = tmp_path / "out.mkv"
    done = cli("transcode", "--device", "cuda", clip, out)
    assert done.returncode == 1
    assert len(done.stderr.strip().splitlines()) == 1, done.stderr
    assert not out.exists()


def test_auto_says_which_device_it_took_and_why(framelane, clip):
    daemon = framelane(one_feed(looped(clip))).wait_ready()
    chosen = [line for line in daemon.log().splitlines() if "converting on" in line]
    assert len(chosen) == 1, daemon.log()
    assert "converting on the CPU" in chosen[0] and "): " in chosen[0]
    daemon.wait_frames("cam", 1)
    assert daemon.feed("cam")["device"] == "cpu"
    daemon.stop()


def simd_level():
    flags = set(re.search(r"^flags\s*:(.*)$", Path("/proc/cpuinfo").read_text(), re.M)[1].split())
    for level, needed in (("AVX-512", {"avx512bw", "avx512vl"}), ("AVX2", {"avx2"}),
                          ("SSE4.1", {"sse4_1"}), ("SSSE3", {"ssse3"})):
        if needed <= flags:
            return level
    return "baseline"


def test_devices_lists_the_cpu_and_says_why_there_is_no_gpu(cli):
    done = cli("devices", "--json")
    assert done.returncode == 0, done.stderr
    devices = json.loads(done.stdout)
    assert [device["name"] for device in devices["devices"]] == ["cpu"]
    assert devices["no_gpu"]
    assert "h264" in devices["decoders"]
    assert "libx264" in devices["encoders"] and "h264_nvenc" not in devices["encoders"]
    assert devices["devices"][0]["simd"] == simd_level()
    assert not [name for name in devices["decoders"] if name.endswith("_cuvid")]
    text = cli("devices").stdout
    assert f" threads, {simd_level()}\n" in text
    assert f"cuda: {devices['no_gpu']}" in text


def test_version_says_which_backends_there_are(cli):
    text = cli("--version").stdout
    assert "\nbackends: cpu" in text
    assert ("CUDA none" in text) == (", cuda" not in text)
