"""The flight recorder: what a trace shows of every frame, and how it is fetched."""

import gzip
import http.server
import json
import signal
import threading

import pytest

from harness.configs import encoder, looped, one_feed, raw_input, x264
from harness.trace_file import Trace
from harness.waiting import wait_until

ALL = "/api/v1/trace?seconds=600"


def trace_of(daemon, path=ALL):
    status, body = daemon.request("GET", path)
    assert status == 200, body
    return Trace(body)


@pytest.fixture
def ended(framelane, clip, tmp_path):
    """A daemon that has converted, encoded and recorded the clip's 42 frames, and copied them too."""
    config = one_feed({"url": str(clip)}, outputs={
        "file": {"from": "main", "url": str(tmp_path / "out.mp4")},
        "copied": {"from": "copy", "url": str(tmp_path / "copy.mp4")}}, device="cpu")
    config["feeds"]["cam"]["encodes"] = {"main": {**x264(), "convert": {"size": "320x240"}},
                                         "copy": {"video": "copy"}}
    daemon = framelane(config).wait_ready()
    daemon.wait_state("cam", "ended")
    return daemon


@pytest.mark.sanitizers
def test_every_frames_way_is_in_the_trace_and_adds_up(ended):
    trace, metrics = trace_of(ended), ended.metrics()
    feed = "feed cam"
    assert {name for _, name in trace.threads} >= {"source", "encode main", "output file", "output copied"}
    assert len(trace.frames) == 42
    for slices in trace.frames.values():
        kinds = [s.kind for s in slices]
        assert kinds.count("packet") == 1 and kinds.count("wait") == 1 and kinds.count("kernel") == 1
        assert {"decode", "encode"} <= set(kinds)
        # Once as it was encoded, once as it was copied.
        assert {s.thread for s in slices if s.kind == "mux"} == {"output file", "output copied"}
    lanes = {name for _, name in trace.threads if name.startswith("lane ")}
    assert lanes == {"lane 0 kernel", "lane 1 kernel", "lane 2 kernel"}
    for lane in range(3):
        busy = metrics.one("framelane_lane_busy_seconds_total", feed="cam", lane=str(lane), op="kernel")
        assert trace.seconds("kernel", feed, f"lane {lane} kernel") == pytest.approx(busy, abs=1e-6)
    stages = {kind: metrics.one("framelane_stage_duration_seconds_count", feed="cam", stage=kind)
              for kind in ("wait", "kernel")}
    assert stages == {kind: len(trace.of(kind, feed)) for kind in stages}


def test_dropped_frames_have_their_reasons(framelane, bgra):
    config = one_feed(raw_input(bgra, "bgra", "64x48"), encoder("rawvideo", convert={"rate": 5}))
    daemon = framelane(config).wait_ready()
    dropped = daemon.wait_state("cam", "ended").one(
        "framelane_frames_dropped_total", feed="cam", encode="main", reason="rate")
    assert dropped == 40
    drops = trace_of(daemon).of("drop", "feed cam", "encode main")
    assert [s.reason for s in drops] == ["rate"] * 40


def test_a_trace_has_the_seconds_and_the_feed_that_are_asked_for(framelane, clip):
    source = {"input": looped(clip), "encodes": {"main": x264()}}
    daemon = framelane({"feeds": {"gate": source, "yard": source}}).wait_ready()
    daemon.wait_frames("gate", 20)
    daemon.wait_frames("yard", 20)
    trace = trace_of(daemon, "/api/v1/trace?seconds=1&feed=gate")
    assert {process for process, _ in trace.threads} == {"feed gate"}
    last = max(s.end for s in trace.slices)
    assert 0 < last <= 1.1e9
    assert all(s.begin <= 1e9 for s in trace.slices)
    assert {process for process, _ in trace_of(daemon).threads} == {"feed gate", "feed yard"}


def test_the_recorders_memory_is_fixed_and_says_how_far_back_it_goes(framelane, bgra):
    config = one_feed(raw_input(bgra, "bgra", "64x48", loop=True), encoder("rawvideo"))
    daemon = framelane({**config, "recorder": {"memory": "100k"}}).wait_ready()
    metrics = daemon.wait_frames("cam", 2000)
    assert 90_000 < metrics.one("framelane_recorder_memory_bytes") <= 100_000
    assert 0 < metrics.one("framelane_recorder_covered_seconds") < 10
    trace = trace_of(daemon)
    assert 100 < len(trace.slices) <= 100_000 / 40
    assert trace.bounds["from"] < trace.bounds["to"]


def test_what_a_trace_cannot_be_made_of_is_refused(ended, framelane, clip, tmp_path):
    for query, key in [("seconds=0", "seconds"), ("seconds=x", "seconds"), ("seconds=1e3", "seconds"),
                       ("second=1", "second"), ("seconds=99999999999999999999", "seconds")]:
        status, body = ended.request("GET", f"/api/v1/trace?{query}")
        error = json.loads(body)["error"]
        assert (status, error["code"], error["key"]) == (400, "wrong_parameter", key)
    status, body = ended.request("GET", "/api/v1/trace?feed=%3Cscript%3E")
    assert (status, json.loads(body)["error"]["code"]) == (404, "no_such_feed")
    assert ended.request("POST", "/api/v1/trace")[0] == 405
    off = framelane({**one_feed(looped(clip)), "recorder": {"memory": 0}}, folder=tmp_path / "off").wait_ready()
    status, body = off.request("GET", "/api/v1/trace")
    assert (status, json.loads(body)["error"]["code"]) == (404, "no_recorder")
    assert "framelane_recorder" not in off.request("GET", "/metrics")[1]


