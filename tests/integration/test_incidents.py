"""What an operator asks at 9 am: incidents with their causes, one for each, and still there after a restart."""

import contextlib
import datetime
import json
import time

import pytest

from harness import media
from harness.configs import COPY, IMPATIENT, looped, one_feed, x264
from harness.daemon import WITHOUT_PRIVILEGES
from harness.preload import preload
from harness.trace_file import Trace
from harness.waiting import TIME_FACTOR, wait_until

TCP = {"options": {"rtsp_transport": "tcp"}}
EXACT = 1.0 * TIME_FACTOR  # seconds


def incidents(daemon, kind=None, query=""):
    found = daemon.api(f"/api/v1/incidents{query}")["incidents"]
    assert [one["id"] for one in found] == sorted(one["id"] for one in found)
    return [one for one in found if kind in (None, one["kind"])]


def wait_incident(daemon, kind, ended, deadline=20):
    """Waits until the newest incident of this kind is over, or lasts."""

    def newest():
        found = incidents(daemon, kind)
        return found[-1] if found and (found[-1]["end"] is not None) == ended else None

    return wait_until(newest, f"the incident {kind}, {'over' if ended else 'open'}", deadline)


def seconds(text):
    return datetime.datetime.fromisoformat(text.replace("Z", "+00:00")).timestamp()


def wait_retries(daemon, count):
    return daemon.wait_metrics(lambda m: m.sum("framelane_source_reconnects_total", feed="cam") >= count,
                               f"{count} tries")


@pytest.mark.sanitizers
def test_a_killed_camera_is_one_incident_with_its_tries_and_the_gap(framelane, camera, camera_clip, tmp_path):
    source = camera(camera_clip)
    record = tmp_path / "record.mkv"
    config = one_feed({"url": source.url, **TCP, **IMPATIENT}, COPY, {"file": {"url": str(record)}},
                      on_gap={"split_after": "1h"})
    daemon = framelane(config).wait_ready()
    daemon.wait_state("cam", "running")
    wait_until(lambda: daemon.feed("cam")["outputs"]["file"]["bytes"] > 50_000, "a recording")
    killed = time.time()
    source.kill()
    lost = wait_incident(daemon, "source_lost", ended=False)
    assert (lost["feed"], lost["seconds"], lost["severity"]) == ("cam", None, "error")
    assert lost["text"].startswith("no data (")
    assert abs(seconds(lost["begin"]) - killed) < EXACT
    wait_retries(daemon, 4)
    source.start()
    back = wait_incident(daemon, "source_lost", ended=True)
    retries = daemon.wait_state("cam", "running").sum("framelane_source_reconnects_total", feed="cam")
    assert len(incidents(daemon, "source_lost")) == 1
    assert back["id"] == lost["id"] and back["begin"] == lost["begin"]
    assert back["retries"] == retries >= 4
    assert abs(seconds(back["end"]) - seconds(daemon.feed("cam")["since"])) < 0.01
    assert abs(back["seconds"] - (seconds(back["end"]) - seconds(back["begin"]))) < 0.01
    assert back["code"] in ("eof", "io", "refused") and back["reason"]
    assert back["text"].startswith("no data for ") and back["code"] in back["text"]

    # The trace shows it.
    daemon.reload()
    status, body = daemon.request("GET", "/api/v1/trace?seconds=600")
    assert status == 200
    marks = {(mark.process, mark.name): mark for mark in Trace(body).marks}
    assert marks["feed cam", "source_lost ends"].text == back["text"]
    length = marks["feed cam", "source_lost ends"].time - marks["feed cam", "source_lost"].time
    assert abs(length / 1e9 - back["seconds"]) < 0.01
    assert marks["framelane", "reload"].everywhere and not marks["feed cam", "source_lost"].everywhere

    before = daemon.feed("cam")["outputs"]["file"]["bytes"]
    wait_until(lambda: daemon.feed("cam")["outputs"]["file"]["bytes"] > before + 50_000, "more of the recording")
    daemon.stop()
    times = sorted(media.timestamps(record))
    gap = max(later - earlier for earlier, later in zip(times, times[1:]))
    assert abs(gap - back["gap_seconds"]) < EXACT
    assert gap > 0.2


