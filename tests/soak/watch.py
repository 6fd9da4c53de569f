"""What must hold in every moment of the bad week, and what must hold again after each scene."""

import http.client
import json
import re
import time

from harness import clock
from harness.complaints import complaints
from harness.media_playlist import PlaylistWatch
from harness.waiting import TIME_FACTOR
from soak.clips import RAW_LUMA
from soak.site import KEEP

_NO_ANSWER = (OSError, ValueError, AssertionError, http.client.HTTPException)
RECOVERY = 25  # seconds after its cause went away
SILENCE = 6  # seconds without a frame after which a feed that says `running` does not
LINES_PER_MINUTE = 400
# Frames that a round may drop because the ring was full: a second of a camera.
RING_FULL, RING_FULL_OF_CLOCK = 12, clock.RATE
_LINE = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z (trace|debug|info |warn |error) ")
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f]")
_NEVER = ("Sanitizer", "runtime error:", "terminate called", "Assertion", "assertion failed",
          "bad_alloc", "std::", "check the values of input.options", "internal error")
MOST_SEGMENTS = 120  # of three playlists of four, with those that scenes made the daemon forget
# Growth is what a quiet daemon has more than it had in its first quiet moments.
_FIRST_MOMENTS = 10
_GROWTH = {"MiB of memory": 120, "descriptors": 12, "threads": 8}


