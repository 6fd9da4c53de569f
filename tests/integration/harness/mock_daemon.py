# Longer than 400 lines: one command that stands in for the whole listener.
"""A stand-in for the daemon's admin listener, with a fleet of made-up feeds, for working on the status page and for
testing what no real camera does when it is asked to.

    /usr/bin/python3 tests/integration/harness/mock_daemon.py [--port 8080] [--feeds 64]

Then open http://127.0.0.1:8080/. Feeds fail and come back by themselves. Nothing of framelane need be built.
"""

import argparse
import datetime
import functools
import http.server
import itertools
import json
import math
import pathlib
import random
import re
import subprocess
import sys
import tempfile
import threading
import time
import urllib.parse

ROOT = pathlib.Path(__file__).resolve().parents[3]
STREET = ROOT / "tests" / "data" / "street_h264.mp4"
HOSTILE = "<script>window.hostile=1</script>"
HOSTILE_FILE = "2026-11-28/<img src=x onerror=window.hostile=3>.mp4"
HOSTILE_REASON = 'refused by "<img src=x onerror=window.hostile=2>" & co'
TYPES = {".html": "text/html; charset=utf-8", ".js": "text/javascript", ".mjs": "text/javascript",
         ".css": "text/css", ".svg": "image/svg+xml", ".txt": "text/plain; charset=utf-8"}
# What an output shows that has no trouble.
WELL = {"queue": 0, "queue_limit": 512, "packets_dropped": 0, "dropped": {}, "packets_lost": 0, "packets_lost_recently": 0,
        "lost_recently": 0, "code": None, "reconnects": 0}
PLACES = ("gate", "yard", "dock", "lobby", "ramp", "hall", "roof", "store")


def policy():
    """The Content-Security-Policy of the real listener's pages, out of its source."""
    source = (ROOT / "daemon" / "web_pages.cpp").read_text(encoding="utf-8")
    lines = re.search(r"kPagePolicy =((?:\s*\"[^\"]*\")+);", source).group(1)
    return "".join(re.findall(r'"([^"]*)"', lines))


def stamp(seconds):
    when = datetime.datetime.fromtimestamp(seconds, datetime.timezone.utc)
    return when.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def parse(text):
    return datetime.datetime.fromisoformat(text.replace("Z", "+00:00")).timestamp()


