"""`framelane tune`, on a machine without a GPU (conftest hides one that is there)."""

import json
import shutil
import subprocess

import pytest
import yaml

from harness.daemon import BINARY, ROOT
from harness.interrupted import interrupted
from harness.waiting import TIME_FACTOR

pytestmark = pytest.mark.bench

SHORT = ("--seconds", "0", "--rounds", "1")
SMALL = ("--size", "64x36")
EXAMPLE = ROOT / "config" / "framelane.example.yaml"
SETTINGS = ("lanes", "ring", "slices")


@pytest.fixture
def example(tmp_path):
    path = tmp_path / "framelane.yaml"
    # The raw feed is as small as the streams are said to be, and so are the renditions.
    text = EXAMPLE.read_text()
    for size, small in (("1920x1080", "64x36"), ("1280x720", "32x18"), ("854x480", "24x14")):
        text = text.replace(f"size: {size}", f"size: {small}")
    path.write_text(text)
    return path


def printed_settings(text):
    """What `tune` prints to be set, which is the end of its output."""
    return yaml.safe_load(text[text.index("\ndevice: "):])


def with_lines(text, settings):
    """The configuration with these settings, as a user would set them."""
    document = yaml.safe_load(text)
    document["device"] = settings["device"]
    document.setdefault("defaults", {}).update(settings["defaults"])
    for name, keys in settings.get("feeds", {}).items():
        document["feeds"][name].update(keys)
    return yaml.safe_dump(document)


@pytest.mark.asan
def test_the_printed_lines_give_each_feed_what_was_found(cli, example, tmp_path):
    # A feed and a profile that set something by themselves.
    document = yaml.safe_load(example.read_text())
    document["profiles"]["view-only"]["lanes"] = 7
    document["feeds"]["test"]["lanes"] = 5
    example.write_text(yaml.safe_dump(document))
    before = example.read_text()
    out = tmp_path / "out.json"
    done = cli("tune", "-c", example, *SMALL, *SHORT, "--json", out)
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    assert "\nWhat to set in the configuration:\n\ndevice: cpu\n" in done.stdout
    assert example.read_text() == before

    found = json.loads(out.read_text())
    assert found["device"] == "cpu"
    assert sorted(name for kind in found["kinds"] for name in kind["feeds"]) == sorted(document["feeds"])
    assert "left out" not in done.stdout
    # All renditions of a feed are measured at once; p1080 has the source's size here, and is none.
    lobby, = (kind for kind in found["kinds"] if "lobby" in kind["feeds"])
    assert lobby["encodes"] == 3
    for size in ("64x36", "32x18", "24x14"):
        assert size in lobby["formats"]
    assert f"\nlobby: 64x36 {lobby['formats']}, 30 frames/s\n" in done.stdout
    settings = printed_settings(done.stdout)
    example.write_text(with_lines(before, settings))
    assert cli("check", "--no-env", "-c", example).returncode == 0
    written = yaml.safe_load(example.read_text())
    for kind in found["kinds"]:
        assert kind["ceiling_feeds"] > 0
        for name in kind["feeds"]:
            feed = written["feeds"][name]
            profile = written["profiles"].get(feed.get("profile"), {})
            merged = {**written["defaults"], **profile, **feed}
            assert {key: str(merged[key]) for key in SETTINGS} == {key: str(kind[key]) for key in SETTINGS}


@pytest.mark.asan
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
    done = cli("tune", "-c", path)
    assert done.returncode == 0, done.stderr
    assert done.stdout == ("left out: a: converts nothing, as far as the configuration tells\n"
                           "no feed converts anything: there is nothing to tune\n")


def test_a_camera_of_which_little_is_shown_has_a_smaller_stream(cli, tmp_path):
    path = tmp_path / "f.yaml"
    path.write_text("feeds: {a: {input: {url: 'rtsp://h/s'}, encodes: {m: {convert: {size: 32x18}}}}}\n")
    stated = cli("tune", "-c", path, "--size", "192x108", *SHORT)
    assert stated.returncode == 0, stated.stderr
    assert ("\n  input    too large decodes 192x108, and its largest encode shows 32x18: "
            "a camera's second, smaller stream as input.url would cost far less; or set skip") in stated.stdout
    # Of another size it may be what the encode needs.
    unknown = cli("tune", "-c", path, *SHORT)
    assert unknown.returncode == 0, unknown.stderr
    assert "taken for 1920x1080" in unknown.stdout and "too large" not in unknown.stdout


def test_a_wrong_configuration_is_shown_as_check_shows_it(cli, tmp_path):
    path = tmp_path / "f.yaml"
    path.write_text("feeds: {a: {inputs: {}}}\n")
    done = cli("tune", "-c", path)
    assert done.returncode == 78
    assert done.stderr == cli("check", "-c", path).stderr != ""
    missing = cli("tune", "-c", tmp_path / "none.yaml")
    assert missing.returncode == 78
    assert "none.yaml:1:1: cannot be read: No such file" in missing.stderr


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
    feed_on("cuda:1", path)
    done = cli("tune", "-c", path, *SHORT)
    assert done.returncode == 1
    assert done.stderr.startswith(f"framelane-bench: tune: {path}: device is cuda:1: ")
    assert len(done.stderr.splitlines()) == 1
    assert done.stdout == ""
    asked = cli("tune", "-c", path, "--device", "auto", *SHORT)
    assert asked.returncode == 0, asked.stderr
    assert printed_settings(asked.stdout)["device"] == "cpu"


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


def test_an_interrupt_recommends_nothing(example):
    text = interrupted("tune", "-c", str(example), *SMALL, "--seconds", "600", "--rounds", "1000")
    assert "defaults:" not in text


@pytest.mark.parametrize("arguments, reason", [
    (("--size", "64x36", "--write"), "--write"),
    (("-c", "x.yaml", "--feeds", "2"), "x.yaml says them"),
    (("--feeds", "3"), "to measure without it, give --size"),
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
    for name in ("--config", "--size", "--rate", "--check", "--device"):
        assert name in text
    commands = cli("--help").stdout
    assert "tune" in commands
    assert "tune-feeds" not in commands


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


def test_without_framelane_beside_it_configurations_cannot_be_read(example, tmp_path):
    alone = tmp_path / "alone"
    alone.mkdir()
    shutil.copy(BINARY.parent / "framelane-bench", alone)
    done = subprocess.run([alone / "framelane-bench", "tune", "-c", example], capture_output=True,
                          text=True, check=False, stdin=subprocess.DEVNULL, timeout=30 * TIME_FACTOR)
    assert done.returncode == 1
    assert f"{alone}/framelane cannot be started: No such file" in done.stderr
