"""`framelane bench`, on a machine without a GPU (conftest hides one that is there)."""

import csv
import json
import os
import pty
import shutil
import subprocess
from xml.etree import ElementTree

import pytest

from harness.complaints import complaints
from harness.daemon import BINARY
from harness.interrupted import interrupted
from harness.waiting import TIME_FACTOR

pytestmark = pytest.mark.bench

SHORT = ("--seconds", "0.05", "--rounds", "2", "--size", "64x36", "--bytes", "10k")
COPYING = "CPU, copying as many bytes alone"
SVG = "{http://www.w3.org/2000/svg}"


def rows_of(suite):
    return {(row["name"], row["parameters"].get("formula")): row for row in suite["rows"]}


@pytest.mark.asan
def test_every_suite_says_what_it_measures_and_what_it_leaves_out(cli, tmp_path):
    paths = {kind: tmp_path / f"out.{kind}" for kind in ("json", "csv", "svg")}
    suites = ("convert", "reduce", "vecadd", "overlap", "kernels")
    done = cli("bench", *suites, "--device", "cpu", *SHORT, "--json", paths["json"],
               "--csv", paths["csv"], "--plot", paths["svg"])
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    found = {suite["suite"]: suite for suite in json.loads(paths["json"].read_text())["suites"]}
    assert list(found) == list(suites)

    convert = rows_of(found["convert"])
    assert set(convert) == {(COPYING, None), ("CPU, scalar", "classic"), ("CPU, scalar", "exact"),
                            ("CPU, SIMD", "classic"), ("CPU, SIMD", "exact")}
    for row in [*convert.values(), *found["reduce"]["rows"], *found["vecadd"]["rows"]]:
        assert row["right"] is True
        assert 0 < row["p10"] <= row["median"] <= row["p90"]
        assert len(row["samples"]) >= 2
    assert [figure["value"] for figure in found["convert"]["published"]] == [300, 34.6, 20.2, 19.3]
    # With ours beside them, as far as there is one.
    here = [figure["here"] for figure in found["convert"]["published"]]
    assert here == [convert["CPU, scalar", "classic"]["median"], None, None, None]
    assert found["overlap"]["rows"] == found["kernels"]["rows"] == []
    for suite in found.values():
        assert any("the CPU alone was asked for" in what for what in suite["left_out"])
        assert suite["problems"] == [] and suite["interrupted"] is False

    lines = list(csv.DictReader(paths["csv"].read_text().splitlines()))
    measured = [line for line in lines if line["source"] == "measured"]
    assert [(line["name"], line["parameters"]) for line in measured] == [
        (COPYING, ""), ("CPU, scalar", "formula=classic"), ("CPU, scalar", "formula=exact"),
        ("CPU, SIMD", "formula=classic"), ("CPU, SIMD", "formula=exact"),
        ("CPU, reading alone", ""), ("CPU, one after the other", ""),
        ("CPU, 64 sums side by side", ""), ("CPU, SIMD", ""),
        ("CPU, BGRA to NV12", "size=64x36;picture=noise"),
        ("CPU, BGRA to NV12 and luma", "size=64x36;picture=noise"),
        (COPYING, ""), ("CPU, one core", "")]
    assert len(lines) == len(measured) + 4 + 5 + 3  # published, of convert, reduce, overlap

    texts = [text.text for text in ElementTree.parse(paths["svg"]).getroot().iter(f"{SVG}text")]
    assert "CPU, SIMD, formula exact" in texts and "CPU, one core" in texts

    for name in suites:
        assert f"\n{name}: " in "\n" + done.stdout
    assert "left out: the GPU: " in done.stdout


