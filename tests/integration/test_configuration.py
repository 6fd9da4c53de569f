"""A wrong configuration: all problems are reported with their places, and nothing is started."""

import json
import os
import subprocess
import sys

import pytest

from harness.daemon import BINARY, ROOT, WITHOUT_PRIVILEGES

EXAMPLE = ROOT / "config" / "framelane.example.yaml"

FEED = "feeds:\n  cam:\n    input: {url: a.mp4}\n"

# Name, text, and LINE:COLUMN: KEY of every problem that must be reported.
WRONG = [
    ("unknown top key", FEED + "feds: {}\n", ["4:1: feds:"]),
    ("unknown key", "feeds:\n  cam:\n    input: {url: a.mp4, timout: 1s}\n",
     ["3:25: feeds.cam.input.timout:"]),
    ("duplicate key", "feeds:\n  cam:\n    ring: 4\n    input: {url: a.mp4}\n    ring: 8\n",
     ["5:5: feeds.cam.ring:"]),
    ("wrong type", "feeds:\n  cam:\n    ring: many\n    input: {url: a.mp4}\n",
     ["3:11: feeds.cam.ring:"]),
    ("octal number", "feeds:\n  cam:\n    ring: 010\n    input: {url: a.mp4}\n",
     ["3:11: feeds.cam.ring:"]),
    ("scalar for a map", "feeds:\n  cam:\n    input: a.mp4\n", ["3:12: feeds.cam.input:"]),
    ("bad duration", "feeds:\n  cam:\n    input: {url: a.mp4, timeout: 10 apples}\n",
     ["3:34: feeds.cam.input.timeout:"]),
    ("bad feed name", "feeds:\n  Cam:\n    input: {url: a.mp4}\n", ["2:3: feeds.Cam:"]),
    ("no url", "feeds:\n  cam:\n    input: {timeout: 1s}\n", ["2:3: feeds.cam.input.url:"]),
    ("no input", "feeds:\n  cam: {ring: 8}\n", ["2:3: feeds.cam.input.url:"]),
    ("unset variable", "feeds:\n  cam:\n    input: {url: \"${FRAMELANE_NOT_SET}\"}\n",
     ["3:18: feeds.cam.input.url:"]),
    ("missing secret", "feeds:\n  cam:\n    input: {url: \"rtsp://u:${file:no-such}@h/\"}\n",
     ["3:18: feeds.cam.input.url:"]),
    ("output from nowhere", FEED + "    outputs:\n      out: {from: nothing, url: \"null:\"}\n",
     ["5:19: feeds.cam.outputs.out.from:"]),
    ("raw video without a size",
     "feeds:\n  cam:\n    input: {url: a, format: rawvideo, pixel_format: bgra}\n",
     ["3:5: feeds.cam.input.rate:", "3:5: feeds.cam.input.size:"]),
    ("bad log level", "log: {level: loud}\n" + FEED, ["1:14: log.level:"]),
    ("unknown profile", "feeds:\n  cam:\n    profile: none-such\n    input: {url: a.mp4}\n",
     ["3:14: feeds.cam.profile:"]),
    ("syntax", "feeds:\n  cam: {input: [}\n", ["2:"]),
    ("no map", "- a\n- b\n", ["1:1:"]),
    ("several at once",
     "log: {level: loud}\nfeeds:\n  cam:\n    ring: many\n    input: {url: a.mp4, x: 1}\n",
     ["1:14: log.level:", "4:11: feeds.cam.ring:", "5:25: feeds.cam.input.x:"]),
]


@pytest.mark.parametrize("text, positions", [w[1:] for w in WRONG], ids=[w[0] for w in WRONG])
def test_wrong_configuration_is_refused_with_positions(cli, tmp_path, text, positions):
    path = tmp_path / "framelane.yaml"
    path.write_text(text)
    for command in ("check", "run"):
        done = cli(command, "-c", path, cwd=tmp_path, timeout=10)
        assert done.returncode == 78, done.stderr
        for position in positions:
            assert f"{path}:{position}" in done.stderr
        lines = [line for line in done.stderr.splitlines() if line.startswith(f"{path}:")]
        assert len(lines) == len(positions), done.stderr
        assert all(len(line) > len(f"{path}:1:1: ") + 10 for line in lines)


def test_a_wrong_configuration_starts_nothing(cli, tmp_path):
    path = tmp_path / "framelane.yaml"
    path.write_text(
        f'admin: {{listen: "unix:{tmp_path}/admin.sock"}}\n'
        "feeds:\n"
        "  good:\n"
        '    input: {url: "lavfi:testsrc2"}\n'
        f'    outputs: {{file: {{url: "{tmp_path}/out.mkv"}}}}\n'
        "  bad: {input: {url: a, nonsense: 1}}\n"
    )
    assert cli("run", "-c", path).returncode == 78
    assert [entry.name for entry in tmp_path.iterdir()] == ["framelane.yaml"]


