"""What an operator sees of each cause: on the page, in the metrics, the incidents and the trace, as the table "What it
looks like" in docs/operations.md says. (The seventh cause, a GPU's bus that other feeds saturate, is in
tests/gpu/seen_inside.py.)"""

import pytest

from harness.camera import free_port
from harness.causes import CAUSES, FEEDS, Site
from harness.trace_file import Trace
from harness.waiting import wait_until
from harness.web_page import Browser


@pytest.fixture
def browser():
    made = Browser()
    yield made
    made.close()


def bottleneck(metrics, feed):
    return [series["stage"] for series, value in metrics.series("framelane_feed_bottleneck", feed=feed) if value]


def wait_incident(daemon, kind, feed, output=None):
    def found():
        return [one for one in daemon.api(f"/api/v1/incidents?feed={feed}")["incidents"]
                if one["kind"] == kind and output in (None, one["output"])]

    return wait_until(found, f"the incident {kind} of {feed}", 60)[0]


def per_frame(slices):
    return sum(one.end - one.begin for one in slices) / len({one.frame for one in slices})


def test_each_cause_shows_where_the_table_says(framelane, camera_clip, tmp_path, browser):
    causes = dict(zip(FEEDS, CAUSES))
    feed_of = {cause: feed for feed, cause in causes.items()}
    site = Site(tmp_path, camera_clip, causes)
    try:
        daemon = framelane(site.config(), env=site.environment, port=free_port()).wait_ready()
        for feed in FEEDS:
            daemon.wait_state(feed, "running", 60)
        site.plant()

        stopped = feed_of["camera_stopped"]
        assert wait_incident(daemon, "source_lost", stopped)["code"] == "timeout"
        daemon.wait_metrics(lambda m: m.one("framelane_feed_up", feed=stopped) == 0, "the camera to be down")

        jumps = feed_of["clock_jumps"]
        wait_incident(daemon, "clock_jumped", jumps)
        assert daemon.metrics().sum("framelane_timestamp_repairs_total", feed=jumps, reason="jump") > 0

        encoder = feed_of["slow_encoder"]
        daemon.wait_metrics(lambda m: bottleneck(m, encoder) == ["encode"], "the encoder to be the limit", 60)
        wait_incident(daemon, "frames_dropped", encoder)
        assert daemon.metrics().sum("framelane_frames_dropped_total", feed=encoder, reason="ring_full") > 0

        peer = feed_of["frozen_peer"]
        lost = wait_incident(daemon, "output_lost", peer, "wall")
        assert lost["code"] == "timeout"
        daemon.wait_metrics(lambda m: m.sum("framelane_output_reconnects_total", feed=peer, output="wall",
                                            reason="timeout") > 0, "the peer to be given up")

        # The peer can be connected to, but the incident goes on.
        wait_until(lambda: "works again" in wait_incident(daemon, "output_lost", peer, "wall")["text"], "another try")
        assert wait_incident(daemon, "output_lost", peer, "wall")["end"] is None

        disk = feed_of["slow_disk"]
        daemon.wait_metrics(lambda m: bottleneck(m, disk) == ["output"], "the disk to be the limit", 60)

        large = feed_of["too_large"]
        assert daemon.metrics().one("framelane_encode_size_pixels", feed=large, encode="live", axis="width") == 3840

        trace = Trace(daemon.request("GET", "/api/v1/trace?seconds=60")[1])
        window = 5e9
        since = max(one.end for one in trace.slices) - window

        def lately(kind, feed, thread=None):
            return [one for one in trace.of(kind, f"feed {feed}", thread) if one.end > since]

        def busy(*which):
            return sum(one.end - max(one.begin, since) for one in lately(*which)) / window

        assert "source_lost" in [mark.name for mark in trace.marks if mark.process == f"feed {stopped}"]
        assert "clock_jumped" in [mark.name for mark in trace.marks if mark.process == f"feed {jumps}"]
        assert not lately("packet", stopped) and lately("packet", large)
        assert busy("encode", encoder) > 0.8
        assert {one.reason for one in lately("drop", encoder)} == {"ring_full"}
        writes = {feed: max(one.end - one.begin for one in trace.of("mux", f"feed {feed}", "output record"))
                  for feed in (disk, peer)}
        assert writes[disk] > max(1e9, 3 * writes[peer]), writes
        assert per_frame(lately("encode", large)) > 3 * per_frame(lately("encode", disk))

        page_shows(browser, daemon, feed_of)
    finally:
        site.close()


def page_shows(browser, daemon, feed_of):
    browser.open(f"http://127.0.0.1:{daemon.port}/")
    shown = {feed_of["camera_stopped"]: "timeout: ", feed_of["slow_encoder"]: "ring full", feed_of["frozen_peer"]: "wall",
             feed_of["clock_jumps"]: "the source's clock jumped"}
    browser.run("""
      for (const [feed, text] of Object.entries(shown))
        await page.locator('.tile:not([data-level=ok])', {hasText: feed}).filter({hasText: text}).waitFor();
      await page.locator('.tile', {hasText: disk}).filter({hasText: /Bottleneck\\s*output/}).waitFor();
      await page.locator('.incidents li', {hasText: jumps}).first().waitFor();
      await page.locator('.tile', {hasText: large}).filter({hasText: '→ 3840×2160'}).waitFor();
      await page.locator('.tile', {hasText: large}).getByRole('link').first().click();
      await page.getByRole('cell', {name: /3840×2160/}).waitFor();""", shown=shown, disk=feed_of["slow_disk"],
                jumps=feed_of["clock_jumps"], large=feed_of["too_large"])
    browser.check()