def test_a_silence_within_the_timeout_is_an_incident_without_a_try(framelane, camera, camera_clip, tmp_path):
    source = camera(camera_clip)
    config = one_feed({"url": source.url, **TCP, **IMPATIENT, "timeout": "30s"}, COPY,
                      {"file": {"url": str(tmp_path / "%s.mkv")}}, on_gap={"split_after": "1s"})
    daemon = framelane(config).wait_ready()
    daemon.wait_state("cam", "running")
    wait_until(lambda: daemon.feed("cam")["outputs"]["file"]["bytes"] > 50_000, "a recording")
    frozen = time.time()
    source.freeze()
    wait_until(lambda: list(tmp_path.glob("*.mkv")), "the recording to be complete")
    source.thaw()
    silent = wait_incident(daemon, "source_lost", ended=True)
    assert abs(seconds(silent["begin"]) - frozen) < EXACT
    assert (silent["code"], silent["retries"]) == ("timeout", 0)
    assert silent["gap_seconds"] == silent["seconds"] > 1
    assert daemon.metrics().sum("framelane_source_reconnects_total", feed="cam") == 0


def test_a_frozen_camera_is_lost_since_its_last_packet(framelane, camera, camera_clip):
    """What a parser and a decoder give out only when the source is lost had come before."""
    source = camera(camera_clip)
    config = one_feed({"url": source.url, **TCP, **IMPATIENT, "timeout": "2s"}, COPY)
    config["feeds"]["cam"]["encodes"]["live"] = x264()
    daemon = framelane(config).wait_ready()
    daemon.wait_frames("cam", 75)  # it reads no burst any more
    frozen = time.time()
    source.freeze()
    lost = wait_incident(daemon, "source_lost", ended=False)
    noticed = time.time() - frozen
    assert lost["code"] == "timeout"
    assert abs(seconds(lost["begin"]) - frozen) < 0.5 * TIME_FACTOR
    assert noticed < 2 + 1.5 * TIME_FACTOR, "one timeout is enough"


def test_a_camera_that_comes_back_with_another_size_is_told(framelane, camera, camera_clip, cif_clip):
    source = camera(camera_clip)
    daemon = framelane(one_feed({"url": source.url, **TCP, **IMPATIENT}, COPY)).wait_ready()
    daemon.wait_state("cam", "running")
    source.kill()
    lost = wait_incident(daemon, "source_lost", ended=False)
    source.start(clip=cif_clip)
    changed = wait_incident(daemon, "format_changed", ended=True)
    assert changed["text"] == "the source sends h264 352x288, and no longer h264 320x240"
    # Nothing is recorded.
    assert wait_incident(daemon, "source_lost", ended=True)["gap_seconds"] is None
    assert incidents(daemon, query=f"?feed=cam&since={changed['end']}")[-1]["id"] > lost["id"]


