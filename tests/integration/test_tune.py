"""`framelane tune`, on a machine without a GPU (conftest hides one that is there)."""

import json
import shutil
import subprocess

import pytest
import yaml

from harness.daemon import BINARY, ROOT
from harness.interrupted import interrupted
from harness.waiting import TIME_FACTOR

SHORT = ("--seconds", "0", "--rounds", "1")
SMALL = ("--size", "64x36")
EXAMPLE = ROOT / "config" / "framelane.example.yaml"
SETTINGS = ("lanes", "ring", "slices")


@pytest.fixture
def example(tmp_path):
    path = tmp_path / "framelane.yaml"
    # The raw feed is as small as the streams are said to be.
    path.write_text(EXAMPLE.read_text().replace("size: 1920x1080", "size: 64x36"))
    return path


def without_settings(text):
    document = yaml.safe_load(text)
    document.pop("device", None)
    for part in [document["defaults"], *document["feeds"].values()]:
        for key in SETTINGS:
            part.pop(key, None)
    return document


@pytest.mark.sanitizers
def test_what_is_recommended_is_written_and_nothing_else(cli, example, tmp_path):
    before = example.read_text()
    example.chmod(0o640)
    out = tmp_path / "out.json"
    done = cli("tune", "-c", example, "--write", *SMALL, *SHORT, "--json", out)
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    assert f"{example}: written; " in done.stdout
    assert cli("check", "--no-env", "-c", example).returncode == 0
    assert example.stat().st_mode & 0o777 == 0o640
    assert sorted(tmp_path.iterdir()) == sorted([out, example])

    found = json.loads(out.read_text())
    assert found["device"] == "cpu"
    assert [kind["feeds"] for kind in found["kinds"]] == [["gate", "gate-sub", "test"], ["sdi1"]]
    after = example.read_text()
    written = yaml.safe_load(after)
    assert written["device"] == "cpu"
    for kind in found["kinds"]:
        assert kind["ceiling_feeds"] > 0
        for name in kind["feeds"]:
            feed = {**written["defaults"], **written["feeds"][name]}
            assert {key: feed[key] for key in SETTINGS} == {key: kind[key] for key in SETTINGS}
    assert without_settings(after) == without_settings(before)
    changed = [line for line in after.splitlines() if line not in before.splitlines()]
    assert all(line.strip().split(":")[0] in ("device", *SETTINGS) for line in changed)
    comments = [line for line in before.splitlines() if line.strip().startswith("#")]
    assert [line for line in after.splitlines() if line.strip().startswith("#")] == comments

    # What is printed as the keys to write is YAML, and says the same.
    printed = yaml.safe_load(done.stdout[done.stdout.index("\ndevice: "):done.stdout.rindex(str(example))])
    assert printed["device"] == "cpu"
    assert {key: written["defaults"][key] for key in SETTINGS} == printed["defaults"]


@pytest.mark.sanitizers
def test_a_size_and_a_rate_need_no_file(cli):
    done = cli("tune", "--size", "64x36", "--rate", "50", "--feeds", "2", "--format", "yuyv422", *SHORT)
    assert done.returncode == 0, done.stderr
    assert "2 feeds: 64x36 yuyv422 to nv12, full to limited, 50 frames/s" in done.stdout
    for key in ("device", "lanes", "ring", "slices", "ceiling"):
        assert f"\n  {key} " in done.stdout
    assert "Decoding and encoding are not in" in done.stdout
    assert "\ndevice: cpu\ndefaults:\n  lanes: " in done.stdout


def test_the_check_measures_every_setting(cli):
    done = cli("tune", *SMALL, *SHORT, "--check")
    assert "\ncheck: 64x36 bgra to nv12: of " in done.stdout
    slower = "more than 1.02" in done.stderr
    assert done.returncode == (1 if slower else 0), done.stderr


