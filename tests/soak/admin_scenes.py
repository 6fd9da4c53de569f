"""Hostile clients of the admin listener."""

import contextlib
import socket
import threading
import time

from soak.scene import scene

# Requests, and the status that each must get. None: any answer, or none.
_REQUESTS = [
    ("GET /healthz HTTP/1.1\r\nHost: [::1].evil.com\r\n", 400),
    ("GET /metrics HTTP/1.1\r\nHost: [::1].evil.com:80\r\n", 400),
    ("GET /metrics HTTP/1.1\r\nHost: evil.com\r\n", 403),
    ("GET /metrics HTTP/1.1\r\nHost: 127.0.0.1.evil.com\r\n", 403),
    ("GET /metrics HTTP/1.1\r\nHost: localhost.evil.com\r\n", 403),
    ("GET /metrics HTTP/1.1\r\nHost: 127.0.0.1\r\nHost: evil.com\r\n", 400),
    ("GET /metrics HTTP/1.1\r\nHost: evil.com\r\nHost: 127.0.0.1\r\n", 400),
    ("GET /metrics HTTP/1.1\r\nHost: 127.0.0.1:99999999\r\n", None),
    ("GET /metrics HTTP/1.1\r\nHost: user@127.0.0.1\r\n", 400),
    ("POST /api/v1/feeds/gate/restart HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 0\r\n", 403),
    ("POST /metrics HTTP/1.1\r\nHost: 127.0.0.1\r\nX-Framelane-Request: 1\r\n"
     "Content-Length: 0\r\n", 405),
    ("DELETE /api/v1/feeds/gate HTTP/1.1\r\nHost: 127.0.0.1\r\n", None),
    ("GET /api/v1/feeds/../../../etc/passwd HTTP/1.1\r\nHost: 127.0.0.1\r\n", 404),
    ("GET /api/v1/feeds/%00 HTTP/1.1\r\nHost: 127.0.0.1\r\n", 404),
    ("GET /api/v1/feeds/gate%0d%0aX:%20y HTTP/1.1\r\nHost: 127.0.0.1\r\n", 404),
    ("GET /api/v1/feeds/nobody HTTP/1.1\r\nHost: 127.0.0.1\r\n", 404),
    ("POST /api/v1/reload HTTP/1.1\r\nHost: 127.0.0.1\r\nX-Framelane-Request: 1\r\n"
     "Content-Length: 0\r\n", 404),
    ("POST /api/v1/feeds/gate/restart HTTP/1.1\r\nHost: 127.0.0.1\r\nX-Framelane-Request: 1\r\n"
     "Content-Length: 999999999999\r\n", None),
    ("POST /api/v1/feeds/gate/restart HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: -1\r\n", None),
    ("GET /metrics HTTP/1.1\r\nHost: 127.0.0.1\r\nX: " + "a" * 40_000 + "\r\n", None),
    ("GET /" + "a" * 40_000 + " HTTP/1.1\r\nHost: 127.0.0.1\r\n", None),
    ("GET /metrics HTTP/9.9\r\nHost: 127.0.0.1\r\n", None),
    ("HEAD /metrics HTTP/1.1\r\nHost: 127.0.0.1\r\n", 200),
    ("GET /metrics HTTP/1.0\r\n", None),
    ("GET /metrics HTTP/1.1\r\n", None),
    ("\x00\x01\x02\xff\x1b[31m", None),
    ("GET /\x1b[31mred HTTP/1.1\r\nHost: \x1b]0;title\x07\r\n", None),
]


def _connect(site):
    connection = socket.socket()
    connection.settimeout(6)
    connection.connect(("127.0.0.1", site.port))
    return connection


def _status(site, request):
    """None if there was no answer."""
    with _connect(site) as connection:
        with contextlib.suppress(OSError):
            connection.sendall((request + "Connection: close\r\n\r\n").encode("latin-1"))
            head = connection.recv(200)
            if head.startswith(b"HTTP/1."):
                return int(head[9:12])
    return None


@scene("admin", weight=1.5)
def strange_requests(site, dice):
    chosen = dice.sample(_REQUESTS, 8)
    for request, expected in chosen:
        got = _status(site, request)
        assert expected in (None, got), f"{request!r}: {got}, and not {expected}"
    yield ""


@scene("admin")
def connections_are_held_open(site, dice):
    """Each sends a little and waits; an honest client's scrapes must be answered all the same."""
    pieces = ["", "G", "GET /metrics HTTP/1.1\r\nHost: 127.0.0.1\r\n", "\x16\x03\x01",
              "POST / HTTP/1.1\r\n"]
    with contextlib.ExitStack() as stack:
        for _ in range(dice.randint(5, 120)):
            connection = stack.enter_context(_connect(site))
            with contextlib.suppress(OSError):
                connection.sendall(dice.choice(pieces).encode())
        yield ""


@scene("admin")
def scrapers_that_read_nothing(site, dice):
    """They ask again and again over one connection, and leave the answers where they are."""
    count = dice.randint(1, 10)
    request = b"GET /metrics HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"
    with contextlib.ExitStack() as stack:
        for _ in range(count):
            connection = socket.socket()
            stack.enter_context(connection)
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 2048)
            connection.connect(("127.0.0.1", site.port))
            connection.setblocking(False)
            with contextlib.suppress(OSError):
                connection.send(request * 500)
        yield f"{count} of them"


@scene("admin")
def a_flood_of_requests(site, dice):
    ends = time.monotonic() + dice.uniform(0.5, 2)

    def ask():
        while time.monotonic() < ends:
            with contextlib.suppress(OSError):
                _status(site, "GET /api/v1/feeds HTTP/1.1\r\nHost: 127.0.0.1\r\n")

    threads = [threading.Thread(target=ask) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    yield ""
