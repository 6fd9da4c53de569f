"""Debian's Prometheus, which scrapes daemons."""

import json
import shutil
import subprocess
import urllib.error
import urllib.parse
import urllib.request

from harness.camera import free_port
from harness.daemon import ROOT
from harness.waiting import wait_until

RULES = ROOT / "docker" / "prometheus" / "rules.yml"


class Prometheus:
    """Runs with this configuration, a dict, in this folder until close()."""

    def __init__(self, folder, config):
        tool = shutil.which("prometheus") or str(ROOT / "build" / "tools" / "prometheus")
        (folder / "prometheus.yml").write_text(json.dumps(config))
        self._address = f"127.0.0.1:{free_port()}"
        self._log = folder / "prometheus.log"
        with open(self._log, "wb") as log:
            self._server = subprocess.Popen(
                [tool, f"--config.file={folder / 'prometheus.yml'}", f"--storage.tsdb.path={folder / 'series'}",
                 f"--web.listen-address={self._address}"], stdout=log, stderr=log)
        try:
            wait_until(self._ready, "Prometheus to be ready", 30)
        except AssertionError:
            self.close()
            raise

    def _ready(self):
        assert self._server.poll() is None, self._log.read_text()
        try:
            with urllib.request.urlopen(f"http://{self._address}/-/ready", timeout=5) as answer:
                return answer.status == 200
        except OSError:
            return False

    def get(self, path, **parameters):
        """The data that its API answers with."""
        url = f"http://{self._address}/api/v1/{path}?{urllib.parse.urlencode(parameters)}"
        try:
            with urllib.request.urlopen(url, timeout=20) as answer:
                return json.load(answer)["data"]
        except urllib.error.HTTPError as error:
            raise AssertionError(f"{path} {parameters}: {error.read().decode()}") from error

    def query(self, expression):
        """[(labels, value)]"""
        return [(one["metric"], float(one["value"][1]))
                for one in self.get("query", query=expression)["result"]]

    def alerts(self, state="firing"):
        """The labels of the alerts in this state."""
        return [one["labels"] for one in self.get("alerts")["alerts"] if one["state"] == state]

    def close(self):
        self._server.kill()
        self._server.wait()


def shortened_rules():
    """The alerts and recording rules, whose alerts wait a second where they would wait minutes."""
    text = RULES.read_text()
    for time in ("2m", "5m"):
        text = text.replace(f"        for: {time}\n", "        for: 1s\n")
    return text
