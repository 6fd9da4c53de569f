"""A camera: rtsp_server.py in a process of its own, so that it can be killed, frozen, restarted."""

import pathlib
import signal
import socket
import subprocess
import sys

from harness.waiting import wait_until

_SERVER = pathlib.Path(__file__).with_name("rtsp_server.py")


def free_port():
    """A port nobody listens on. Another process may take it before it is used: rare, and loud."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class Camera:
    """Serves `clip` at rtsp://127.0.0.1:PORT/stream. `auth`: None, "basic" or "digest";
    `transport`: "tcp" or "udp" refuses the other."""

    USER = "view.er%40site"  # as it stands in a URL: a dot and an escaped @, which scrubbers miss
    PASSWORD = "s3cr3t-pa%24s"

    def __init__(self, folder, clip, audio=None, auth=None, transport=None):
        self.port = free_port()
        self._log = folder / f"camera-{self.port}.log"
        self._command = [sys.executable, str(_SERVER), str(self.port), str(clip)]
        if audio:
            self._command += ["--audio", audio]
        if auth:
            self._command += ["--auth", auth, "--user", "view.er@site", "--password", "s3cr3t-pa$s"]
        if transport:
            self._command += ["--transport", transport]
        self.process = None
        self.start()

    @property
    def url(self):
        return f"rtsp://127.0.0.1:{self.port}/stream"

    @property
    def url_with_login(self):
        return f"rtsp://{self.USER}:{self.PASSWORD}@127.0.0.1:{self.port}/stream"

    def start(self):
        """Starts it, on the same port when it ran before, and waits until it listens."""
        with open(self._log, "ab") as log:
            self.process = subprocess.Popen(self._command, stdin=subprocess.DEVNULL, stdout=log,
                                            stderr=log)

        def listening():
            assert self.process.poll() is None, self._log.read_text()
            with socket.socket() as probe:
                return probe.connect_ex(("127.0.0.1", self.port)) == 0

        wait_until(listening, "the camera to listen")

    def freeze(self):
        """Connections stay open, and nothing comes any more."""
        self.process.send_signal(signal.SIGSTOP)

    def thaw(self):
        self.process.send_signal(signal.SIGCONT)

    def farewells(self):
        """How many clients have taken their leave (TEARDOWN) instead of just hanging up."""
        return self._log.read_text().splitlines().count("teardown")

    def kill(self):
        if self.process and self.process.poll() is None:
            self.process.kill()
            self.process.wait()