def test_a_configuration_that_converts_nothing_is_left_alone(cli, tmp_path):
    path = tmp_path / "f.yaml"
    path.write_text("feeds: {a: {input: {url: 'rtsp://h/s'}, encodes: {m: {video: copy}}}}\n")
    done = cli("tune", "-c", path, "--write")
    assert done.returncode == 0, done.stderr
    assert done.stdout == ("left out: a: converts nothing, as far as the configuration tells\n"
                           "no feed converts anything: there is nothing to tune\n")
    assert "device" not in path.read_text()


def test_a_wrong_configuration_is_shown_as_check_shows_it(cli, tmp_path):
    path = tmp_path / "f.yaml"
    path.write_text("feeds: {a: {inputs: {}}}\n")
    done = cli("tune", "-c", path, "--write")
    assert done.returncode == 78
    assert done.stderr == cli("check", "-c", path).stderr != ""
    missing = cli("tune", "-c", tmp_path / "none.yaml")
    assert missing.returncode == 78
    assert "none.yaml:1:1: cannot be read: No such file" in missing.stderr


def test_a_configuration_that_has_gone_meanwhile_is_said_so(cli, tmp_path):
    done = cli("tune-write", "-c", tmp_path / "none.yaml")  # what tune --write becomes
    assert done.returncode == 1
    assert done.stderr == (f"framelane: {tmp_path}/none.yaml cannot be read: No such file or directory; "
                           "nothing was written\n")


def test_what_cannot_be_edited_is_left_as_it_is(cli, tmp_path):
    path = tmp_path / "f.yaml"
    text = ("profiles: {p: &d {on_full: drop}}\n"
            "defaults: *d\n"
            "feeds: {a: {input: {url: x, format: rawvideo, pixel_format: bgra, size: 64x36, rate: 30}}}\n")
    path.write_text(text)
    done = cli("tune", "-c", path, "--write", *SHORT)
    assert done.returncode == 1
    assert done.stderr.startswith(f"framelane: {path}: defaults.lanes cannot be set: ")
    assert len(done.stderr.splitlines()) == 1
    assert path.read_text() == text
    assert "\ndevice: cpu\n" in done.stdout  # it is recommended all the same


def test_a_gpu_that_is_asked_for_and_not_there_is_one_line(cli):
    done = cli("tune", *SMALL, "--device", "cuda")
    assert done.returncode == 1
    assert done.stderr.startswith("framelane-bench: --device: ")
    assert len(done.stderr.splitlines()) == 1
    assert done.stdout == ""


def feed_on(device, path):
    path.write_text(f"device: {device}\n"
                    "feeds: {a: {input: {url: x, format: rawvideo, pixel_format: bgra, size: 64x36, rate: 30}}}\n")
    return path.read_text()


def test_a_gpu_that_is_set_and_not_there_is_not_replaced(cli, tmp_path):
    path = tmp_path / "f.yaml"
    text = feed_on("cuda:1", path)
    done = cli("tune", "-c", path, "--write", *SHORT)
    assert done.returncode == 1
    assert done.stderr.startswith(f"framelane-bench: tune: {path}: device is cuda:1: ")
    assert len(done.stderr.splitlines()) == 1
    assert done.stdout == ""
    assert path.read_text() == text
    asked = cli("tune", "-c", path, "--write", "--device", "auto", *SHORT)
    assert asked.returncode == 0, asked.stderr
    assert yaml.safe_load(path.read_text())["device"] == "cpu"


def test_figures_do_not_replace_the_configuration(cli, tmp_path):
    path = tmp_path / "f.yaml"
    text = feed_on("cpu", path)
    link = tmp_path / "link.json"
    link.symlink_to(path)
    for json_file in (path, link):
        done = cli("tune", "-c", path, "--json", json_file, *SHORT)
        assert done.returncode == 2
        assert "is the configuration" in done.stderr and len(done.stderr.splitlines()) == 1
        assert path.read_text() == text


def test_old_figures_go_only_when_there_are_new_ones(cli, tmp_path):
    old = tmp_path / "old.json"
    text = "old " * 100_000
    old.write_text(text)
    assert cli("tune", *SMALL, "--device", "cuda", "--json", old).returncode == 1
    assert cli("tune", "-c", tmp_path / "none.yaml", "--json", old).returncode == 78
    assert old.read_text() == text
    done = cli("tune", *SMALL, *SHORT, "--json", old)
    assert done.returncode == 0, done.stderr
    assert json.loads(old.read_text())["device"] == "cpu"