@pytest.mark.parametrize("kind", ["missing", "folder", "empty"])
def test_an_unreadable_configuration_is_wrong_too(cli, tmp_path, kind):
    path = tmp_path / "framelane.yaml"
    if kind == "folder":
        path.mkdir()
    elif kind == "empty":
        path.write_text("")
    done = cli("run", "-c", path, timeout=10)
    assert done.returncode == 78
    assert len(done.stderr.splitlines()) == 1 and str(path) in done.stderr


def test_check_accepts_what_is_right_and_opens_nothing(cli, tmp_path):
    path = tmp_path / "framelane.yaml"
    path.write_text(
        "feeds:\n  cam:\n    input: {url: \"rtsp://127.0.0.1:1/\"}\n"
        f"    outputs: {{file: {{url: \"{tmp_path}/rec/out.mp4\"}}}}\n"
    )
    done = cli("check", "-c", path)
    assert done.returncode == 0, done.stderr
    assert [entry.name for entry in tmp_path.iterdir()] == ["framelane.yaml"]


def test_a_percent_sign_in_the_current_folder_is_no_field(cli, tmp_path):
    folder = tmp_path / "100%x"
    folder.mkdir()
    record = {"url": "cam-%s.ts", "segment": "1m", "keep": {"age": "1d"}}
    config = {"feeds": {"cam": {"input": {"url": "rtsp://127.0.0.1/"}, "outputs": {
        "record": record, "hls": {"url": "live/cam.m3u8"}}}}}
    (folder / "f.yaml").write_text(json.dumps(config, indent=1))
    done = cli("check", "-c", "f.yaml", cwd=folder)
    assert done.returncode == 0, done.stderr
    config["feeds"]["cam"]["outputs"]["hls"]["url"] = "cam.m3u8"
    (folder / "f.yaml").write_text(json.dumps(config, indent=1))
    done = cli("check", "-c", "f.yaml", cwd=folder)
    assert done.returncode == 78, done.stderr
    assert "would delete files of output \"record\"" in done.stderr


def test_check_without_environment_accepts_unset_names(cli, tmp_path):
    path = tmp_path / "framelane.yaml"
    path.write_text(
        "feeds: {cam: {input: {url: \"rtsp://u:${file:no-such}@${FRAMELANE_NOT_SET}/\"}}}\n")
    assert cli("check", "-c", path).returncode == 78
    assert cli("check", "--no-env", "-c", path).returncode == 0


def test_variables_and_secrets_are_expanded_and_secrets_never_shown(framelane, tmp_path, clip):
    (tmp_path / "credentials").mkdir()
    (tmp_path / "credentials" / "clip").write_text("street_h264\n")
    config = {"feeds": {"cam": {"input": {"url": "${FOLDER}/${file:clip}.mp4"}}}}
    daemon = framelane(
        config,
        env={"CREDENTIALS_DIRECTORY": str(tmp_path / "credentials"), "FOLDER": str(clip.parent)},
        secrets=["street_h264"],
    ).wait_ready()
    daemon.wait_state("cam", "ended")


def test_the_example_is_right(cli):
    done = cli("check", "--no-env", "-c", EXAMPLE)
    assert done.returncode == 0, done.stderr


def test_the_schema_describes_the_configuration(cli):
    done = cli("schema")
    assert done.returncode == 0
    schema = json.loads(done.stdout)
    assert schema["$schema"].startswith("https://json-schema.org/")
    assert {"log", "admin", "device", "defaults", "profiles", "feeds"} <= set(schema["properties"])


