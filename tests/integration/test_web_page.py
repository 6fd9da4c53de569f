# Longer than 400 lines: each part of the page has its tests, with the same browser and stand-in.
"""The status page (web/) in Chromium: before a stand-in of the daemon, and before the daemon itself."""

import re
import threading
from urllib.parse import parse_qs, quote, urlsplit

import pytest

from harness import media
from harness.camera import free_port
from harness.configs import COPY, IMPATIENT, looped, one_feed, x264
from harness.daemon import ROOT
from harness.mock_daemon import HOSTILE, HOSTILE_FILE, HOSTILE_REASON, Fleet, MockDaemon, parse, stamp
from harness.waiting import wait_until
from harness.web_page import Browser

# One worker has them all, and one Chromium.
pytestmark = pytest.mark.xdist_group("browser")

LARGEST_FIRST_PAINT = 100_000
# Seconds between two statuses, so that no test waits for a second to pass.
TICK = 0.2
# What axe-core finds, each with its elements.
AXE = """return page.evaluate(async () => {
  const {violations} = await axe.run(document, {resultTypes: ['violations']});
  return violations.map(({id, nodes}) => `${id}: ${nodes.map((n) => n.html + ' ' + n.failureSummary).join(' | ')}`);
})"""

# Waits until the first feed's curve has got two new points.
CURVE_MOVES = """
  const curve = page.locator('.tile .spark path').first();
  for (let i = 0; i < 2; ++i) {
    const before = await curve.getAttribute('d');
    await page.waitForFunction(([path, d]) => path.getAttribute('d') !== d, [await curve.elementHandle(), before]);
  }"""
# The page's steady clock goes on by so many seconds.
PASS = """await page.evaluate((seconds) => {
  const now = performance.now.bind(performance);
  performance.now = () => now() + 1000 * seconds;
}, seconds)"""


@pytest.fixture(scope="module")
def browser():
    made = Browser()
    yield made
    made.close()


@pytest.fixture
def mock():
    """Makes stand-ins: mock(**keywords) -> MockDaemon."""
    made = []

    def make(feeds=8, tick=TICK, **keywords):
        made.append(MockDaemon(feeds, tick, **keywords))
        return made[-1]

    yield make
    for one in made:
        one.close()


def test_every_feed_has_a_tile_and_all_comes_from_the_daemon_in_less_than_100_kb(browser, mock):
    daemon = mock(feeds=64, tick=1)
    browser.open(daemon.url)
    browser.run("await page.getByRole('heading', {name: '64 of 64 feeds are delivered'}).waitFor();"
                "await page.locator('.thumbnail img').first().waitFor()")
    assert browser.run("return page.locator('.tile').count()") == 64
    tile = browser.run("return page.locator('.tile', {hasText: 'gate-1'}).first().innerText()")
    for part in ("Running", "1920×1080 · cuda:0 · h264_nvdec", "Latency", "Mb/s", "2 of 2"):
        assert part in tile, tile
    browser.check()
    names = {path for method, path in daemon.requests if path == "/" or path.startswith("/web/")}
    files = [ROOT / "web" / (path.removeprefix("/web/").removeprefix("/") or "index.html") for path in names]
    assert len(files) > 10
    assert sum(path.stat().st_size for path in files) < LARGEST_FIRST_PAINT
    # Pictures of tiles that cannot be seen are not asked for.
    pictures = {path for _, path in daemon.requests if "snapshot.jpg" in path}
    assert 0 < len(pictures) < 30


def test_a_feed_that_is_lost_turns_red_with_its_reason_comes_first_and_comes_back(browser, mock):
    daemon = mock()
    browser.open(daemon.url)
    browser.run("await page.getByRole('heading', {name: '8 of 8 feeds are delivered'}).waitFor()")
    daemon.fail("hall-1", "no data for 10 s")
    browser.run("""
      await page.getByRole('heading', {name: '7 of 8 feeds are delivered'}).waitFor();
      const tile = page.locator('.tile').first();
      await tile.filter({hasText: 'hall-1'}).filter({hasText: 'Will retry'}).filter({hasText: 'no data for 10 s'})
        .waitFor();
      await page.locator('.tile[data-level=bad]').waitFor();
      await page.locator('#announcements', {hasText: 'hall-1: Will retry, timeout: no data for 10 s'}).waitFor({state: 'attached'});
      await page.locator('.incidents li[data-lasts]', {hasText: 'lost: no data for 10 s'}).waitFor();""")
    assert browser.run("return page.title()") == "7/8 · recorder-3"
    daemon.recover("hall-1")
    browser.run("""
      await page.getByRole('heading', {name: '8 of 8 feeds are delivered'}).waitFor();
      await page.locator('.tile[data-level=ok]', {hasText: 'hall-1'}).waitFor();
      await page.locator('.incidents li:not([data-lasts])', {hasText: 'lost: no data for 10 s'}).waitFor();""")
    browser.check()