def test_an_interrupt_recommends_nothing_and_writes_nothing(example):
    before = example.read_text()
    text = interrupted("tune", "-c", str(example), "--write", *SMALL, "--seconds", "600",
                       "--rounds", "1000")
    assert "defaults:" not in text
    assert example.read_text() == before


@pytest.mark.parametrize("arguments, reason", [
    (("--size", "64x36", "--write"), "a file to write to is needed"),
    (("-c", "x.yaml", "--feeds", "2"), "the configuration says them"),
    (("--size", "0x4"), "--size"),
    (("--device", "gpu"), "gpu is not auto, cpu, cuda or cuda:N"),
    (("--format", "nothing"), "nothing not in"),
    (("more",), "more"),
])
def test_wrong_usage_is_one_line(cli, arguments, reason):
    done = cli("tune", *arguments)
    assert done.returncode == 2
    assert len(done.stderr.splitlines()) == 1, done.stderr
    assert reason in done.stderr and "framelane tune --help" in done.stderr


def test_help_says_what_it_does(cli):
    text = cli("tune", "--help").stdout
    for name in ("--config", "--size", "--rate", "--write", "--check", "--device"):
        assert name in text
    commands = cli("--help").stdout
    assert "tune" in commands
    assert "tune-feeds" not in commands and "tune-write" not in commands


@pytest.mark.parametrize("script, status, said", [
    ("echo why >&2; exit 78", 78, "why"),
    ("echo why >&2; exit 1", 1, "why"),
    ("exit 3", 1, "tune-feeds ended with status 3 and without a word"),
    ("kill -9 $$", 1, "tune-feeds ended with status 137 and without a word"),
    ("exit 0", 1, "tune-feeds ended with status 0 and without a word"),
    ("echo '{' >&3; exit 9", 1, "tune-feeds ended with status 9 and without a word"),
])
def test_how_the_configuration_was_read_decides_the_status(example, tmp_path, script, status, said):
    folder = tmp_path / "other"
    folder.mkdir()
    shutil.copy(BINARY.parent / "framelane-bench", folder)
    (folder / "framelane").write_text(f"#!/bin/sh\n{script}\n")
    (folder / "framelane").chmod(0o755)
    done = subprocess.run([folder / "framelane-bench", "tune", "-c", example], capture_output=True,
                          text=True, check=False, stdin=subprocess.DEVNULL, timeout=30 * TIME_FACTOR)
    assert done.returncode == status
    assert said in done.stderr and len(done.stderr.splitlines()) == 1


def test_more_feeds_than_an_argument_holds_are_written(cli, tmp_path):
    path = tmp_path / "f.yaml"
    names = [f"{'f' * 50}-{number}" for number in range(2000)]
    path.write_text(
        "defaults:\n"
        "  input: {url: x, format: rawvideo, pixel_format: bgra, size: 16x16, rate: 30}\n"
        "  encodes: {m: {convert: {format: nv12}, video: {codec: rawvideo}}}\n"
        "feeds:\n" + "".join(f"  {name}: {{}}\n" for name in names))
    done = cli("tune", "-c", path, "--write", *SHORT)
    assert done.returncode == 0, done.stderr
    assert f"{path}: written; " in done.stdout
    assert yaml.safe_load(path.read_text())["device"] == "cpu"


def test_without_framelane_beside_it_configurations_cannot_be_read(example, tmp_path):
    alone = tmp_path / "alone"
    alone.mkdir()
    shutil.copy(BINARY.parent / "framelane-bench", alone)
    done = subprocess.run([alone / "framelane-bench", "tune", "-c", example], capture_output=True,
                          text=True, check=False, stdin=subprocess.DEVNULL, timeout=30 * TIME_FACTOR)
    assert done.returncode == 1
    assert f"{alone}/framelane cannot be started: No such file" in done.stderr