@pytest.mark.asan
def test_the_stage_and_its_peers_are_right_and_their_further_figures_are_in_every_file(cli, tmp_path):
    paths = {kind: tmp_path / f"out.{kind}" for kind in ("json", "csv", "svg")}
    done = cli("bench", "stage", "peers", "--device", "cpu", *SHORT, "--json", paths["json"],
               "--csv", paths["csv"], "--plot", paths["svg"])
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    stage, peers = json.loads(paths["json"].read_text())["suites"]

    assert {row["name"] for row in stage["rows"]} == {"stage", "stage, luma counted"}
    assert {row["parameters"]["feeds"] for row in stage["rows"]} == {1, 2, 4, 8, 16, 32, 64}
    for row in stage["rows"]:
        assert row["right"] is True
        assert set(row["more"]) == {"p50", "p99", "CPU/1000"}
        assert 0 < row["more"]["p50"]["median"] <= row["more"]["p99"]["median"]
        assert row["more"]["CPU/1000"]["unit"] == "s"
    assert any(what.startswith("ceilings of copies, and slices") for what in stage["left_out"])
    assert any("lanes" in sentence for sentence in stage["verdict"])

    for row in peers["rows"]:
        if row["name"] == COPYING:
            assert row["right"] is True and "more" not in row
            continue
        ours = row["name"].startswith("framelane, ") or row["name"] == "reference"
        assert row["right"] is (True if ours else None)
        assert (row["more"]["off"]["median"] == 0) or not ours
    rgb = [row for row in peers["rows"] if row["parameters"]["formats"] == "bgra to nv12"]
    assert {"framelane, one core", "reference", "swscale"} <= {row["name"] for row in rgb}
    assert next(row for row in rgb if row["name"] == "swscale")["more"]["off"]["median"] > 0

    lines = list(csv.DictReader(paths["csv"].read_text().splitlines()))
    plain = len(stage["rows"]) - 1
    for name, count in (("stage", plain), ("stage: p99", plain), ("stage, luma counted", 1),
                        ("swscale: off", 18)):
        assert sum(line["name"] == name for line in lines) == count, name
    texts = [text.text for text in ElementTree.parse(paths["svg"]).getroot().iter(f"{SVG}text")]
    assert "64x36 bgra to nv12: feeds at once" in texts
    assert "CPU/1000 [s]" in done.stdout and "off [%]" in done.stdout


def test_a_gpu_that_is_asked_for_and_not_there_is_one_line_and_the_cpus_part_runs(cli):
    done = cli("bench", "convert", "--device", "cuda", *SHORT)
    assert done.returncode == 1
    assert len(done.stderr.splitlines()) == 1, done.stderr
    assert done.stderr.startswith("framelane-bench: --device: ")
    assert "CPU, SIMD" in done.stdout


def test_without_a_gpu_auto_does_with_the_cpu_and_says_why(cli):
    done = cli("bench", "convert", *SHORT)
    assert done.returncode == 0, done.stderr
    assert "left out: the GPU: " in done.stdout


def test_an_interrupt_shows_what_was_measured_so_far(tmp_path):
    out = tmp_path / "out.json"
    interrupted("bench", "convert", "vecadd", "--device", "cpu", "--size", "64x36",
                "--seconds", "60", "--rounds", "1000", "--json", str(out))
    suites = json.loads(out.read_text())["suites"]
    assert [suite["suite"] for suite in suites] == ["convert"]
    assert suites[0]["interrupted"] is True
    assert len(suites[0]["rows"]) == 1 + 4


@pytest.mark.parametrize("arguments, reason", [
    ((), "SUITE is required"),
    (("nothing",), "nothing not in"),
    (("convert", "--device", "gpu"), "gpu is not auto, cpu, cuda or cuda:N"),
    (("convert", "--size", "0x4"), "--size"),
    (("vecadd", "--bytes", "3"), "3 is not between 4k and 4G"),
    (("convert", "--rounds", "0"), "--rounds"),
    (("convert", "--seconds", "nan"), "nan is no number"),
    (("convert", "--json", ""), "--json: a file is needed"),
    (("convert", "--json", "x", "--csv", "x"), "only one of --json, --csv and --plot can be this file"),
])
def test_wrong_usage_is_one_line(cli, arguments, reason):
    done = cli("bench", *arguments)
    assert done.returncode == 2
    assert len(done.stderr.splitlines()) == 1, done.stderr
    assert reason in done.stderr and "framelane bench --help" in done.stderr


