"""Where frames are converted, on a machine without a GPU (conftest.py hides one)."""

import json
import os
import re
import signal
import subprocess
from pathlib import Path

import pytest

from harness.configs import looped, one_feed
from harness.daemon import BINARY
from harness.waiting import TIME_FACTOR, wait_until


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


HUNG_DRIVER = """
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
int cuInit(unsigned flags) {
  fclose(fopen(getenv("FRAMELANE_TEST_DRIVER"), "w"));
  for (;;) pause();
}
int cuDriverGetVersion(int* version) { return *version = 99999, 0; }
int cuGetProcAddress(void) { return cuInit(0); }
"""


@pytest.fixture
def hung_driver(tmp_path):
    """An environment in which the first call of the GPU's driver does not return, and what is there then."""
    source, asked = tmp_path / "driver.c", tmp_path / "asked"
    source.write_text(HUNG_DRIVER)
    subprocess.run(["cc", "-shared", "-fPIC", "-o", tmp_path / "libcuda.so.1", source], check=True)
    return {**os.environ, "LD_LIBRARY_PATH": str(tmp_path), "FRAMELANE_TEST_DRIVER": str(asked)}, asked


def test_what_uses_no_gpu_does_not_ask_its_driver(cli, clip, tmp_path, hung_driver):
    environment, asked = hung_driver
    config = tmp_path / "framelane.yaml"
    config.write_text(json.dumps({"admin": {"listen": f"unix:{tmp_path}/admin.sock"},
                                  **one_feed({"url": str(clip)})}))
    for arguments, status in ((["--help"], 0), (["schema"], 0), (["check", "-c", config], 0),
                              (["healthcheck", "-c", config], 1),
                              (["transcode", "--device", "cpu", clip, tmp_path / "out.mkv"], 0)):
        assert cli(*arguments, env=environment).returncode == status
    assert not asked.exists()


@pytest.mark.skipif(", cuda" not in subprocess.run([BINARY, "--version"], capture_output=True,
                                                   text=True, check=True).stdout,
                    reason="this build has no CUDA backend")
def test_a_stop_while_the_driver_hangs_is_quick(clip, tmp_path, hung_driver):
    environment, asked = hung_driver
    config = tmp_path / "framelane.yaml"
    config.write_text(json.dumps(one_feed({"url": str(clip)})))
    with subprocess.Popen([BINARY, "run", "-c", config], env=environment,
                          stderr=subprocess.DEVNULL) as process:
        try:
            wait_until(asked.exists, "the driver is asked")
            process.send_signal(signal.SIGTERM)
            assert process.wait(timeout=5 * TIME_FACTOR) == 0
        finally:
            process.kill()
