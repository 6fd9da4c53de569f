"""A camera: rtsp_server.py in its own process, so that it can be killed, frozen and restarted."""

import pathlib
import signal
import socket
import subprocess
import sys

from harness.waiting import wait_until

_SERVER = pathlib.Path(__file__).with_name("rtsp_server.py")


def free_port():
    """A port on which nobody listens. If another process takes it before the test does, which is
    rare, the test fails."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class Camera:
    """Serves `clip`, which has `video`, at rtsp://127.0.0.1:PORT/stream. `auth`: None, "basic" or "digest".
    `transport`: "tcp" or "udp", the only one it accepts; None: both. `clock`: it sends the pictures of
    harness/clock.py, each at its time, and begins with so many groups of them that are older."""

    USER = "view.er%40site"  # as in a URL; redaction could easily miss the dot or the escaped @
    PASSWORD = "s3cr3t-pa%24s"

    def __init__(self, folder, clip, video="h264", audio=None, auth=None, transport=None,
                 clock=None):
        self.port = free_port()
        self._log = folder / f"camera-{self.port}.log"
        self._clip = clip
        self._video = video
        self._audio = audio
        self._options = []
        if auth:
            self._options += ["--auth", auth, "--user", "view.er@site", "--password", "s3cr3t-pa$s"]
        if transport:
            self._options += ["--transport", transport]
        if clock is not None:
            self._options += ["--clock", str(clock)]
        self.process = None
        self.start()

    @property
    def url(self):
        return f"rtsp://127.0.0.1:{self.port}/stream"

    @property
    def url_with_login(self):
        return f"rtsp://{self.USER}:{self.PASSWORD}@127.0.0.1:{self.port}/stream"

    def start(self, clip=None, video=None, audio=None, password=None):
        """Starts it and waits until it listens. After a restart the port is the same. It plays
        `clip`, whose codecs are `video` and `audio` ("": it has none), if they are given. `password`: what it asks for
        from now on."""
        if password:
            self._options += ["--password", password]
        command = [sys.executable, str(_SERVER), str(self.port), str(clip or self._clip),
                   "--video", video or self._video, *self._options]
        sound = self._audio if audio is None else audio
        if sound:
            command += ["--audio", sound]
        with open(self._log, "ab") as log:
            self.process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log,
                                            stderr=log)

        def listening():
            assert self.process.poll() is None, self._log.read_text()
            with socket.socket() as probe:
                return probe.connect_ex(("127.0.0.1", self.port)) == 0

        wait_until(listening, "the camera to listen")

    def freeze(self):
        """Connections stay open, but nothing is sent any more."""
        self.process.send_signal(signal.SIGSTOP)

    def thaw(self):
        self.process.send_signal(signal.SIGCONT)

    def farewells(self):
        """How many clients have ended their session with TEARDOWN instead of just disconnecting."""
        return self._log.read_text().splitlines().count("teardown")

    def kill(self):
        if self.process and self.process.poll() is None:
            self.process.kill()
            self.process.wait()