def test_a_feed_whose_outputs_lose_something_or_whose_clock_jumps_needs_attention(browser, mock):
    daemon = mock()
    fleet = daemon.fleet
    fleet.change_output("gate-1", "record", packets_dropped=975, packets_lost=963, packets_lost_recently=703, queue=512,
                        dropped={"queue_full": 188, "wait_keyframe": 787})
    fleet.change_output("store-1", "record", packets_dropped=12, dropped={"wait_keyframe": 12})  # when it started
    fleet.change_output("yard-1", "hls", lost_recently=3, code="timeout", reconnects=3)
    browser.open(daemon.url)
    browser.run("""
      await page.getByRole('heading', {name: '8 of 8 feeds are delivered, 2 need attention'}).waitFor();
      const tile = (name) => page.locator('.tile[data-level=warn]', {hasText: name});
      await tile('gate-1').filter({hasText: 'output record: 703 packets lost in the last minute, its queue is full ' +
        '(512 of 512) · Packets lost: record 963'}).waitFor();
      await tile('yard-1').filter({hasText: 'output hls: lost 3 times in the last minute (timeout)'}).waitFor();
      await page.locator('.tile[data-level=ok]', {hasText: 'store-1'}).filter({hasText: 'Nothing dropped'}).waitFor();""")
    daemon.jump("hall-1", "the source's clock jumped 2 times so far")
    browser.run("""
      await page.getByRole('heading', {name: '8 of 8 feeds are delivered, 3 need attention'}).waitFor();
      await page.locator('.tile[data-level=warn]', {hasText: "the source's clock jumped 2 times"}).waitFor();""")
    fleet.change_output("gate-1", "record", packets_lost_recently=0, queue=0)
    browser.run("""
      const tile = page.locator('.tile[data-level=ok]', {hasText: 'gate-1'});
      await tile.filter({hasText: 'Packets lost: record 963'}).waitFor();
      if (/Nothing dropped/.test(await tile.innerText())) throw new Error('packets were dropped');""")
    browser.check()


def test_an_encode_that_makes_larger_pictures_and_what_a_rate_leaves_out_are_told(browser, mock):
    daemon = mock()
    [live, main] = daemon.fleet.feeds["lobby-1"]["encodes"]
    daemon.fleet.change("lobby-1", size="320x240", encodes=[
        {**live, "size": "3840x2160", "dropped": {"rate": 900, "ring_full": 7}}, main], dropped={"rate": 900})
    browser.open(daemon.url)
    browser.run("""
      const tile = page.locator('.tile[data-level=ok]', {hasText: 'lobby-1'});
      await tile.filter({hasText: '320×240 → 3840×2160'}).filter({hasText: 'Nothing dropped'}).waitFor();
      await tile.getByRole('link').click();
      await page.locator('tr', {hasText: '3840×2160'}).getByRole('cell', {name: '900', exact: true}).waitFor();
      await page.locator('tr', {hasText: '3840×2160'}).getByRole('cell', {name: '7', exact: true}).waitFor();
      await page.locator('tr', {hasText: '3840×2160'}).getByRole('cell', {name: 'ring full 7', exact: true}).waitFor();""")
    browser.check()


def test_a_dead_camera_is_dead_since_it_was_lost_and_its_outputs_wait(browser, mock):
    daemon = mock()
    daemon.fail("hall-1", "no data for 10 s")
    lost = daemon.fleet.incidents[-1]
    lost.update(retries=1, begin=stamp(parse(lost["begin"]) - 7200))  # the state begins with the latest try
    browser.open(daemon.url)
    browser.run("""
      const tile = page.locator('.tile[data-level=bad]', {hasText: 'hall-1'});
      await tile.filter({hasText: 'timeout: no data'}).filter({hasText: /for 2 h/}).filter({hasText: /Outputs\\s*waiting/})
        .waitFor();
      await page.locator('.incidents li', {hasText: '1 retry'}).waitFor();
      await tile.getByRole('link').click();
      await page.getByRole('cell', {name: 'waiting'}).first().waitFor();""")
    browser.check()