def test_another_validator_agrees_with_the_schema(cli, tmp_path):
    schema = tmp_path / "schema.json"
    schema.write_text(cli("schema").stdout)
    done = subprocess.run(
        [sys.executable, ROOT / "tests" / "config" / "check_schema.py", schema, EXAMPLE],
        capture_output=True, text=True, timeout=60, check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_what_cannot_become_a_path_is_refused_before_the_start(cli, tmp_path):
    path = tmp_path / "framelane.yaml"
    path.write_text(FEED + '    outputs: {out: {url: "/tmp/a\\0b.mp4"}}\n')
    done = cli("run", "-c", path, timeout=10)
    assert done.returncode == 78
    assert "feeds.cam.outputs.out.url: must be text" in done.stderr


def test_an_encode_for_no_output_is_noted(cli, tmp_path):
    path = tmp_path / "framelane.yaml"
    path.write_text(FEED + "    encodes: {main: {video: copy}, live: {}}\n"
                           '    outputs: {out: {from: main, url: "null:"}}\n')
    done = cli("check", "-c", path)
    assert done.returncode == 0 and done.stdout == f"{path}: ok, 1 feed\n"
    assert done.stderr == (f"{path}: note: feed cam: no output takes encode live, "
                           "so that its packets are discarded\n")


@pytest.mark.parametrize("arguments", [("schema",), ("devices",), ("--version",), ("run", "--help")],
                         ids=lambda arguments: " ".join(arguments))
def test_what_cannot_be_printed_is_exit_1(cli, arguments):
    with open("/dev/full", "w") as full:
        done = cli(*arguments, stdout=full)
    assert done.returncode == 1
    assert "not everything could be written to the standard output" in done.stderr


def test_a_misspelt_command_names_the_one_that_was_meant(cli):
    for word, hint in (("rnu", 'did you mean "run"?'), ("transcoder", 'did you mean "transcode"?'),
                       ("frobnicate", "there are: run, transcode, check,")):
        done = cli(word, "-c", "x.yaml")
        assert done.returncode == 2 and len(done.stderr.splitlines()) == 1
        assert f'"{word}" is not a command; {hint}' in done.stderr


def test_wrong_usage_is_exit_2(cli):
    for arguments in (["nonsense"], ["run", "--no-such-flag"], ["transcode", "only-one"], []):
        done = cli(*arguments)
        assert done.returncode == 2, (arguments, done.returncode, done.stderr)


def test_the_version_names_what_is_inside(cli):
    done = cli("--version")
    assert done.returncode == 0
    assert "framelane" in done.stdout and "FFmpeg" in done.stdout


def test_devices_lists_the_cpu_and_what_can_be_opened(cli):
    done = cli("devices", "--json", env={**os.environ, "CUDA_VISIBLE_DEVICES": ""})
    assert done.returncode == 0, done.stderr
    devices = json.loads(done.stdout)
    assert "libx264" in json.dumps(devices) and "cpu" in json.dumps(devices)
    assert "libx264" in cli("devices").stdout


def test_check_refuses_what_names_no_peer_and_no_place(cli, tmp_path):
    """Each of them would be tried for ever, or written into a playlist that nobody can read."""
    wrong = ["rtmp://", "tcp://host", "srt://:99999999", "rtsp://h:99999999/", "udp://127.0.0.1"]
    outputs = {f"o{i}": {"url": url, "format": "mpegts"} for i, url in enumerate(wrong)}
    names = [f"{tmp_path}/a\n%d.ts", f"{tmp_path}/{'a' * 300}%d.ts", f"{tmp_path}/%d/"]
    for i, name in enumerate(names):
        outputs[f"h{i}"] = {"url": f"{tmp_path}/h{i}.m3u8", "options": {
            "hls_segment_filename": name, "hls_base_url": "http://h/\n#EXT-X-ENDLIST\n"}}
    config = tmp_path / "f.yaml"
    config.write_text(json.dumps({
        "admin": {"listen": "unix:/tmp/a\0b"},
        "feeds": {"cam": {"input": {"url": "rtsp://h:99999999/"}, "outputs": outputs}}}))
    done = cli("check", "-c", config)
    assert done.returncode == 78
    for key in ["admin.listen", "feeds.cam.input.url",
                *(f"feeds.cam.outputs.o{i}.url" for i in range(len(wrong))),
                *(f"feeds.cam.outputs.h{i}.options.{option}" for i in range(len(names))
                  for option in ("hls_segment_filename", "hls_base_url"))]:
        assert done.stderr.count(f": {key}: ") == 1, (key, done.stderr)


def test_the_api_shows_what_a_feed_is_made_of(framelane, clip, tmp_path, monkeypatch):
    monkeypatch.setenv("CLIP", str(clip))
    daemon = framelane({
        "defaults": {"ring": 5, "encodes": {"live": {"video": "copy"}}, "outputs": {"a": {"url": "null:"}}},
        "profiles": {"quiet": {"outputs": {"a": None}, "ring": 6}},
        "feeds": {"gate": {"profile": "quiet", "input": {"url": "${CLIP}", "loop": True}, "lanes": 2}}}).wait_ready()
    shown = daemon.api("/api/v1/feeds/gate/config")
    assert shown == {"ring": "6", "encodes": {"live": {"video": "copy"}}, "outputs": {}, "profile": "quiet",
                     "input": {"url": "${CLIP}", "loop": "true"}, "lanes": "2"}
    assert daemon.request("GET", "/api/v1/feeds/yard/config")[0] == 404


def test_files_that_may_not_be_read_are_told_with_the_remedy(tmp_path):
    main, included = tmp_path / "framelane.yaml", tmp_path / "cam.yaml"
    main.write_text("include: cam.yaml\n" + FEED)
    denied = "cannot be read: Permission denied (let framelane's user read it); "
    for path, problem in ((included, f"{main}:1:10: include: includes {included}, which {denied}mend that, or name "
                                     "other files\n"),
                          (main, f"{main}:1:1: {denied}name another file with -c\n")):
        path.touch()
        path.chmod(0)
        done = subprocess.run([*WITHOUT_PRIVILEGES, BINARY, "check", "-c", main], capture_output=True, text=True,
                              timeout=60, check=False)
        assert (done.returncode, done.stderr) == (78, problem)
