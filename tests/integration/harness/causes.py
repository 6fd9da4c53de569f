"""What goes wrong at a site with cameras, each in the way that operators meet it. The table "What it looks like"
in docs/operations.md says how each is recognised; test_causes.py holds the program to it, and
scripts/plant-cause plants one for somebody who is to find it."""

import socket
import subprocess
import threading

from harness import media
from harness.camera import Camera, free_port
from harness.configs import COPY, encoder, looped, x264
from harness.preload import preload

FEEDS = ["gate", "yard", "hall", "dock", "roof", "shop"]


class Peer:
    """Reads what an output sends, until it freezes: then its connections stay, but nothing is read."""

    def __init__(self):
        self._frozen = threading.Event()
        self._listener = socket.socket()
        self._listener.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        self._listener.bind(("127.0.0.1", 0))
        self._listener.listen()
        self.url = f"tcp://127.0.0.1:{self._listener.getsockname()[1]}"
        self._held = []
        threading.Thread(target=self._run, daemon=True).start()

    def _run(self):
        while True:
            try:
                connection = self._listener.accept()[0]
            except OSError:
                return
            self._held.append(connection)
            threading.Thread(target=self._read, args=(connection,), daemon=True).start()

    def _read(self, connection):
        try:
            while not self._frozen.is_set() and connection.recv(65536):
                pass
        except OSError:
            pass

    def freeze(self):
        self._frozen.set()

    def close(self):
        self._listener.close()
        for connection in self._held:
            connection.close()


class JumpingCamera:
    """Its clock goes wrong: every `period` seconds it jumps by an hour. It sends for 15 minutes."""

    def __init__(self, folder, clip, period):
        # ffmpeg's bitstream filters do not survive that its input begins again: a long file does not.
        long = folder / "jumping.mov"
        media.ffmpeg("-stream_loop", "-1", "-i", clip, "-t", 900, "-an", "-c", "copy", long)
        port = free_port()
        self.url = f"tcp://127.0.0.1:{port}"
        jump = f"setts=ts=TS+floor(TS/{period * 90000})*{3600 * 90000}"  # MPEG-TS counts in 1/90000 s
        self._process = subprocess.Popen(
            ["ffmpeg", "-nostdin", "-v", "quiet", "-re", "-i", long, "-c", "copy", "-bsf:v", jump, "-f", "mpegts",
             f"{self.url}?listen=1"])

    def close(self):
        self._process.kill()
        self._process.wait()


class Site:
    """Cameras with a recording and a live playlist each, and what goes wrong there. `causes`: {feed: cause}, of
    CAUSES. What can go wrong at any time does so with plant(), the rest from the beginning."""

    def __init__(self, folder, clip, causes):
        self.causes = causes
        self._clip = clip
        self._folder = folder
        self._parts = {}
        self.environment = {}
        self.feeds = {name: self._feed(name) for name in FEEDS}
        for feed, cause in causes.items():
            getattr(self, f"_{cause}")(feed, self.feeds[feed])

    def _feed(self, name):
        record = {"from": "main", "url": str(self._folder / "recordings" / name / "%s.ts"), "segment": "1m"}
        live = {"from": "live", "url": str(self._folder / "live" / name / "index.m3u8")}
        return {"input": {**looped(self._clip), "timeout": "3s"}, "encodes": {"main": COPY, "live": x264()},
                "outputs": {"record": record, "live": live}}

    def config(self):
        return {"feeds": self.feeds}

    def plant(self):
        for cause, part in self._parts.items():
            {"camera_stopped": lambda p: p.freeze(), "slow": lambda p: p.touch(),
             "frozen_peer": lambda p: p.freeze()}.get(cause, lambda p: None)(part)

    def close(self):
        for part in self._parts.values():
            if isinstance(part, Camera):
                part.kill()
            elif hasattr(part, "close"):
                part.close()

    def _slow(self):
        if "slow" not in self._parts:
            self.environment, self._parts["slow"] = preload(self._folder, "slow_site")
        return self.environment

    def _camera_stopped(self, _, feed):
        self._parts["camera_stopped"] = camera = Camera(self._folder, self._clip)
        feed["input"] = {"url": camera.url, "options": {"rtsp_transport": "tcp"}, "timeout": "3s"}

    def _clock_jumps(self, _, feed):
        self._parts["clock_jumps"] = camera = JumpingCamera(self._folder, self._clip, 8)
        feed["input"] = {"url": camera.url, "timeout": "3s"}

    def _slow_encoder(self, _, feed):
        # Slow without work, so that it costs the site's other cameras nothing.
        self._slow()["FRAMELANE_TEST_SLOW_WIDTH"] = "640"
        feed["encodes"]["live"]["convert"] = {"size": "640x480"}

    def _slow_disk(self, name, feed):
        feed["encodes"]["live"] = x264(qp=4)
        feed["outputs"]["record"]["from"] = "live"
        self._slow()["FRAMELANE_TEST_SLOW_FOLDER"] = str(self._folder / "recordings" / name)

    def _frozen_peer(self, _, feed):
        self._parts["frozen_peer"] = peer = Peer()
        feed["encodes"]["wall"] = encoder("mjpeg", **{"qmin": 1, "qmax": 2})
        feed["outputs"]["wall"] = {"from": "wall", "url": peer.url, "format": "matroska", "timeout": "5s"}

    def _too_large(self, _, feed):
        feed["encodes"]["live"]["convert"] = {"size": "3840x2160", "rate": 2}


CAUSES = {
    "camera_stopped": "the camera sends nothing more",
    "clock_jumps": "the camera's clock jumps",
    "slow_encoder": "an encoder is too slow",
    "slow_disk": "the disk of the recordings is slow",
    "frozen_peer": "a peer takes nothing more",
    "too_large": "an encode makes pictures of 3840x2160 where 1920x1080 was meant",
}