def open_before_its_list(browser, daemon):
    """Opens the page, which asks for its incidents and gets no answer before the event that is returned is set."""
    answer = daemon.held["/api/v1/incidents"] = threading.Event()
    browser.open(daemon.url)
    wait_until(lambda: any(path.startswith("/api/v1/incidents") for _, path in daemon.requests), "the list asked for")
    return answer


def test_the_news_is_not_overwritten_by_an_older_answer(browser, mock):
    daemon = mock()
    daemon.fail("hall-1", "no data for 10 s")
    answer = open_before_its_list(browser, daemon)
    browser.run("await page.locator('.tile[data-level=bad]').waitFor()")
    daemon.recover("hall-1")
    daemon.jump("gate-1", "the source's clock jumped 2 times so far")  # the answer does not have it
    browser.run("await page.locator('.incidents li', {hasText: 'lost: no data'}).waitFor()")
    answer.set()
    browser.run("await page.locator('.incidents li', {hasText: 'framelane 0.9.0 has started'}).waitFor()")
    [lasts] = browser.run("return page.locator('.incidents li[data-lasts]').allInnerTexts()")
    assert "clock jumped 2 times" in lasts
    assert browser.run("return page.locator('.incidents li', {hasText: 'lost: no data'}).count()") == 1


def test_what_happens_before_the_stream_opens_is_not_missed(browser, mock):
    daemon = mock()
    opens = daemon.held["/api/v1/events"] = threading.Event()
    browser.open(daemon.url)
    wait_until(lambda: ("GET", "/api/v1/events") in daemon.requests, "the stream asked for")
    browser.run("await page.evaluate(() => fetch('/api/v1/incidents?since=0').then((answer) => answer.text()))")
    daemon.fail("hall-1", "no data for 10 s")
    opens.set()
    browser.run("await page.locator('.incidents li[data-lasts]', {hasText: 'lost: no data'}).waitFor()")


def cut(browser, daemon):
    """The page has no connection. What happens then is not told."""
    daemon.cut()
    browser.run("await page.locator('#connection', {hasText: 'The connection is lost'}).waitFor()")


def mend(browser, daemon):
    """The page has a connection again, and need not wait for its next try."""
    daemon.mend()
    browser.run("await page.evaluate(() => window.dispatchEvent(new Event('online')));"
                "await page.locator('#connection', {hasText: 'Live'}).waitFor()")


def test_an_incident_that_ended_while_the_viewer_slept_for_days_lasts_no_more(browser, mock):
    daemon = mock()
    daemon.jump("gate-1", "the source's clock jumped 2 times so far")
    [*_, old, jump] = daemon.fleet.incidents
    old.update(text="read again three days ago", begin=stamp(parse(old["begin"]) - 3 * 86400),
               end=stamp(parse(old["end"]) - 3 * 86400))
    jump["begin"] = stamp(parse(jump["begin"]) - 3 * 86400)
    browser.open(daemon.url)
    browser.run("""
      await page.locator('.tile[data-level=warn]', {hasText: 'gate-1'}).waitFor();
      await page.locator('.incidents li[data-lasts]', {hasText: 'clock jumped 2 times'}).waitFor();
      if (await page.getByText('read again three days ago').count() > 0) throw new Error('it is older than a day');""")
    cut(browser, daemon)
    jump.update(end=stamp(parse(jump["begin"]) + 86400))
    mend(browser, daemon)
    browser.run("""
      await page.locator('.tile[data-level=ok]', {hasText: 'gate-1'}).waitFor();
      await page.locator('.incidents li', {hasText: 'clock jumped 2 times'}).waitFor({state: 'detached'});
      await page.getByRole('button', {name: 'Show older'}).click();
      await page.getByText('read again three days ago').waitFor();""")
    # Who has asked for older ones keeps them.
    cut(browser, daemon)
    daemon.fleet.repeat(daemon.fleet.incidents[0], 1)
    mend(browser, daemon)
    browser.run("await page.locator('.incidents li', {hasText: 'framelane 0.9.0 has started'}).nth(1).waitFor()")
    assert browser.run("return page.getByText('read again three days ago').count()") == 1
    browser.check()