class Fleet:
    """The feeds. Every public function may be called from any thread."""

    def __init__(self, feeds, uptime=95000):
        self._lock = threading.Lock()
        self._random = random.Random(7)
        self._began = time.time() - uptime
        self.clock_error = 0  # by how many seconds the server's clock is fast
        self.interval = 5     # seconds between two points of the histories
        self._next_incident = 1
        self.h2d = 0.62  # how busy the GPU's engine is
        self._open = {}
        names = [f"{PLACES[i % 8]}-{i // 8 + 1}" for i in range(feeds)]
        if feeds > 2:
            names[2] = HOSTILE
        self.feeds = {name: self._feed(i, name) for i, name in enumerate(names)}
        self.incidents = []
        self._past_incidents()

    def _feed(self, index, name):
        gpu = index % 4 != 3
        return {
            "name": name, "state": "running", "reason": None, "code": None, "since": stamp(self._began + 40 * index), "up": True,
            "device": "cuda:0" if gpu else "cpu", "decoder": "h264_nvdec" if gpu else "h264",
            "size": ("1920x1080", "2560x1440", "1280x720", "3840x2160")[index % 4], "bottleneck": "source",
            "engines": {"h2d": 0.004 * (index % 11), "kernel": 0.001, "d2h": 0.002} if gpu else None,
            "fps_in": 25.0, "fps_out": 25.0, "bits_in": 2e6 + 137000 * (index % 23),
            "dropped": {"ring_full": 12 * index, "stop": 2} if index % 9 == 4 else {}, "dropped_recently": 0,
            "latency": {"p50": 0.011 + 0.0004 * (index % 11), "p99": 0.04 + 0.003 * (index % 7)},
            "reconnects": index % 5, "restarts": 0, "luma": 80.0 + index,
            "encodes": [
                {"name": "live", "codec": "h264_nvenc" if gpu else "libx264", "reason": None, "size": "1280x720",
                 "fps_out": 25.0,
                 "in": 900000, "out": 899992, "dropped": {}, "in_flight": 8},
                {"name": "main", "codec": "copy", "reason": None, "fps_out": 25.0, "in": None, "out": None,
                 "dropped": {}, "in_flight": None}],
            "outputs": [
                {"name": "hls", "from": ["live"], "state": "running", "reason": None, "bits": 2.0e6,
                 "bytes": 23456789012, "playlist": "index.m3u8", **WELL},
                {"name": "record", "from": ["main"], "state": "running", "reason": None, "bits": 4.0e6,
                 "bytes": 93456789012, "playlist": None, **WELL}],
        }

    def _past_incidents(self):
        now = time.time()
        for hours, length, kind, severity, text, reason in (
                (23, 0, "started", "info", "framelane 0.9.0 has started", None),
                (3.3, 252, "source_lost", "error", "no data for 4 min 12 s (timeout)",
                 "rtsp://…@10.0.0.4/stream1: no data for 10 s"),
                (5.1, 31, "output_lost", "error", "nothing was written for 31 s (refused)",
                 "rtmp://live.example/app: Connection refused"),
                (3.0, 12, "frames_dropped", "warning", "214 frames dropped in 12 s (ring full)", None),
                (1.2, 0, "format_changed", "info", "the picture has changed from 1280x720 to 1920x1080", None),
                (0.4, 0, "reload", "info", "the configuration was read again: 2 feeds changed", None)):
            begin = now - hours * 3600
            feed = None if kind in ("started", "reload") else list(self.feeds)[int(hours) % len(self.feeds)]
            self._add({"kind": kind, "feed": feed, "encode": "live" if kind == "frames_dropped" else None,
                       "output": "push" if kind == "output_lost" else None, "device": None,
                       "code": "timeout" if kind == "source_lost" else None, "reason": reason, "text": text,
                       "begin": stamp(begin), "end": stamp(begin + length), "seconds": float(length),
                       "retries": 6 if kind == "source_lost" else 0,
                       "gap_seconds": float(length) if kind == "source_lost" else 0.0, "severity": severity})

    def _add(self, incident):
        incident = {**incident, "id": self._next_incident}
        self._next_incident += 1
        self.incidents.append(incident)
        return incident

    def repeat(self, incident, times):
        """The same happens again, so often."""
        with self._lock:
            for _ in range(times):
                self._add(incident)

    def fail(self, name, reason="no data for 10 s", state="backoff"):
        """The feed's camera is lost. Returns the incident."""
        with self._lock:
            self.feeds[name].update(state=state, reason=reason, code="timeout", up=False, fps_in=0.0, fps_out=0.0,
                                    bits_in=0.0, since=stamp(time.time()), latency=None, bottleneck=None)
            incident = self._add({"kind": "source_lost", "feed": name, "encode": None, "output": None, "device": None,
                                  "code": "timeout", "reason": reason, "text": f"lost: {reason}",
                                  "begin": stamp(time.time()), "end": None, "seconds": None, "retries": 0,
                                  "gap_seconds": 0.0, "severity": "error"})
            self._open[name] = incident
            return incident

    def jump(self, name, text):
        """The clock of the feed's camera jumps. Returns the incident, which lasts."""
        with self._lock:
            return self._add({"kind": "clock_jumped", "feed": name, "encode": None, "output": None, "device": None,
                              "code": "jump", "reason": None, "text": text, "begin": stamp(time.time()), "end": None,
                              "seconds": None, "retries": 0, "gap_seconds": None, "severity": "warning"})

    def recover(self, name):
        with self._lock:
            feed = self.feeds[name]
            feed.update(state="running", reason=None, code=None, up=True, fps_in=25.0, fps_out=25.0, bits_in=3e6,
                        since=stamp(time.time()), latency={"p50": 0.012, "p99": 0.05}, bottleneck="source",
                        reconnects=feed["reconnects"] + 1)
            incident = self._open.pop(name)
            incident.update(end=stamp(time.time()), seconds=1.0)
            return incident

    def change_output(self, name, output, **values):
        with self._lock:
            next(one for one in self.feeds[name]["outputs"] if one["name"] == output).update(values)

    def change(self, name, **values):
        with self._lock:
            self.feeds[name].update(values)

    def live(self):
        """Moves the figures on, as a second of running does."""
        with self._lock:
            for feed in self.feeds.values():
                if not feed["up"]:
                    continue
                shake = self._random.uniform(-0.4, 0.4)
                feed["fps_in"] = feed["fps_out"] = round(25 + shake, 1)
                feed["bits_in"] = round(feed["bits_in"] * (1 + shake / 20))
                feed["latency"]["p99"] = round(0.045 + shake / 50, 4)
                for encode in feed["encodes"]:
                    if encode["in"] is not None:
                        encode["in"] += 25
                        encode["out"] += 25
                feed["outputs"][0]["bytes"] += 250000

    def status(self, moment=None):
        now = time.time()
        moment = now if moment is None else moment
        with self._lock:
            feeds = list(self.feeds.values())
            return json.dumps({
                "time": stamp(now + self.clock_error), "uptime": now - self._began, "version": "0.9.0", "host": "recorder-3",
                "feeds": feeds, "recorder": {"seconds": 3600.0, "bytes": 64000000},
                "devices": [
                    {"device": "cuda:0", "name": "NVIDIA H100 80GB HBM3", "up": True,
                     "occupancy": {"h2d": min(1, self.h2d + 0.05 * math.sin(moment)), "kernel": 0.11, "d2h": 0.34},
                     "overlap": 1.41,
                     "lanes": lanes([f for f in feeds if f["device"] == "cuda:0"], 3, moment)},
                    {"device": "cpu", "name": "AMD EPYC 9354 32-Core Processor", "up": True,
                     "occupancy": {"kernel": 0.48}, "overlap": 1.0,
                     "lanes": lanes([f for f in feeds if f["device"] == "cpu"], 1, moment)}]})

    def recordings(self, name, begin, end):
        """A file a minute in the last five hours, with a gap where the camera was lost. Every third feed has none."""
        if list(self.feeds).index(name) % 3 == 1:
            return []
        lost = [(parse(i["begin"]), parse(i["end"])) for i in self.incidents
                if i["feed"] == name and i["kind"] == "source_lost" and i["end"]]
        files = []
        at = max(begin, 60 * (time.time() // 60 - 300))
        while at < end:
            until = min(at + 60, end)
            cut = next(((a, b) for a, b in lost if a < until and b > at), (until, until))
            if cut[0] > at:
                file = time.strftime("%Y-%m-%d/%H%M%S.mp4", time.gmtime(at)) if name != HOSTILE else HOSTILE_FILE
                files.append({"file": file, "begin": stamp(at), "end": stamp(min(until, cut[0])),
                              "bytes": round(5e5 * (min(until, cut[0]) - at)), "complete": until < end})
            at = max(until, cut[1])
        gaps = [{"begin": stamp(a), "end": stamp(b), "seconds": b - a} for a, b in lost if a > begin]
        return [{"output": HOSTILE if name == HOSTILE else "record", "files": files, "gaps": gaps}]

    def history(self):
        shake = self._random.uniform
        feeds = {}
        for index, name in enumerate(self.feeds):
            series = {"fps_in": [round(25 + shake(-0.6, 0.6), 1) for _ in range(120)], "dropped": [0] * 120,
                      "bits": [round(3e6 + shake(-4e5, 4e5)) for _ in range(120)]}
            series["fps_out"] = list(series["fps_in"])
            if index % 9 == 4:
                for at in range(70, 76):
                    series["dropped"][at] = at - 66
                    series["fps_out"][at] -= 6
            if index % 7 == 5:
                for part in ("fps_in", "fps_out", "bits"):
                    series[part][30:48] = [None] * 18
            feeds[name] = series
        return json.dumps({"interval": self.interval, "feeds": feeds}, separators=(",", ":"))


# By the number of lanes: what a frame occupies, in milliseconds. A GPU is shared by all feeds; CPU lanes have processors
# of their own.
OPERATIONS = {3: (("h2d", 0.52), ("kernel", 0.1), ("d2h", 0.28)), 1: (("kernel", 1.2),)}


def lanes(feeds, count, moment):
    """Frames every 40 ms, one lane after the other, as rings of `count` lanes have them."""
    made = []
    for index, feed in enumerate(feeds):
        for lane in range(count):
            rows = {key: [0.0] * 100 for key in ("h2d", "kernel", "d2h")}
            if feed["up"]:
                start = (index * 7.3 + lane * 40 + moment * 1000) % (40 * count)
                while start < 1000:
                    at = start
                    for key, length in OPERATIONS[count]:
                        book(rows[key], at, length)
                        at += length
                    start += 40 * count
            made.append({"feed": feed["name"], "lane": lane,
                         **{key: "".join(f"{math.ceil(15 * min(1, share)):x}" for share in row)
                            for key, row in rows.items() if count > 1 or key == "kernel"}})
    return made


@functools.cache
def pictures():
    """JPEGs of the street."""
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run(["ffmpeg", "-v", "error", "-nostdin", "-i", STREET, "-vf", "scale=320:180", "-q:v", "6",
                        f"{folder}/%02d.jpg"], check=True)
        return [path.read_bytes() for path in sorted(pathlib.Path(folder).glob("*.jpg"))]


@functools.cache
def recording():
    """Half a second of the street, as a fragmented MP4."""
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run(["ffmpeg", "-v", "error", "-nostdin", "-i", STREET, "-t", "0.5", "-c:v", "libx264", "-preset",
                        "ultrafast", "-movflags", "frag_keyframe+empty_moov", f"{folder}/a.mp4"], check=True)
        return pathlib.Path(f"{folder}/a.mp4").read_bytes()


def book(row, at, length):
    end = at + length
    while at < end and at < 1000:
        part = int(at // 10)
        until = min(end, 10 * (part + 1))
        row[part] += (until - at) / 10
        at = until


class MockDaemon:
    """Serves the page and the API on a free port of 127.0.0.1: `url`. `tick`: seconds between two statuses."""

    def __init__(self, feeds=64, tick=1.0, port=0):
        self.fleet = Fleet(feeds)
        self.tick = tick
        self.requests = []         # (method, path) of each
        self.may_control = True
        self.reachable = True      # if not, connections are closed without an answer
        self.moves = True          # if not, every status has the same figures
        self.media = None          # a folder with an HLS playlist, if a feed is to be played
        self.refused = None        # an error in place of every list of recordings: (status, code, message)
        self.held = {}             # path -> threading.Event: an answer waits for it, with what it is when asked for
        self._pictures = pictures()
        self.recording = recording()
        self._policy = policy()
        self._changed = threading.Condition()
        self._streams = []
        handler = type("Handler", (_Handler,), {"mock": self})
        self._server = http.server.ThreadingHTTPServer(("127.0.0.1", port), handler)
        self._server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def close(self):
        self.cut()
        self._server.shutdown()
        self._server.server_close()

    def cut(self):
        """All event streams break, and nothing is answered until mend()."""
        with self._changed:
            self.reachable = False
            self._changed.notify_all()

    def mend(self):
        self.reachable = True

    def fail(self, *arguments, **keywords):
        self._tell(self.fleet.fail(*arguments, **keywords))

    def recover(self, name):
        self._tell(self.fleet.recover(name))

    def jump(self, name, text):
        self._tell(self.fleet.jump(name, text))

    def _tell(self, incident):
        with self._changed:
            for stream in self._streams:
                stream.append(("incident", json.dumps(incident)))
            self._changed.notify_all()

    def picture(self, name):
        turn = list(self.fleet.feeds).index(name) * 5 + int(time.time())
        return self._pictures[turn % len(self._pictures)]

    def stream(self):
        """The events of one connection, as (name, data), until cut() is called."""
        mine = [("history", self.fleet.history())]
        with self._changed:
            self._streams.append(mine)
        due = 0
        try:
            while self.reachable:
                if time.monotonic() >= due:
                    due = time.monotonic() + self.tick
                    if self.moves:
                        self.fleet.live()
                    mine.append(("status", self.fleet.status(None if self.moves else 0)))
                while mine:
                    yield mine.pop(0)
                with self._changed:
                    if self.reachable and not mine:
                        self._changed.wait(max(0.001, due - time.monotonic()))
        finally:
            with self._changed:
                self._streams.remove(mine)


class _Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    mock = None

    def do_GET(self):
        self.mock.requests.append((self.command, self.path))
        if not self.mock.reachable:
            self.close_connection = True
            return
        path, _, query = self.path.partition("?")
        query = dict(urllib.parse.parse_qsl(query))
        if path == "/":
            self._file(ROOT / "web" / "index.html")
        elif path.startswith("/web/"):
            self._file(next((folder / path[5:] for folder in (ROOT / "web", ROOT / "build" / "tools" / "web")
                             if (folder / path[5:]).is_file()), None))
        elif path == "/api/v1/events":
            self._events()
        elif path == "/api/v1/incidents":
            found = json.dumps({"incidents": [
                i for i in self.mock.fleet.incidents if query.get("feed", i["feed"]) == i["feed"]
                and (i["end"] is None or parse(i["end"]) >= float(query.get("since", 0)))]})
            self._wait(path)
            self._answer(200, "application/json", found.encode())
        elif path.startswith("/api/v1/trace"):
            self._json(200, {"traceEvents": []})
        elif match := re.fullmatch("/api/v1/feeds/([^/]+)/(.+)", path):
            self._feed(urllib.parse.unquote(match[1]), match[2], query)
        else:
            self._error(404, "not_found", f"there is nothing at {path}")

    do_HEAD = do_GET

    def do_POST(self):
        self.mock.requests.append((self.command, self.path))
        if "x-framelane-request" not in self.headers:
            self._error(403, "header_required", "send the header X-Framelane-Request: 1")
        elif not self.mock.may_control:
            self._error(403, "not_allowed", "this token may only read")
        else:
            self._json(202, {"restarting": True})

    def _feed(self, name, what, query):
        feed = self.mock.fleet.feeds.get(name)
        if feed is None:
            self._error(404, "no_such_feed", f"no feed is named '{name}'")
        elif what == "snapshot.jpg":
            if feed["up"]:
                self._answer(200, "image/jpeg", self.mock.picture(name))
            else:
                self._error(503, "no_frame", "there is no picture")
        elif what == "config":
            self._json(200, {"input": {"url": "rtsp://viewer:***@10.0.0.4/stream1"},
                             "encodes": {"live": {"video": {"codec": "libx264", "bitrate": "2M"}}}})
        elif what == "recordings" and self.mock.refused:
            self._error(*self.mock.refused)
        elif what == "recordings":
            self._wait(self.path.partition("?")[0])
            self._json(200, {"from": query["from"], "to": query["to"], "outputs": self.mock.fleet.recordings(
                name, parse(query["from"]), parse(query["to"]))})
        elif what.startswith("recordings/"):
            self._answer(200, "video/mp4", self.mock.recording)
        elif what.startswith("hls/") and self.mock.media and (self.mock.media / what[4:]).is_file():
            kind = "application/vnd.apple.mpegurl" if what.endswith(".m3u8") else "video/mp2t"
            self._answer(200, kind, (self.mock.media / what[4:]).read_bytes())
        else:
            self._error(404, "not_found", f"there is nothing at {self.path}")

    def _wait(self, path):
        if path in self.mock.held:
            self.mock.held[path].wait(60)

    def _events(self):
        self._wait("/api/v1/events")
        events = self.mock.stream()
        history = next(events)  # from here on incidents are told
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Cache-Control", "no-store")
        self.send_header("Connection", "close")
        self.end_headers()
        try:
            for name, data in itertools.chain([history], events):
                self.wfile.write(f"event: {name}\ndata: {data}\n\n".encode())
                self.wfile.flush()
        except OSError:
            pass
        self.close_connection = True

    def _file(self, path):
        if path is None:
            return self._error(404, "not_found", f"there is nothing at {self.path}")
        return self._answer(200, TYPES[path.suffix], path.read_bytes(), page=True)

    def _json(self, status, value):
        self._answer(status, "application/json", json.dumps(value).encode())

    def _error(self, status, code, message):
        self._json(status, {"error": {"code": code, "message": message, "key": None}})

    def _answer(self, status, kind, body, page=False):
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.send_header("Cache-Control", "no-cache" if page else "no-store")
        self.send_header("Content-Security-Policy",
                         self.mock._policy if page else "default-src 'none'; frame-ancestors 'none'")
        self.send_header("X-Content-Type-Options", "nosniff")
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def log_message(self, *_):
        pass


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--port", type=int, default=8080)
    parser.add_argument("--feeds", type=int, default=64)
    options = parser.parse_args()
    mock = MockDaemon(options.feeds, port=options.port)
    print(mock.url, flush=True)
    names = list(mock.fleet.feeds)
    chance = random.Random()
    mock.fail(names[5 % len(names)], "rtsp://…@10.0.0.4/stream1: no data for 10 s")
    while True:
        time.sleep(15)
        name = chance.choice(names)
        if mock.fleet.feeds[name]["up"]:
            mock.fail(name, "rtsp://…@10.0.0.7/stream1: Connection refused")
            time.sleep(8)
            mock.recover(name)


if __name__ == "__main__":
    sys.exit(main())
