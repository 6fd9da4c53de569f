"""What status pages are told: /api/v1/events."""

import http.client
import time

import pytest

from harness.configs import IMPATIENT, COPY, looped, one_feed, raw_input, x264
from harness.events import Events
from harness.waiting import TIME_FACTOR, wait_until


@pytest.fixture
def events():
    opened = []

    def begin(daemon):
        opened.append(Events(daemon))
        return opened[-1]

    yield begin
    for stream in opened:
        stream.close()


def test_a_page_is_told_of_incidents(framelane, clip, events):
    daemon = framelane(one_feed(looped(clip))).wait_ready()
    page = events(daemon)
    page.next("history")
    daemon.reload()
    incident = page.next("incident")
    while incident["kind"] == "started":
        incident = page.next("incident")
    assert incident == daemon.api("/api/v1/incidents")["incidents"][-1] and incident["kind"] == "reload"


@pytest.mark.sanitizers
def test_a_page_is_told_the_history_and_then_what_happens(framelane, clip, events, tmp_path):
    feed = {"input": looped(clip), "encodes": {"live": {**x264(), "convert": {"size": "320x240"}}, "copy": COPY},
            "outputs": {"file": {"from": "live", "url": str(tmp_path / "out.mkv")}}, "device": "cpu"}
    daemon = framelane({"feeds": {"gate": feed}}).wait_ready()
    page = events(daemon)
    history = page.next()
    assert history["interval"] == 5 and set(history["feeds"]) == {"gate"}
    status = page.wait(lambda s: (s["feeds"][0]["fps_out"] or 0) > 5 and s["feeds"][0]["latency"])
    gate, = status["feeds"]
    assert (gate["name"], gate["state"], gate["up"], gate["size"]) == ("gate", "running", True, "768x576")
    assert 0 < gate["latency"]["p50"] <= gate["latency"]["p99"] < 10
    assert gate["fps_in"] == pytest.approx(10, abs=3)  # what the clip has
    live, copy = gate["encodes"]
    assert live["codec"] == "libx264" and live["out"] > 0 and copy == {"name": "copy", "codec": "copy", "reason": None}
    output, = gate["outputs"]
    assert output["playlist"] is None
    assert output["state"] == "running" and output["from"] == ["live"] and output["bytes"] > 0
    assert output["queue_limit"] == 512
    assert (output["packets_lost"], output["packets_lost_recently"], output["lost_recently"]) == (0, 0, 0)
    assert output["code"] is None and gate["code"] is None
    assert gate["engines"] is None  # it is on the CPU
    cpu, = status["devices"]
    assert 0 <= cpu["occupancy"]["kernel"] <= 1
    lanes = [lane for lane in cpu["lanes"] if lane["feed"] == "gate"]
    assert lanes and all(len(lane["kernel"]) == 100 and int(lane["kernel"], 16) > 0 for lane in lanes)
    assert status["recorder"]["seconds"] > 0


def test_a_lost_source_shows_with_its_reason_and_comes_back(framelane, camera, events):
    source = camera()
    daemon = framelane(one_feed({"url": source.url, **IMPATIENT}, COPY)).wait_ready()
    page = events(daemon)
    page.wait(lambda s: s["feeds"][0]["up"])
    source.kill()
    lost = page.wait(lambda s: s["feeds"][0]["reason"])["feeds"][0]
    assert lost["state"] in ("backoff", "connecting") and "127.0.0.1" in lost["reason"]
    assert lost["code"] in ("eof", "io", "refused")
    page.wait(lambda s: s["feeds"][0]["reconnects"] >= 2)
    source.start()
    assert page.wait(lambda s: s["feeds"][0]["state"] == "running")["feeds"][0]["reason"] is None


def test_pages_that_are_gone_or_asleep_cost_nothing(framelane, bgra, events):
    daemon = framelane(one_feed(raw_input(bgra, "bgra", "64x48", loop=True, pace="realtime"))).wait_ready()
    pages = [events(daemon) for _ in range(64)]  # none of which reads
    with pytest.raises(AssertionError):
        events(daemon)
    start = time.monotonic()
    for _ in range(5):
        daemon.metrics()
    assert time.monotonic() - start < 5 * 0.1 * TIME_FACTOR
    for page in pages:
        page.close()
    wait_until(lambda: _is_free(daemon), "the places of pages that are gone")
    daemon.stop()


def _is_free(daemon):
    try:
        Events(daemon).close()
        return True
    except (AssertionError, http.client.HTTPException):
        return False
