"""Server-sent events, as a status page gets them."""

import json
import time

from harness.waiting import TIME_FACTOR


class Events:
    """Reads server-sent events as strictly as the standard writes them."""

    def __init__(self, daemon, token=None):
        self.connection = daemon.connect()
        token = token or daemon.token
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        self.connection.request("GET", "/api/v1/events", headers=headers)
        self.response = self.connection.getresponse()
        assert self.response.status == 200
        assert self.response.getheader("Content-Type") == "text/event-stream"

    def next(self, kind=None):
        """The data of the next event (of this kind)."""
        while True:
            lines = []
            while (line := self.response.readline().decode()) != "\n":
                assert line.endswith("\n"), "the stream has ended"
                lines.append(line[:-1])
            assert len(lines) == 2 and lines[0].startswith("event: ") and lines[1].startswith("data: "), lines
            name = lines[0].removeprefix("event: ")
            if kind is None or name == kind:
                return json.loads(lines[1].removeprefix("data: "))

    def wait(self, condition, deadline=20):
        """The first status for which this is true."""
        end = time.monotonic() + deadline * TIME_FACTOR
        while time.monotonic() < end:
            status = self.next("status")
            if condition(status):
                return status
        raise AssertionError(f"it did not come true; the last: {status}")

    def close(self):
        self.connection.close()