def test_a_daemon_that_begins_anew_has_other_incidents_and_curves_that_go_on(browser, mock):
    daemon = mock()
    daemon.fail("hall-1", "no data for 10 s")
    late = open_before_its_list(browser, daemon)
    daemon.jump("gate-1", "the source's clock jumped 2 times so far")
    browser.run("await page.locator('.incidents li[data-lasts]', {hasText: 'clock jumped 2 times'}).waitFor()")
    cut(browser, daemon)
    daemon.fleet = Fleet(8, uptime=0)
    daemon.fleet.interval = 0.6
    del daemon.held["/api/v1/incidents"]
    mend(browser, daemon)
    browser.run("""
      await page.locator('.incidents li[data-lasts]').waitFor({state: 'detached'});
      await page.locator('.tile[data-level=ok]', {hasText: 'gate-1'}).waitFor();""")
    # The answer to the first question comes now, and is not believed.
    late.set()
    browser.run("""
      await page.waitForFunction(() => performance.getEntriesByType('resource')
        .filter(({name}) => name.includes('/api/v1/incidents')).length > 1);""" + CURVE_MOVES)
    assert browser.run("return page.locator('.incidents li[data-lasts]').count()") == 0
    browser.check()


def test_of_too_many_incidents_the_one_that_lasts_stays(browser, mock):
    daemon = mock()
    over = daemon.fleet.incidents[-1]
    daemon.fleet.incidents.clear()
    daemon.fail("hall-1", "no data for 10 s")
    daemon.fleet.repeat(over, 999)
    browser.open(daemon.url)
    lost = "await page.locator('.incidents li[data-lasts]', {hasText: 'lost: no data for 10 s'}).waitFor();"
    browser.run(lost)
    daemon.jump("gate-1", "the source's clock jumped 2 times so far")
    browser.run("await page.locator('.incidents li[data-lasts]', {hasText: 'clock jumped 2 times'}).waitFor()")
    browser.run(lost)


def test_a_viewer_whose_clock_is_days_ahead_sees_what_happened(browser, mock):
    daemon = mock()
    browser.open("about:blank")
    browser.run("await page.addInitScript(() => { const now = Date.now; Date.now = () => now() + 3 * 86400e3; });"
                "await page.goto(url);"
                "await page.locator('.incidents li', {hasText: 'framelane 0.9.0 has started'}).waitFor()", url=daemon.url)
    browser.check()


def set_clock_back(browser, daemon):
    """The server's clock, by an hour: the page has seen it when this returns."""
    daemon.fleet.clock_error = -3600
    browser.run("await page.getByText(/for 1 d 1 h/).first().waitFor()")


def test_a_server_whose_clock_is_set_back_holds_up_no_curve_and_no_feed_that_is_well_again(browser, mock):
    daemon = mock()
    daemon.fleet.interval = 0.6
    browser.open(daemon.url)
    troubled = "const troubled = page.locator('section', {hasText: 'Needs attention'}).locator('.tile');"
    browser.run("await page.locator('.tile').first().waitFor()")
    daemon.fail("hall-1", "no data for 10 s")
    browser.run(troubled + "await troubled.waitFor()")
    daemon.recover("hall-1")
    set_clock_back(browser, daemon)
    browser.run(CURVE_MOVES)
    browser.run(PASS, seconds=11)
    browser.run(troubled + "await troubled.waitFor({state: 'hidden'})")
    browser.check()


def test_a_server_whose_clock_is_set_back_lists_its_recordings_again(browser, mock):
    daemon = mock()
    browser.open(daemon.url + "/#/feeds/lobby-1")
    browser.run("await page.locator('.recordings').waitFor()")
    set_clock_back(browser, daemon)
    browser.run(PASS, seconds=61)
    wait_until(lambda: len(recordings_asked_for(daemon, "lobby-1")) > 1, "the list asked for again")
    [first, *_, last] = (parse(asked["to"][0]) for asked in recordings_asked_for(daemon, "lobby-1"))
    assert last < first
    browser.check()


def test_a_play_button_is_there_as_long_as_its_output_can_be_played(browser, mock):
    daemon = mock()
    [hls, record] = daemon.fleet.feeds["gate-1"]["outputs"]
    browser.open(daemon.url + "/#/feeds/gate-1")
    browser.run("await page.locator('tr', {hasText: 'hls'}).getByRole('button').focus()")
    daemon.fleet.change("gate-1", outputs=[{**hls, "playlist": None}, {**record, "playlist": "record.m3u8"}])
    browser.run("""
      await page.locator('tr', {hasText: 'hls'}).getByRole('button').waitFor({state: 'detached'});
      if (await page.evaluate(() => document.activeElement.getAttribute('aria-label')) !== 'Outputs') {
        throw new Error('the focus has left the table');
      }
      await page.locator('tr', {hasText: 'record'}).getByRole('button').click();
      await page.getByLabel('Output record of gate-1').waitFor();""")
    wait_until(lambda: ("GET", "/api/v1/feeds/gate-1/hls/record.m3u8") in daemon.requests, "its playlist")
    assert not [path for _, path in daemon.requests if path.endswith("/hls/index.m3u8")]


