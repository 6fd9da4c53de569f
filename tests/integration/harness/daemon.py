"""A running `framelane run`, watched through its admin listener as an operator would."""

import http.client
import json
import os
import pathlib
import signal
import socket
import subprocess

from harness.complaints import complaints
from harness.media_playlist import PlaylistWatch, output_playlists
from harness.metrics import Metrics
from harness.waiting import TIME_FACTOR, wait_until

ROOT = pathlib.Path(__file__).resolve().parents[3]
BINARY = pathlib.Path(
    os.environ.get("FRAMELANE_BINARY", ROOT / "build" / "dev" / "daemon" / "framelane")
)

# The program with a stand-in for CUDA's runtime. It has a GPU, cuda:0, on every machine.
STAND_IN_GPU = BINARY.parents[1] / "tests" / "framelane_stand_in_gpu"


# Starts a daemon for which the modes of files and folders count, even if root runs the tests.
WITHOUT_PRIVILEGES = (
    ("setpriv", "--inh-caps=-dac_override,-dac_read_search",
     "--bounding-set=-dac_override,-dac_read_search") if os.geteuid() == 0 else ()
)


class _UnixConnection(http.client.HTTPConnection):
    def __init__(self, path, timeout):
        super().__init__("localhost", timeout=timeout)
        self._path = str(path)

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(self.timeout)
        self.sock.connect(self._path)


def run(*arguments, timeout=60, **keywords):
    """Runs a framelane command until it ends. It gets no standard input; its output is text."""
    keywords.setdefault("stdin", subprocess.DEVNULL)
    keywords.setdefault("stdout", subprocess.PIPE)
    done = subprocess.run(
        [str(BINARY), *map(str, arguments)],
        stderr=subprocess.PIPE,
        text=True,
        timeout=timeout * TIME_FACTOR,
        check=False,
        **keywords,
    )
    done.stderr = complaints(done.stderr)
    return done