class Watch:
    def __init__(self, site, report):
        self._site = site
        self._report = report
        self._playlists = PlaylistWatch()
        self._log = None  # the path of the log that is read, and how far
        self._read = 0
        self._lines = 0
        self._since = time.monotonic()
        self._ring_full = {}
        self._moments = []

    def look(self):
        """One look at a daemon that should answer."""
        if self._site.daemon.process.poll() is not None:
            self._report.fault("alive", f"the daemon ended with {self._site.daemon.process.poll()}")
            self._site.cut |= {path.with_suffix("") for path in self._site.part_files()}
            self._site.start()
            return
        self._look_at_log()
        if self._site.away:
            return
        try:
            self._look_at_answers()
        except _NO_ANSWER as error:
            self._report.fault("answers", f"{type(error).__name__}: {error}")
        self._look_at_playlists()

    def _look_at_answers(self):
        daemon = self._site.daemon
        status, body = daemon.request("GET", "/healthz")
        if status != 200:
            self._report.fault("healthz", f"{status} {body}")
        metrics = daemon.metrics()  # every scrape must balance
        text = daemon.request("GET", "/api/v1/feeds")[1]
        self._look_for_secrets("the API", text)
        self._look_for_secrets("the metrics", metrics.text)
        for feed in json.loads(text)["feeds"]:
            if feed["state"] == "failed":
                self._report.fault("failed", f"feed {feed['name']}, for good: {feed['reason']}")
            elif feed["state"] == "backoff" and not feed["reason"]:
                self._report.fault("reason", f"feed {feed['name']} is in backoff without a reason")
        for labels, luma in metrics.series("framelane_feed_luma_mean", feed="raw"):
            if abs(luma - RAW_LUMA) > 4:
                self._report.fault("aligned", f"the raw frames have luma {luma}, not {RAW_LUMA}")

    def _look_for_secrets(self, where, text):
        for secret in self._site.secrets:
            if secret in text:
                self._report.fault("secrets", f"{where} shows {secret!r}")

    def _look_at_log(self):
        path = self._site.daemon.log_path
        if self._log != self._site.lives:
            self._log, self._read = self._site.lives, 0
        with open(path, "rb") as log:
            log.seek(self._read)
            new = log.read()
        new = new[: new.rfind(b"\n") + 1]
        self._read += len(new)
        text = new.decode(errors="replace")
        self._look_for_secrets("the log", text)
        for line in text.split("\n")[:-1]:
            self._look_at_line(line, self._site.daemon.form)
        self._lines += 0 if self._site.daemon.level in ("trace", "debug") else text.count("\n")

    def _look_at_line(self, line, form):
        shaped = _LINE.match(line) if form == "text" else line[:2] == '{"' and line[-1] == "}"
        if not shaped and complaints(line + "\n"):
            self._report.fault("log", f"a line of its own shape: {line!r}")
        if _CONTROL.search(line):
            self._report.fault("log", f"control characters: {line!r}")
        for word in _NEVER:
            if word in line:
                self._report.fault("log", f"{word!r} in: {line}")

    def _look_at_playlists(self):
        if self._site.playlists_in_doubt:  # what follows need not continue what was there before
            self._playlists = PlaylistWatch()
            return
        for path in (*self._site.live.rglob("*.m3u8"), *self._site.small.rglob("*.m3u8")):
            try:
                self._playlists.look(path)
            except FileNotFoundError:  # a scene has removed it
                pass
            except AssertionError as error:
                self._report.fault("playlist", f"{path.parent.name}/{path.name}: {error}", path)
                self._playlists = PlaylistWatch()

    # After a scene

    def ailments(self):
        """What is not well now: a list of words; empty if all is well."""
        try:
            feeds = self._site.daemon.api("/api/v1/feeds")["feeds"]
            metrics = self._site.daemon.metrics()
        except _NO_ANSWER as error:
            return [f"the daemon does not answer: {error}"]
        found = []
        for feed in feeds:
            name = feed["name"]
            age = time.time() - metrics.one("framelane_last_frame_timestamp_seconds", feed=name)
            if feed["state"] != "running":
                found.append(f"feed {name} is {feed['state']}: {feed['reason']}")
            elif age > SILENCE:
                found.append(f"feed {name} says running, but its last frame is {age:.0f} s old")
            for output, state in feed["outputs"].items():
                if state["state"] != "running":
                    found.append(f"output {name}/{output} is {state['state']}: {state['reason']}")
                elif metrics.one("framelane_feed_bottleneck", feed=name, stage="output"):
                    found.append(f"feed {name} says that an output is its bottleneck")
        kept = sum(path.stat().st_size for path in (self._site.small / "kept").glob("*.ts"))
        if kept > KEEP * 1.5:
            found.append(f"{kept} bytes are kept, and keep is {KEEP}")
        return found

    def wait_until_well(self):
        """Every cause is gone: within RECOVERY seconds all feeds and outputs must run again."""
        end = time.monotonic() + RECOVERY * TIME_FACTOR
        while True:
            self.look()
            ailments = self.ailments()
            if not ailments:
                return True
            if time.monotonic() > end:
                for ailment in ailments:
                    self._report.fault("recovery", f"not well after {RECOVERY} s: {ailment}")
                return False
            time.sleep(0.5)

    def settle(self):
        """At the end of a round, when all is well."""
        self._look_at_drops()
        self._site.is_slow = False
        self._site.playlists_in_doubt = False
        minutes = (time.monotonic() - self._since) / 60
        if self._lines > max(LINES_PER_MINUTE * minutes, LINES_PER_MINUTE / 2):
            self._report.fault("log", f"{self._lines} lines in {minutes:.1f} minutes")
        self._lines, self._since = 0, time.monotonic()
        self._look_at_growth()

    def _look_at_drops(self):
        metrics = self._site.daemon.metrics()
        now = {"life": self._site.lives}
        for labels, value in metrics.series("framelane_frames_dropped_total", reason="ring_full"):
            now[labels["feed"], labels["encode"]] = value
        if self._ring_full.get("life") == now["life"]:
            for key in now.keys() - {"life"}:
                dropped = now[key] - self._ring_full.get(key, 0)
                most = RING_FULL_OF_CLOCK if key[0] == "clock" else RING_FULL
                if dropped > most and not self._site.is_slow:
                    self._report.fault("drops", f"{'/'.join(key)} dropped {dropped:.0f} frames as"
                                       " ring_full in one round")
        self._ring_full = now

    def _look_at_growth(self):
        now = self._site.process_numbers()
        if len(self._moments) >= _FIRST_MOMENTS:
            first = [max(values) for values in zip(*self._moments[:_FIRST_MOMENTS])]
            for what, before, value in zip(_GROWTH, first, now):
                if value > before + _GROWTH[what]:
                    self._report.fault("growth", f"{value} {what}, at first {before}")
        self._moments.append(now)
        files = sum(len(list(self._site.live.rglob(kind))) for kind in ("*.ts", "*.m4s", "*.mp4"))
        if files > MOST_SEGMENTS:
            self._report.fault("growth", f"{files} segments of live playlists")
        self._report.say(f"well: {now[0]} MiB, {now[1]} descriptors, {now[2]} threads,"
                         f" {files} segments")