def test_the_command_writes_a_trace_packed_or_not(ended, cli, tmp_path):
    plain, packed = tmp_path / "trace.json", tmp_path / "trace.json.gz"
    for file in (plain, packed):
        done = cli("trace", "-c", ended.config_path, "--seconds", 600, "-o", file)
        assert (done.returncode, done.stderr) == (0, "")
    slices = Trace(plain.read_text()).slices
    assert len(slices) == len(Trace(gzip.decompress(packed.read_bytes())).slices) > 42 * 6
    done = cli("trace", "--url", f"unix:{ended.socket}", "--seconds", 600, "-o", "-")
    assert len(Trace(done.stdout).slices) == len(slices)
    assert sorted(path.name for path in tmp_path.glob("trace*")) == ["trace.json", "trace.json.gz"]


def test_a_url_may_have_a_path_below_which_a_proxy_has_the_listener(ended, cli, tmp_path):
    class Proxy(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            assert self.path.startswith("/recorders/3/api/")
            connection = ended.connect()
            connection.request("GET", self.path.removeprefix("/recorders/3"), headers=dict(self.headers))
            answer = connection.getresponse()
            body = answer.read()
            self.send_response(answer.status)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)
            connection.close()

        def log_message(self, *_):
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Proxy) as proxy:
        threading.Thread(target=proxy.serve_forever, daemon=True).start()
        url = f"http://127.0.0.1:{proxy.server_port}/recorders/3/"
        done = cli("trace", "--url", url, "--seconds", 600, "-o", tmp_path / "trace.json.gz")
        proxy.shutdown()
    assert done.returncode == 0, done.stderr
    assert len(Trace(gzip.decompress((tmp_path / "trace.json.gz").read_bytes())).slices) > 42 * 6


def test_the_command_says_what_is_wrong(ended, cli, tmp_path):
    def refused(*arguments):
        done = cli("trace", *arguments)
        assert done.returncode == 1 and done.stdout == ""
        return done.stderr

    ask = "--url", f"unix:{ended.socket}"
    assert "no feed is named 'gate'" in refused(*ask, "--feed", "gate", "-o", tmp_path / "t")
    assert "seconds: must be a whole number" in refused(*ask, "--seconds", 0, "-o", tmp_path / "t")
    assert "/nowhere/t" in refused(*ask, "-o", "/nowhere/t")
    assert "cannot connect" in refused("--url", f"unix:{tmp_path}/none", "-o", tmp_path / "t")
    assert "token file /nowhere cannot be read" in refused(*ask, "--token-file", "/nowhere", "-o", tmp_path / "t")
    assert not (tmp_path / "t").exists()
    assert cli("trace", *ask).returncode == 2


def traces_in(folder):
    return sorted(path.name for path in folder.glob("framelane-trace-*.json.gz"))


def test_a_signal_writes_a_trace_and_old_ones_go(framelane, clip, tmp_path):
    folder = tmp_path / "traces"
    folder.mkdir()
    old = [f"framelane-trace-20250101T0000{n:02}Z-drops.json.gz" for n in range(30)]
    for name in [*old, "of-somebody-else.json.gz"]:
        (folder / name).touch()
    daemon = framelane({**one_feed(looped(clip)), "recorder": {"directory": str(folder)}}).wait_ready()
    daemon.wait_frames("cam", 10)
    daemon.process.send_signal(signal.SIGUSR1)
    daemon.wait_metrics(lambda m: m.one("framelane_recorder_traces_total", cause="signal") == 1, "a trace")
    present = traces_in(folder)
    assert present[:-1] == old[-23:] and (folder / "of-somebody-else.json.gz").exists()
    assert present[-1].endswith("-signal.json.gz")
    trace = Trace(gzip.decompress((folder / present[-1]).read_bytes()))
    assert len(trace.of("encode", "feed cam")) >= 10


def test_lost_frames_write_a_trace_that_shows_them(framelane, clip, tmp_path):
    """The writer of a FIFO takes more than the encoder can, and the feed may not block it."""
    config = one_feed(looped(clip), encoder("libx264", preset="placebo", threads=1), on_full="drop", ring=1)
    config["feeds"]["cam"]["encodes"]["main"]["convert"] = {"size": "1920x1080"}
    daemon = framelane({**config, "recorder": {"directory": str(tmp_path / "new" / "traces")}}).wait_ready()
    daemon.wait_metrics(lambda m: m.one("framelane_recorder_traces_total", cause="drops") == 1, "a trace",
                        deadline=40)
    name, = traces_in(tmp_path / "new" / "traces")
    trace = Trace(gzip.decompress((tmp_path / "new" / "traces" / name).read_bytes()))
    assert len([s for s in trace.of("drop") if s.reason == "ring_full"]) >= 10
    lost, = [one for one in daemon.api("/api/v1/incidents")["incidents"] if one["kind"] == "frames_dropped"]
    assert (lost["code"], lost["encode"]) == ("ring_full", "main") and "ring_full" in lost["text"]
    daemon.process.send_signal(signal.SIGUSR1)
    daemon.wait_metrics(lambda m: m.one("framelane_recorder_traces_total", cause="signal") == 1, "a trace")
    # However many frames are lost, the next trace comes after a pause.
    assert daemon.metrics().one("framelane_recorder_traces_total", cause="drops") == 1


def test_a_folder_that_cannot_be_written_is_named(framelane, clip, tmp_path):
    (tmp_path / "file").touch()
    daemon = framelane({**one_feed(looped(clip)), "recorder": {"directory": str(tmp_path / "file" / "traces")}})
    daemon.wait_ready().wait_frames("cam", 1)
    daemon.process.send_signal(signal.SIGUSR1)
    wait_until(lambda: "recorder.directory: no trace can be written" in daemon.log(), "the warning")
    assert daemon.metrics().sum("framelane_recorder_traces_total") == 0