class Daemon:
    """The configuration is a dict (JSON is YAML) or text. The admin listener is a Unix socket
    unless `port` is given; `admin` are more of its keys. Requests are sent with `token`, and with
    `tls`, an ssl.SSLContext. `wrapper`: a command that execs the daemon; `binary`: another build of it. `stop` checks what must hold
    whenever a daemon ends: exit status 0, no sanitizer report, no secret in the log. Every scrape
    checks the ledger, and every playlist that the daemon writes against the standard and against how
    it was before."""

    def __init__(self, folder, config, arguments=(), secrets=(), stdin=subprocess.DEVNULL, env=None,
                 port=None, admin=None, token=None, tls=None, wrapper=(), binary=BINARY):
        self.folder = folder
        self.socket = folder / "admin.sock"
        self.config_path = folder / "framelane.yaml"
        self.log_path = folder / "framelane.log"
        self.secrets = secrets
        self.port = port
        self.admin = admin or {}
        self.token = token
        self.tls = tls
        self.playlists = []
        self._watch = PlaylistWatch()
        self.write_config(config)
        with open(self.log_path, "ab") as log:
            self.process = subprocess.Popen(
                [*wrapper, str(binary), "run", "-c", str(self.config_path), *arguments],
                stdin=stdin,
                stdout=log,
                stderr=log,
                cwd=folder,
                env={**os.environ, **(env or {})},
            )

    def write_config(self, config):
        if isinstance(config, dict):
            self.playlists = [self.folder / path for path in output_playlists(config)]
            listen = f"127.0.0.1:{self.port}" if self.port else f"unix:{self.socket}"
            config = json.dumps({"admin": {"listen": listen, **self.admin}, **config}, indent=1)
        # As an editor does it: nobody reads half of it.
        new = self.config_path.with_suffix(".new")
        new.write_text(config)
        new.replace(self.config_path)

    # Its state

    def log(self):
        return complaints(self.log_path.read_text(errors="replace"))

    def connect(self):
        """A connection to the admin listener, as http.client has them."""
        timeout = 5 * TIME_FACTOR
        if not self.port:
            return _UnixConnection(self.socket, timeout)
        if self.tls:
            return http.client.HTTPSConnection("127.0.0.1", self.port, timeout=timeout, context=self.tls)
        return http.client.HTTPConnection("127.0.0.1", self.port, timeout=timeout)

    def answer(self, method, path, headers=None, body=None):
        """(status, headers, body in bytes)"""
        headers = dict(headers or {})
        if self.token:
            headers.setdefault("Authorization", f"Bearer {self.token}")
        connection = self.connect()
        try:
            connection.request(method, path, body=body, headers=headers)
            response = connection.getresponse()
            return response.status, response.headers, response.read()
        finally:
            connection.close()

    def request(self, method, path, headers=None, body=None):
        """(status, body)"""
        status, _, body = self.answer(method, path, headers, body)
        return status, body.decode()

    def ask_feed(self, path, method="GET", **headers):
        """What /api/v1/feeds/PATH answers: (status, headers, body in bytes)"""
        return self.answer(method, f"/api/v1/feeds/{path}", headers)

    def api(self, path):
        status, body = self.request("GET", path)
        assert status == 200, f"{path}: {status} {body}"
        return json.loads(body)

    def feed(self, name):
        return self.api(f"/api/v1/feeds/{name}")

    def restart_feed(self, name):
        status, body = self.request("POST", f"/api/v1/feeds/{name}/restart",
                                    headers={"X-Framelane-Request": "1"})
        assert status == 202, body

    def reload(self, config=None, expected=200):
        """Reads this configuration, or the present file; the answer's JSON."""
        if config is not None:
            self.write_config(config)
        status, body = self.request("POST", "/api/v1/reload", headers={"X-Framelane-Request": "1"})
        assert status == expected, f"{status} {body}"
        return json.loads(body)

    def metrics(self):
        status, body = self.request("GET", "/metrics")
        assert status == 200, body
        metrics = Metrics(body)
        metrics.check_ledger()
        self.check_playlists()
        return metrics

    def check_playlists(self):
        for path in self.playlists:
            self._watch.look(path)

    def threads(self):
        return len(os.listdir(f"/proc/{self.process.pid}/task"))

    def thread_names(self):
        names = []
        for thread in pathlib.Path(f"/proc/{self.process.pid}/task").iterdir():
            try:
                names.append((thread / "comm").read_text().strip())
            except OSError:  # it has ended meanwhile
                pass
        return names

    # Waiting

    def wait_ready(self, deadline=15):
        def ready():
            assert self.process.poll() is None, f"ended with {self.process.returncode}:\n{self.log()}"
            try:
                return self.request("GET", "/readyz")[0] == 200
            except OSError:
                return False

        wait_until(ready, "ready", deadline)
        return self

    def wait_metrics(self, condition, what, deadline=20):
        """Scrapes until condition(metrics) is true; returns that scrape. Every one must balance."""

        def check():
            assert self.process.poll() is None, f"ended with {self.process.returncode}:\n{self.log()}"
            metrics = self.metrics()
            return metrics if condition(metrics) else None

        return wait_until(check, what, deadline)

    def wait_frames(self, feed, count, encode=None, deadline=20):
        """Waits until `count` frames have come out of the feed's (only) encode."""
        labels = {"feed": feed, **({"encode": encode} if encode else {})}
        return self.wait_metrics(
            lambda m: m.sum("framelane_frames_out_total", **labels) >= count,
            f"{count} frames out of {feed}",
            deadline,
        )

    def wait_more_frames(self, feed, count, deadline=20):
        """Waits until `count` more frames have come out of the feed."""
        out = self.metrics().sum("framelane_frames_out_total", feed=feed)
        return self.wait_frames(feed, out + count, deadline=deadline)

    def wait_state(self, feed, state, deadline=20):
        return self.wait_metrics(
            lambda m: m.feed_state(feed) == state, f"{feed} to be {state}", deadline
        )

    def wait_log(self, text, deadline=15):
        wait_until(lambda: text in self.log(), f"{text!r} in the log", deadline)

    # Ending

    def wait_exit(self, deadline=20):
        try:
            return self.process.wait(timeout=deadline * TIME_FACTOR)
        except subprocess.TimeoutExpired as error:
            raise AssertionError(f"still running after {deadline} s:\n{self.log()}") from error

    def stop(self, deadline=15, expected=0, sign=signal.SIGTERM):
        """Sends one signal, waits for the end, and checks what must hold then."""
        if self.process.poll() is None:
            self.process.send_signal(sign)
        status = self.wait_exit(deadline)
        assert status == expected, f"exit status {status}:\n{self.log()}"
        self.check_log()
        self.check_playlists()
        return status

    def kill(self):
        self.process.kill()
        self.process.wait()

    def check_log(self):
        log = self.log()
        assert "Sanitizer" not in log and "runtime error:" not in log, log
        for secret in self.secrets:
            assert secret not in log, f"the log holds {secret!r}"