def test_names_and_reasons_from_cameras_stay_text(browser, mock):
    daemon = mock()
    daemon.fail(HOSTILE, HOSTILE_REASON, state="failed")
    browser.open(daemon.url)
    shown = browser.run("const tile = page.locator('.tile', {hasText: name}); await tile.waitFor();"
                        "return tile.innerText()", name=HOSTILE)
    assert HOSTILE_REASON in shown
    browser.run("""
      await page.locator('.tile', {hasText: name}).getByRole('link').click();
      await page.getByRole('heading', {name, level: 1}).waitFor();
      await page.getByText('Configuration').click();
      await page.locator('pre', {hasText: 'viewer:***@'}).waitFor();
      await page.getByRole('slider', {name}).press('ArrowLeft');
      await page.locator('.files', {hasText: file}).waitFor();""", name=HOSTILE, file=HOSTILE_FILE)
    assert browser.run("return page.locator('.files a').first().getAttribute('href')") == \
        f"/api/v1/feeds/{quote(HOSTILE, safe='')}/recordings/{quote(HOSTILE, safe='')}/{quote(HOSTILE_FILE)}"
    assert browser.run("return page.getByRole('link', {name: 'Download the minute'}).getAttribute('href')").startswith(
        f"/api/v1/feeds/{quote(HOSTILE, safe='')}/recordings/{quote(HOSTILE, safe='')}.mp4?from=")
    browser.run("await page.locator('.day').hover(); await page.locator('.hover').waitFor()")
    assert browser.run("return page.evaluate(() => window.hostile ?? null)") is None
    assert browser.run("return page.locator('#view script, #view img[src=x]').count()") == 0
    browser.check()


def test_the_timeline_of_the_lanes_moves(browser, mock):
    daemon = mock()
    browser.open(daemon.url)
    browser.run("""
      const canvas = page.locator('.device').first().locator('.lanes canvas');
      await canvas.waitFor();
      const read = () => canvas.evaluate((c) => [...c.getContext('2d').getImageData(0, 0, 100, c.height).data].join());
      const first = await read();
      while (await read() === first) await page.waitForTimeout(20);
      if (!/[1-9]/.test(first)) throw new Error('nothing is drawn');""")
    browser.check()


def test_a_device_says_who_uses_its_busiest_engine(browser, mock):
    daemon = mock(feeds=4)
    gate, yard, hostile, _ = daemon.fleet.feeds  # the last one is on the CPU
    daemon.fleet.change(gate, engines={"h2d": 0.02, "kernel": 0.9, "d2h": 0.0})
    daemon.fleet.change(yard, engines={"h2d": 0.6, "kernel": 0.01, "d2h": 0.0})
    daemon.fleet.change(hostile, engines={"h2d": 0.0, "kernel": 0.01, "d2h": 0.0})
    browser.open(daemon.url)
    gpu, cpu = ("page.locator('.device').nth(0)", "page.locator('.device').nth(1)")
    browser.run(f"await {gpu}.getByText('h2d: {yard} 60 %, {gate} 2 %', {{exact: true}}).waitFor()")
    assert browser.run(f"return {cpu}.locator('.users').count()") == 0
    full = f"return {gpu}.locator('[data-engine=h2d] .full').count()"
    assert browser.run(full) == 0
    daemon.fleet.h2d = 1.1
    browser.run(f"await {gpu}.locator('[data-engine=h2d] .full').getByText('100 %').waitFor()")
    browser.check()


def test_an_update_writes_only_what_has_changed(browser, mock):
    daemon = mock(feeds=64, tick=0.5)
    daemon.moves = False
    browser.open(daemon.url)
    browser.run("await page.locator('.tile').nth(63).waitFor(); await page.locator('.incidents li').first().waitFor()")
    changed = browser.run("""return page.evaluate(() => new Promise((resolve) => {
      const seen = [];
      const observer = new MutationObserver((records) => seen.push(...records
        .filter(({target}) => target.className !== 'thumbnail')  // the first picture comes
        .map(({target, type}) => `${type} ${target.parentElement?.className} ${target.className ?? target.data}`)));
      observer.observe(document.querySelector('#view'), {subtree: true, childList: true, characterData: true});
      setTimeout(() => resolve(seen), 1200);
    }))""")
    assert changed == []