@pytest.mark.parametrize("rounds, interrupted", [(3, False), (2, True)])
def test_whoever_starts_it_may_say_when_each_round_is(rounds, interrupted):
    # As `kernels` starts it a second time, with fewer of CUDA's connections.
    with subprocess.Popen(
            ["/bin/sh", "-c", 'exec "$0" bench vecadd --in-turns --device cpu --seconds 0.01 '
             "--rounds 2 --bytes 4k --json /dev/fd/3 3>&1 >/dev/null", str(BINARY)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        try:
            for _ in range(rounds):  # the first is not measured
                process.stdin.write(b"\0")
                process.stdin.flush()
                assert process.stdout.read(1) == b"."
            text, _ = process.communicate(timeout=30 * TIME_FACTOR)
        finally:
            process.kill()
    suite = json.loads(text)["suites"][0]
    assert suite["interrupted"] is interrupted
    assert suite["rows"][0]["right"] is True
    assert process.returncode == 0


def test_who_is_told_its_rounds_says_nothing_on_the_terminal(tmp_path):
    out = tmp_path / "out.json"
    ours, terminal = pty.openpty()
    with subprocess.Popen(
            ["/bin/sh", "-c", 'exec "$0" bench vecadd reduce --in-turns --device cpu --seconds 0.01 '
             '--rounds 1 --bytes 4k --size 5000x5000 --json "$1" 3>/dev/null', str(BINARY), str(out)],
            stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=terminal) as process:
        os.close(terminal)
        try:
            process.communicate(b"\0" * 2, timeout=30 * TIME_FACTOR)
            said = b""
            with pytest.raises(OSError):  # when all has been read, and nobody is left who might write
                while True:
                    said += os.read(ours, 4096)
        finally:
            process.kill()
            os.close(ours)
    assert complaints(said.decode().replace("\r\n", "\n")) == ""
    assert process.returncode == 1
    vecadd, reduce = json.loads(out.read_text())["suites"]
    assert vecadd["rows"][0]["right"] is True
    assert "--size" in reduce["problems"][0]


def test_a_file_that_cannot_be_written_is_found_before_anything_is_measured(cli, tmp_path):
    path = tmp_path / "none" / "out.json"
    done = cli("bench", "convert", "--seconds", "3000", "--json", path)
    assert done.returncode == 1
    assert done.stderr == f"framelane-bench: {path} cannot be written: No such file or directory\n"
    assert done.stdout == ""


def test_help_lists_the_suites(cli):
    text = cli("bench", "--help").stdout
    for name in ("convert", "reduce", "vecadd", "overlap", "kernels", "stage", "peers", "--device", "--json",
                 "--plot"):
        assert name in text
    assert "bench" in cli("--help").stdout


def test_what_cannot_be_printed_is_a_failure(cli):
    with open("/dev/full", "w", encoding="ascii") as full:
        done = cli("bench", "--help", stdout=full)
    assert done.returncode == 1
    assert done.stderr == "framelane-bench: not everything could be written to the standard output\n"


def test_all_stands_for_every_suite(cli, tmp_path):
    out = tmp_path / "out.json"
    done = cli("bench", "all", "--device", "cpu", *SHORT, "--json", out)
    assert done.returncode == 0, done.stderr
    _, _, listed = cli("bench", "--help").stdout.partition("Suites:\n")
    suites = json.loads(out.read_text())["suites"]
    assert ["all", *(suite["suite"] for suite in suites)] == [
        line.split()[0] for line in listed.splitlines() if line]


def test_without_the_program_beside_it_framelane_says_what_is_missing(tmp_path):
    alone = tmp_path / "framelane"
    shutil.copy(BINARY, alone)
    done = subprocess.run([alone, "bench", "convert"], capture_output=True, text=True, check=False,
                          stdin=subprocess.DEVNULL, timeout=30 * TIME_FACTOR)
    assert done.returncode == 1
    assert f"{tmp_path}/framelane-bench cannot be started: No such file" in done.stderr