def test_a_full_disk_is_one_incident_of_its_output(framelane, camera_clip, small_disk, tmp_path):
    """The incidents themselves are to be kept on that disk as well."""
    retry = {"reconnect": {"first": "100ms", "max": "200ms"}}
    daemon = framelane(one_feed(looped(camera_clip), COPY, {
        "full": {"url": str(small_disk / "%s.mkv"), **retry}, "fine": {"url": str(tmp_path / "fine.mkv")}}),
        env={"STATE_DIRECTORY": str(small_disk)}).wait_ready()
    wait_until((small_disk / "incidents.jsonl").exists, "incidents to be kept")
    filler = small_disk / "filler"

    def fill():
        with open(filler, "ab", buffering=0) as file, contextlib.suppress(OSError):
            while True:
                file.write(bytes(4096))

    fill()
    full = wait_incident(daemon, "disk_full", ended=False)
    assert (full["output"], full["code"], full["text"]) == (
        "full", "disk_full", "disk full: output full is down")
    wait_until(lambda: incidents(daemon, "disk_full")[-1]["retries"] >= 3, "more tries")

    def not_kept():
        # A file that is given up leaves room for a moment.
        fill()
        daemon.reload("feeds: {}", expected=422)
        return "incidents.jsonl cannot be written, and incidents are kept in memory alone" in daemon.log()

    wait_until(not_kept, "incidents not to be kept")
    filler.unlink()
    over = wait_incident(daemon, "disk_full", ended=True)
    assert over["id"] == full["id"] and over["gap_seconds"] == over["seconds"] > 0
    assert len(incidents(daemon, "disk_full")) == 1 and not incidents(daemon, "output_lost")
    daemon.stop()
    assert daemon.log().count("incidents are kept in memory alone") == 1
    kept = [json.loads(line) for line in (small_disk / "incidents.jsonl").read_text().splitlines()]
    assert {one["kind"] for one in kept} >= {"started", "disk_full", "stopped"}


def test_a_reload_is_told_with_what_it_changes_or_why_it_is_refused(framelane, clip):
    config = one_feed(looped(clip))
    daemon = framelane(config).wait_ready()
    wrong = {"feeds": {"cam": {**config["feeds"]["cam"], "ring": "<script>\"x\"</script>"}}}
    daemon.reload(wrong, expected=422)
    refused, = incidents(daemon, "reload_refused")
    assert refused["code"] == "configuration" and "feeds.cam.ring" in refused["reason"]
    assert refused["text"].endswith("1 problem")
    config["feeds"]["yard"] = config["feeds"]["cam"]
    daemon.reload(config)
    done, = incidents(daemon, "reload")
    assert done["text"] == "another configuration is in force; added: yard"
    assert done["begin"] == done["end"]


def test_incidents_survive_a_kill_and_what_lasted_ends_with_it(framelane, clip, tmp_path):
    state = tmp_path / "state"
    state.mkdir()
    url = str(tmp_path / "<script>\"no\" such\\clip</script>.mp4")
    config = one_feed({"url": url, "reconnect": {"first": "200ms", "max": "200ms"}})
    config["feeds"]["fine"] = {"input": looped(clip), "encodes": {"main": x264()}}
    environment = {"STATE_DIRECTORY": f"{state}:{tmp_path}/other"}
    first = framelane(config, env=environment).wait_ready()
    lost = wait_incident(first, "source_lost", ended=False)
    assert url in lost["reason"]
    wait_until(lambda: "source_lost" in (state / "incidents.jsonl").read_text(), "it to be kept")
    first.kill()
    killed = time.time()

    second = framelane(config, env=environment).wait_ready()
    before = [one for one in incidents(second) if one["id"] <= lost["id"]]
    assert [one["kind"] for one in before] == ["started", "source_lost"]
    assert abs(seconds(before[1]["end"]) - killed) < EXACT + 1
    assert "then framelane was killed, or the machine failed, until 20" in before[1]["text"]
    assert url in before[1]["reason"]
    again, = [one for one in incidents(second, "started") if one["id"] > lost["id"]]
    assert again["severity"] == "warning" and "had not been stopped" in again["text"]
    assert wait_incident(second, "source_lost", ended=False)["id"] > again["id"]
    second.stop()

    third = framelane(config, env=environment).wait_ready()
    assert incidents(third, "stopped")[-1]["text"] == "framelane was stopped"
    assert incidents(third, "source_lost")[1]["text"].endswith("; then framelane was stopped")
    assert incidents(third, "started")[-1]["severity"] == "info"
    assert not (tmp_path / "other").exists()