def test_a_lost_connection_is_said_and_mends_by_itself(browser, mock):
    daemon = mock()
    browser.open(daemon.url)
    browser.run("await page.locator('#connection', {hasText: 'Live'}).waitFor()")
    daemon.cut()
    text = browser.run("const line = page.locator('#connection', {hasText: 'The connection is lost'});"
                       "await line.waitFor(); return line.innerText()")
    assert re.search(r"The last news is from \d\d:\d\d:\d\d\.", text)
    assert browser.run("return page.locator('#view').evaluate((v) => getComputedStyle(v).filter)") != "none"
    daemon.mend()
    browser.run("await page.locator('#connection', {hasText: 'Live'}).waitFor()")


def test_axe_finds_nothing_in_dark_and_light_and_a_phone_need_not_scroll_sideways(browser, mock):
    daemon = mock(feeds=4, tick=1)
    daemon.fail("lobby-1", "rtsp://…@camera-with-a-long-name.example.org:8554/a/long/path: no data for 10 s")
    daemon.fleet.change("yard-1", dropped_recently=4, dropped={"ring_full": 4}, bottleneck="encode")
    for place, ready in (("/", ".tile[data-level=warn]"), ("/#/feeds/lobby-1", ".feed[data-level=bad] .day[data-active]")):
        browser.open(daemon.url + place, scheme="dark")
        browser.run("await page.locator(ready).first().waitFor();"
                    "await page.locator('.incidents li').first().waitFor()", ready=ready)
        assert browser.run(AXE) == []
        browser.run("await page.emulateMedia({colorScheme: 'light'}); await page.setViewportSize({width: 360, height: 800})")
        assert browser.run(AXE) == []
        assert browser.run("return page.evaluate(() => document.documentElement.scrollWidth)") == 360
    browser.check()


def test_the_keyboard_reaches_a_feed_and_its_restart_and_a_reading_token_is_told(browser, mock):
    daemon = mock()
    daemon.may_control = False
    browser.open(daemon.url)
    browser.run("""
      await page.locator('.tile').first().waitFor();
      const focused = () => page.evaluate(() => document.activeElement.textContent);
      for (let i = 0; await focused() !== 'gate-1'; ++i) {
        if (i > 30) throw new Error('the keyboard does not reach the feed');
        await page.keyboard.press('Tab');
      }
      await page.keyboard.press('Enter');
      await page.getByRole('heading', {name: 'gate-1', level: 1}).waitFor();
      while (await focused() !== 'Restart') await page.keyboard.press('Tab');
      await page.keyboard.press('Enter');
      await page.getByText('this needs a token with the controlling role').waitFor();""")
    assert ("POST", "/api/v1/feeds/gate-1/restart") in daemon.requests
    daemon.may_control = True
    browser.run("await page.getByRole('button', {name: 'Restart'}).click();"
                "await page.getByText('The feed restarts.').waitFor()")
    assert browser.run("return page.getByRole('link', {name: 'Last 10 s'}).getAttribute('href')") == \
        "/api/v1/trace?seconds=10&feed=gate-1"
    browser.check()


def test_the_player_is_loaded_when_it_opens_again_if_that_fails_and_plays(browser, mock, clip, tmp_path):
    media.ffmpeg("-stream_loop", "2", "-i", clip, "-vf", "scale=320:240", "-c:v", "libx264", "-preset", "ultrafast",
                 "-g", "10", "-hls_time", "1", "-hls_list_size", "0", "-hls_playlist_type", "vod",
                 tmp_path / "index.m3u8")
    daemon = mock()
    daemon.media = tmp_path
    browser.open(daemon.url + "/#/feeds/gate-1")
    browser.run("await page.getByRole('button', {name: 'Play', exact: true}).waitFor()")
    library = "/web/hls.light.min.mjs"
    assert ("GET", library) not in daemon.requests
    browser.run("""
      const play = page.getByRole('button', {name: 'Play', exact: true});
      await page.route('**/hls.light.min.mjs*', (route) => route.abort(), {times: 1});
      await play.click();
      await page.getByText('The player could not be loaded from the daemon. Press Play beside the output to try again.').waitFor();
      await page.route('**/index.m3u8*', (route) => route.fulfill({body: 'no playlist'}), {times: 1});
      await play.click();
      await page.getByText('The player has stopped (manifestParsingError). Press Play beside the output to try again.').waitFor();
      await play.click();
      await page.waitForFunction(() => document.querySelector('video')?.currentTime > 0.3);""")
    assert ("GET", library) in daemon.requests
    browser.run("await page.getByRole('button', {name: 'Close the player'}).click();"
                "await page.locator('video').waitFor({state: 'detached'});"
                "await page.locator('.picture img').waitFor()")
    browser.check()


