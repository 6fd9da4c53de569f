"""Stands for journald."""

import os
import select
import socket
import threading

from harness.waiting import wait_until


class Journal:
    """Stands for journald, of the daemon that `wrapper` and `environment` are for: its /run/systemd/journal/socket,
    and the stream that it has as standard error, the file `stream`."""

    def __init__(self, folder, stream):
        stream.touch()
        status = stream.stat()
        self.environment = {"JOURNAL_STREAM": f"{status.st_dev}:{status.st_ino}"}
        self.wrapper = ("unshare", "--mount", "sh", "-ec", "mount -t tmpfs tmpfs /run; mkdir -p /run/systemd/journal; "
                        'mount --bind "$0" /run/systemd/journal; exec "$@"', str(folder))
        self._records = []
        self._reader = None
        folder.mkdir()
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_NONBLOCK)
        self._socket.bind(str(folder / "socket"))

    def records(self):
        """All of them so far, as dicts."""
        if self._reader is None:
            self._receive()
        return list(self._records)

    def read_on(self):
        """Takes records as they come, on a thread, so that there is room for the next ones."""
        def read():
            while select.select([self._socket, self._end[0]], [], [])[0] == [self._socket]:
                self._receive()
        self._end = os.pipe()
        self._reader = threading.Thread(target=read)
        self._reader.start()

    def _receive(self):
        while True:
            try:
                record = self._socket.recv(65536).decode()
            except BlockingIOError:
                return
            assert record.endswith("\n")
            self._records.append(dict(line.split("=", 1) for line in record.splitlines()))

    def wait(self, **fields):
        """The first record that has these fields."""
        return wait_until(
            lambda: next((record for record in self.records() if fields.items() <= record.items()), None),
            f"a record with {fields} among {self._records}")

    def close(self):
        if self._reader is not None:
            os.close(self._end[1])
            self._reader.join()
            os.close(self._end[0])
            self._reader = None
        self._socket.close()
