"""HTTP servers in this process: a camera, which gives each client one answer, by default without a length,
a folder of files, and a server that means no good."""

import functools
import http.server
import re
import threading
import time


class HttpCamera:
    """Answers with `body` and closes the connection. `body`: bytes, or a list of them, which are sent
    `interval` seconds apart; `sent` has the times of the latest answer. After `stay()` connections stay open, but nothing
    more is sent. `framing` says where the answer ends, as a server does for a file: with a "length", or
    in "chunks"."""

    def __init__(self, body, content_type, framing=None, interval=0):
        self.sent = []
        self._stay = threading.Event()
        self._closing = threading.Event()
        camera = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self):
                self.send_response(200)
                self.send_header("Content-Type", content_type)
                self.send_header("Connection", "close")
                if framing == "length":
                    self.send_header("Content-Length", str(len(body)))
                elif framing == "chunks":
                    self.send_header("Transfer-Encoding", "chunked")
                self.end_headers()
                staying = camera._stay.is_set()
                chunks = framing == "chunks"
                try:
                    if isinstance(body, list):
                        camera.sent = []
                        for part in body:
                            camera.sent.append(time.monotonic())
                            self.wfile.write(part)
                            camera._closing.wait(interval)
                    elif chunks:
                        self.wfile.write(b"%x\r\n%b\r\n0\r\n\r\n" % (len(body), body))
                    else:
                        self.wfile.write(body)
                except OSError:  # the client has disconnected
                    return
                if staying:
                    camera._closing.wait()

            def log_message(self, *_):
                pass

        self._server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)
        self._thread.start()

    @property
    def url(self):
        return f"http://127.0.0.1:{self._server.server_port}/cgi-bin/video.cgi"

    def stay(self):
        self._stay.set()

    def close(self):
        self._closing.set()
        self._server.shutdown()
        self._server.server_close()


class FileServer:
    """Serves the files of a folder. `moved`: by its path, the path to which a client is sent on."""

    class _Handler(http.server.SimpleHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def __init__(self, *arguments, moved, **more):
            self._moved = moved
            super().__init__(*arguments, **more)

        def do_GET(self):
            if self.path not in self._moved:
                return super().do_GET()
            self.send_response(302)
            self.send_header("Location", self._moved[self.path])
            self.send_header("Content-Length", "0")
            return self.end_headers()

        def log_message(self, *_):
            pass

    def __init__(self, folder):
        self.moved = {}
        handler = functools.partial(self._Handler, directory=str(folder), moved=self.moved)
        self._server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
        self._server.daemon_threads = True
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def url(self, name):
        return f"http://127.0.0.1:{self._server.server_port}/{name}"

    def close(self):
        self._server.shutdown()
        self._server.server_close()


class HostileServer:
    """Answers a path with what `answers` has for it: a text, bytes, an iterator of parts, which need not end, or a
    tuple of (body, more headers). `moved`: by its path, the URL to which a client is sent on. `asked` has the paths
    that were asked for, and `sent` is the number of bytes of the bodies."""

    def __init__(self, address="127.0.0.1"):
        self.answers = {}
        self.moved = {}
        self.asked = []
        self.sent = 0
        server = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                server.asked.append(self.path)
                if self.path in server.moved:
                    self.send_response(302)
                    self.send_header("Location", server.moved[self.path])
                    return self.end_headers()
                if self.path not in server.answers:
                    return self.send_error(404)
                answer = server.answers[self.path]
                body, headers = answer if isinstance(answer, tuple) else (answer, {})
                body = body.encode() if isinstance(body, str) else body
                part = re.fullmatch(r"bytes=(\d+)-(\d*)", self.headers.get("Range", ""))
                if isinstance(body, bytes) and part:
                    begin, end = int(part[1]), min(int(part[2] or len(body) - 1), len(body) - 1)
                    self.send_response(206)
                    self.send_header("Content-Range", f"bytes {begin}-{end}/{len(body)}")
                    body = body[begin:end + 1]
                else:
                    self.send_response(200)
                if isinstance(body, bytes):
                    self.send_header("Content-Length", str(len(body)))
                for name, value in headers.items():
                    self.send_header(name, value)
                self.end_headers()
                try:
                    for part in [body] if isinstance(body, bytes) else body:
                        self.wfile.write(part)
                        server.sent += len(part)
                except OSError:  # the client has had enough
                    pass
                return None

            def log_message(self, *_):
                pass

        self._server = http.server.ThreadingHTTPServer((address, 0), Handler)
        self._server.daemon_threads = True
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def url(self, path="/live.m3u8"):
        host, port = self._server.server_address
        return f"http://{'127.0.0.1' if host == '0.0.0.0' else host}:{port}{path}"

    def close(self):
        self._server.shutdown()
        self._server.server_close()