def recordings_asked_for(daemon, name):
    """The queries of the requests for the feed's list of recordings."""
    return [parse_qs(urlsplit(path).query) for _, path in daemon.requests
            if path.startswith(f"/api/v1/feeds/{name}/recordings?")]


def test_a_click_into_the_day_plays_its_minute_and_then_the_next_one(browser, mock):
    daemon = mock()
    browser.open(daemon.url + "/#/feeds/lobby-1")
    browser.run("await page.locator('.recordings', {hasText: 'recorded, a gap of 4 min 12 s'}).waitFor()")
    [asked] = recordings_asked_for(daemon, "lobby-1")
    begin, end = parse(asked["from"][0]), parse(asked["to"][0])
    assert end - begin == 86400
    # An hour ago, and a bit.
    x, left, width = browser.run("""
      const {x: left, y, width, height} = await page.locator('.day').boundingBox();
      const x = Math.round(left + width * (22.9 / 24));
      await page.mouse.click(x, y + height / 2);
      return [x, left, width];""")
    minute = (begin + 86400 * (x - left) / width) // 60 * 60
    assert 3500 < end - minute < 4300
    address = "/api/v1/feeds/lobby-1/recordings/record.mp4?from={}&to={}"
    played, following = (address.format(stamp(at), stamp(at + 60)) for at in (minute, minute + 60))
    wait_until(lambda: ("GET", played) in daemon.requests, f"a request for {played}")
    browser.run("await page.getByLabel('Recording record of lobby-1').waitFor()")
    wait_until(lambda: ("GET", following) in daemon.requests, f"a request for {following}")
    browser.run("await page.getByRole('button', {name: 'Close the player'}).click();"
                "await page.locator('video').waitFor({state: 'detached'})")
    browser.check()


def test_the_keyboard_finds_a_gap_in_the_day_and_plays_beside_it(browser, mock):
    daemon = mock()
    [lost] = [i for i in daemon.fleet.incidents if i["kind"] == "source_lost"]
    browser.open(daemon.url + "/#/feeds/lobby-1")
    browser.run("""
      await page.locator('.marks [data-severity=error][d^=M]').waitFor({state: 'attached'});
      const day = page.getByRole('slider', {name: 'Minute of record'});
      const value = () => day.getAttribute('aria-valuetext');
      await day.focus();
      for (let i = 0; i < 3; ++i) await page.keyboard.press('PageDown');
      if (!/^\\d\\d:\\d\\d, recorded/.test(await value())) throw new Error(await value());
      const gap = /nothing recorded, a gap of 4 min 12 s from .*, source lost: no data for 4 min/;
      for (let i = 0; !gap.test(await value()); ++i) {
        if (i > 60) throw new Error('there is no gap');
        await page.keyboard.press('ArrowLeft');
      }
      await page.getByText('nothing recorded, a gap of 4 min 12 s').waitFor();
      await page.keyboard.press('Enter');
      if (await page.locator('video').count() > 0) throw new Error('plays nothing');
      const play = page.getByRole('button', {name: 'Play the minute'});
      if (await play.isEnabled()) throw new Error('would play nothing');
      for (let i = 0; !/s of it recorded, a gap/.test(await value()); ++i) await page.keyboard.press('ArrowLeft');
      await page.keyboard.press('Enter');
      await page.waitForFunction(() => document.querySelector('video')?.currentTime > 0.1);""")
    [played] = {path for _, path in daemon.requests if "/recordings/" in path and lost["begin"][:16] in path.split("&")[0]}
    assert played.startswith("/api/v1/feeds/lobby-1/recordings/record.mp4?from=")
    browser.run("await page.getByRole('slider').focus(); await page.keyboard.press('Home');"
                "await page.locator('.minute', {hasText: /: nothing recorded$/}).waitFor()")
    browser.check()


def test_a_list_of_recordings_that_comes_late_holds_up_nothing_and_is_asked_for_once(browser, mock):
    daemon = mock()
    answer = daemon.held["/api/v1/feeds/lobby-1/recordings"] = threading.Event()
    browser.open(daemon.url + "/#/feeds/lobby-1")
    browser.run("await page.locator('.charts').waitFor()")
    assert browser.run("return page.locator('.recordings').isVisible()") is False
    answer.set()
    browser.run("await page.locator('.recordings').waitFor()")
    browser.run("const rate = page.locator('.facts dd').first(); const text = await rate.innerText();"
                "while (await rate.innerText() === text) await page.waitForTimeout(20)")  # it is drawn again
    assert len(recordings_asked_for(daemon, "lobby-1")) == 1