def test_a_damaged_file_costs_one_warning_and_no_start(framelane, clip, tmp_path):
    state = tmp_path / "state"
    state.mkdir()
    environment = {"STATE_DIRECTORY": str(state)}
    daemon = framelane(one_feed(looped(clip)), env=environment).wait_ready()
    daemon.stop()
    file = state / "incidents.jsonl"
    good = file.read_bytes()
    file.write_bytes(b"\x00\xff{" + good + b'{"id":3,"kind":')
    daemon = framelane(one_feed(looped(clip)), env=environment).wait_ready()
    assert [one["kind"] for one in incidents(daemon)] == ["stopped", "started"]
    assert daemon.log().count("2 damaged lines are left out") == 1
    daemon.stop()
    assert len([json.loads(line) for line in file.read_text().splitlines()]) >= 3


@pytest.mark.parametrize("write", [True, False])
def test_a_state_directory_that_cannot_be_used_costs_one_warning(framelane, clip, tmp_path, write):
    state = tmp_path / "state"
    state.mkdir()
    if not write:
        (state / "incidents.jsonl").touch(mode=0)
    state.chmod(0o555)
    daemon = framelane(one_feed(looped(clip)), env={"STATE_DIRECTORY": str(state)},
                       wrapper=WITHOUT_PRIVILEGES).wait_ready()
    daemon.wait_log(f"incidents.jsonl cannot be {'written' if write else 'read'}")
    assert [one["kind"] for one in incidents(daemon)] == ["started"]
    daemon.stop()
    assert daemon.log().count("incidents.jsonl cannot be") == 1
    state.chmod(0o755)


def test_a_state_directory_that_hangs_holds_up_neither_start_nor_stop(framelane, clip, tmp_path):
    """It takes 2 s: so long the start waits."""
    environment, hangs = preload(tmp_path, "hang")
    kept = tmp_path / "incidents.jsonl"
    kept.write_text("{}\n")
    hangs.touch()
    try:
        daemon = framelane(one_feed(looped(clip)), env={
            **environment, "FRAMELANE_TEST_HANG_READING": str(kept), "STATE_DIRECTORY": str(tmp_path)}).wait_ready()
        daemon.wait_frames("cam", 1)
        assert "incidents.jsonl cannot be read (the disk or file server does not answer)" in daemon.log()
        assert wait_incident(daemon, "thread_stuck", ended=False)["text"].startswith("1 thread ")
        hangs.unlink()
        wait_incident(daemon, "thread_stuck", ended=True)
        daemon.stop()
        assert kept.read_text() == "{}\n"
    finally:
        hangs.unlink(missing_ok=True)


def test_whoever_can_ask_sees_the_incidents_of_before(framelane, clip, tmp_path):
    """While they are read, nobody can ask."""
    state = tmp_path / "state"
    state.mkdir()
    config = one_feed(looped(clip))
    framelane(config, env={"STATE_DIRECTORY": str(state)}).wait_ready().stop()
    environment, hangs = preload(tmp_path, "hang")
    hangs.touch()
    try:
        daemon = framelane(config, env={**environment, "STATE_DIRECTORY": str(state),
                                        "FRAMELANE_TEST_HANG_READING": str(state / "incidents.jsonl")})
        wait_until(hangs.with_suffix(".reached").exists, "the incidents to be read")
        early = None
        with contextlib.suppress(OSError):
            early = incidents(daemon, "stopped")
        assert early is None
    finally:
        hangs.unlink()
    assert incidents(daemon.wait_ready(), "stopped")


def test_wrong_requests_are_refused(framelane, clip):
    daemon = framelane(one_feed(looped(clip))).wait_ready()
    for query, status, code, key in [
            ("since=yesterday", 400, "wrong_parameter", "since"), ("from=1", 400, "wrong_parameter", "from"),
            ("feed=%3Cscript%3E", 404, "no_such_feed", "feeds.<script>")]:
        got, body = daemon.request("GET", f"/api/v1/incidents?{query}")
        error = json.loads(body)["error"]
        assert (got, error["code"], error["key"]) == (status, code, key)
    assert daemon.request("POST", "/api/v1/incidents")[0] == 405
    assert len(incidents(daemon, query="?since=2026-01-01T00:00:00+01:00")) == 1
    assert incidents(daemon, query=f"?since={time.time() + 60:.3f}") == []