def test_a_feed_that_records_nothing_has_no_day(browser, mock):
    daemon = mock()
    browser.open(daemon.url + "/#/feeds/yard-1")
    browser.run("await page.locator('.charts').waitFor()")
    wait_until(lambda: recordings_asked_for(daemon, "yard-1"), "the list asked for")
    assert browser.run("return page.locator('.recordings').isVisible()") is False


def test_why_recordings_cannot_be_listed_is_said(browser, mock):
    daemon = mock()
    daemon.refused = (503, "disk_slow", "/srv/rec does not answer")
    browser.open(daemon.url + "/#/feeds/lobby-1")
    browser.run("await page.locator('.recordings', {hasText: 'Not listed now: /srv/rec does not answer'}).waitFor()")
    assert browser.run("return page.getByRole('slider').count()") == 0


def test_the_daemon_itself_shows_its_feeds_and_a_camera_that_goes_and_comes_back(browser, framelane, camera, clip,
                                                                                tmp_path):
    source = camera()
    hls = {"url": str(tmp_path / "hls" / "index.m3u8"), "options": {"hls_time": 1}}
    daemon = framelane({"feeds": {
        "gate": {"input": looped(clip), "encodes": {"live": {**x264(), "convert": {"size": "320x240"}}},
                 "outputs": {"hls": hls}},
        "yard": {"input": {"url": source.url, **IMPATIENT}, "encodes": {"main": COPY}}}}, port=free_port()).wait_ready()
    browser.open(f"http://127.0.0.1:{daemon.port}/")
    browser.run("""
      await page.getByRole('heading', {name: '2 of 2 feeds are delivered'}).waitFor();
      await page.locator('.tile', {hasText: 'gate'}).locator('.thumbnail img').waitFor();
      const lanes = page.locator('.device').first().locator('.lanes canvas');
      const read = () => lanes.evaluate((c) => [...c.getContext('2d').getImageData(0, 0, 100, c.height).data].join());
      const first = await read();
      while (await read() === first) await page.waitForTimeout(50);""")
    source.kill()
    browser.run("""
      await page.getByRole('heading', {name: '1 of 2 feeds are delivered'}).waitFor();
      await page.locator('.tile[data-level=bad]', {hasText: 'yard'}).waitFor();
      await page.locator('.incidents li[data-lasts]', {hasText: 'yard'}).waitFor();""")
    source.start()
    browser.run("""
      await page.getByRole('heading', {name: '2 of 2 feeds are delivered'}).waitFor();
      await page.locator('.incidents li:not([data-lasts])', {hasText: 'yard'}).first().waitFor();
      await page.locator('.tile', {hasText: 'gate'}).getByRole('link').first().click();
      await page.getByRole('heading', {name: 'gate', level: 1}).waitFor();
      await page.getByText('Configuration').click();
      await page.locator('pre', {hasText: 'hls_time'}).waitFor();
      await page.getByRole('button', {name: 'Play', exact: true}).click();
      await page.locator('video').waitFor();
      while (await page.locator('video').evaluate((v) => v.currentTime) < 0.5) await page.waitForTimeout(50);""")
    browser.check()


def test_a_minute_of_what_the_daemon_itself_has_recorded_plays(browser, framelane, clip, tmp_path):
    record = {"url": str(tmp_path / "recordings" / "%Y-%m-%d" / "%H%M%S.mp4"), "segment": "2s"}
    daemon = framelane(one_feed(looped(clip), COPY, {"record": record, "null": {"url": "null:"}}),
                       port=free_port()).wait_ready()
    wait_until(lambda: len(list(tmp_path.glob("recordings/*/*.mp4"))) > 2, "recordings")
    browser.open(f"http://127.0.0.1:{daemon.port}/#/feeds/cam")
    browser.run("""
      const day = page.getByRole('slider', {name: 'Minute of record'});
      await day.focus();
      while (/nothing recorded/.test(await day.getAttribute('aria-valuetext'))) await page.keyboard.press('ArrowLeft');
      await page.locator('.files a').first().waitFor();
      await page.keyboard.press('Enter');
      await page.waitForFunction(() => document.querySelector('video')?.currentTime > 1);""")
    assert browser.run("return page.getByRole('slider').count()") == 1
    whole, part = browser.run("""
      const size = async (link) => {
        const answer = await page.request.get(new URL(await link.getAttribute('href'), page.url()).href);
        if (!answer.ok()) throw new Error(await answer.text());
        return (await answer.body()).length;
      };
      const minute = page.getByRole('link', {name: 'Download the minute'});
      return [await size(page.locator('.files a').first()), await size(minute)];""")
    assert whole > 1000 and part > 1000
    browser.check()
