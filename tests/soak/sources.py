"""Sources and peers that misbehave when a scene tells them to, and behave again afterwards."""

import http.server
import os
import pathlib
import random
import signal
import socket
import struct
import subprocess
import threading
import time

from harness.camera import free_port
from harness.waiting import wait_until


class Program:
    """A command that is run again whenever it ends."""

    def __init__(self, *command):
        self._command = ["sh", "-c", 'while :; do "$@"; sleep 0.3; done', "sh", *map(str, command)]
        self._process = None
        self.start()

    def start(self):
        if not self._process:
            self._process = subprocess.Popen(
                self._command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL, start_new_session=True)

    def kill(self):
        if self._process:
            os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()
            wait_until(self._is_gone, "a killed program to leave its port")
            self._process = None

    def _is_gone(self):
        try:
            os.killpg(self._process.pid, 0)
        except ProcessLookupError:
            return True
        return False

    def freeze(self):
        os.killpg(self._process.pid, signal.SIGSTOP)

    def thaw(self):
        os.killpg(self._process.pid, signal.SIGCONT)


class _Server:
    """An HTTP server whose answers depend on its mood; "well" is what it should do."""

    def __init__(self, answer):
        server = self
        self.mood = "well"
        self.closing = threading.Event()

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self):
                self.close_connection = True
                try:
                    if not server._misbehaves(self):
                        answer(self)
                except OSError:  # the client has gone
                    pass

            def log_message(self, *_):
                pass

        self._server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self.port = self._server.server_port
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def _misbehaves(self, request):
        if self.mood == "refuse":
            request.send_error(503, "no\x1b[31m such\x07 thing")
        elif self.mood == "garbage":
            request.wfile.write(random.randbytes(20_000))
        elif self.mood == "redirect":
            request.send_response(302)
            request.send_header("Location", request.path)
            request.send_header("Content-Length", "0")
            request.end_headers()
        elif self.mood == "stall":
            self.wait_for_a_change("stall")
        else:
            return False
        return True

    def wait_for_a_change(self, mood):
        while self.mood == mood and not self.closing.wait(0.1):
            pass

    def close(self):
        self.closing.set()
        self._server.shutdown()
        self._server.server_close()


class MjpegCamera(_Server):
    """Sends pictures one by one, without a length and without times. Besides the moods of every
    server: "cut" ends an answer in the middle of a picture, "noise" sends parts that are none."""

    def __init__(self, pictures, interval=0.15):
        super().__init__(self._answer)
        self._pictures = pictures
        self.interval = interval
        self.url = f"http://127.0.0.1:{self.port}/video.mjpg"

    def _answer(self, request):
        request.send_response(200)
        request.send_header("Content-Type", "multipart/x-mixed-replace;boundary=frame")
        request.end_headers()
        count = 0
        while not self.closing.is_set() and self.mood in ("well", "noise", "stall", "cut"):
            picture = self._pictures[count % len(self._pictures)]
            if self.mood == "noise":
                picture = random.randbytes(len(picture))
            part = (b"--frame\r\nContent-Type: image/jpeg\r\nContent-Length: %d\r\n\r\n%b\r\n"
                    % (len(picture), picture))
            if self.mood == "cut":
                request.wfile.write(part[: len(part) // 2])
                return
            request.wfile.write(part)
            self.wait_for_a_change("stall")
            count += 1
            self.closing.wait(self.interval)


class FolderServer(_Server):
    """Serves the files of a folder, as a web server does for a playlist. "evil": every playlist is
    one that should make a reader read what it must not, for ever, or too much."""

    EVIL = (
        b"#EXTM3U\n#EXT-X-TARGETDURATION:2\n#EXTINF:2,\nfile:///etc/passwd\n",
        b"#EXTM3U\n#EXT-X-STREAM-INF:BANDWIDTH=1\nindex.m3u8\n",  # itself
        b"#EXTM3U\n#EXT-X-TARGETDURATION:-5\n#EXT-X-MEDIA-SEQUENCE:99999999999999999999\n"
        b"#EXTINF:-1,\nx.ts\n",
        b"#EXTM3U\n" + b"#EXTINF:0.001,\nnothing.ts\n" * 20_000,
        b"#EXTM3U\n#EXT-X-KEY:METHOD=AES-128,URI=\"file:///etc/passwd\"\n#EXTINF:2,\nindex-0.ts\n",
        b"#EXTM3U" + b"\x1b[31m" * 5000,
    )

    def __init__(self, folder):
        super().__init__(self._answer)
        self._folder = folder
        self.evil = b""

    def url(self, name):
        return f"http://127.0.0.1:{self.port}/{name}"

    def _answer(self, request):
        if self.mood == "evil":
            request.wfile.write(b"HTTP/1.1 200 OK\r\n\r\n" + self.evil)
            return
        try:
            data = (self._folder / request.path.lstrip("/").partition("?")[0]).read_bytes()
        except OSError:
            request.send_error(404)
            return
        request.send_response(200)
        request.send_header("Content-Length", str(len(data)))
        request.end_headers()
        request.wfile.write(data)


def write_whole(descriptor, data):
    while data:
        data = data[os.write(descriptor, data):]


class FifoWriter:
    """Writes one frame each `interval` seconds, as a capture program does. "stall": it stops in the
    middle of a frame, and goes on with the rest of it when it is well again; "gone": it has closed
    the FIFO, after a stall without the rest."""

    def __init__(self, path, frame, interval=0.1):
        os.mkfifo(path)
        self.path = pathlib.Path(path)
        self.interval = interval
        self.mood = "well"
        self._frame = frame
        threading.Thread(target=self._run, daemon=True).start()

    def open(self):
        """A descriptor for writing whole frames; None if nobody reads."""
        try:
            descriptor = os.open(self.path, os.O_WRONLY | os.O_NONBLOCK)
        except OSError:
            return None
        os.set_blocking(descriptor, True)
        return descriptor

    def _run(self):
        while True:
            descriptor = self.open() if self.mood != "gone" else None
            if descriptor is None:
                time.sleep(0.1)
                continue
            try:
                while self.mood != "gone":
                    half = len(self._frame) // 2 - 1
                    write_whole(descriptor, self._frame[:half])
                    while self.mood == "stall":
                        time.sleep(0.05)
                        if self.mood == "gone":
                            raise BrokenPipeError
                    write_whole(descriptor, self._frame[half:])
                    time.sleep(self.interval)
            except BrokenPipeError:
                pass
            finally:
                os.close(descriptor)


class TcpPeer:
    """Takes what an output sends. "stall": it reads no more; "reset": it cuts every connection;
    "garbage": it answers with noise; "absent": nobody listens."""

    def __init__(self):
        self.port = free_port()
        self.mood = "well"
        threading.Thread(target=self._run, daemon=True).start()

    def _run(self):
        while True:
            if self.mood == "absent":
                time.sleep(0.1)
                continue
            with socket.socket() as listener:
                listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                listener.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
                listener.bind(("127.0.0.1", self.port))
                listener.listen()
                listener.settimeout(0.2)
                while self.mood != "absent":
                    try:
                        connection, _ = listener.accept()
                    except TimeoutError:
                        continue
                    threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, connection):
        connection.settimeout(0.2)
        with connection:
            while self.mood in ("well", "stall", "garbage"):
                if self.mood == "stall":
                    time.sleep(0.1)
                    continue
                try:
                    if self.mood == "garbage":
                        connection.send(random.randbytes(1000))
                    if not connection.recv(65536):
                        return
                except TimeoutError:
                    continue
                except OSError:
                    return
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))


class Impostor:
    """Listens where something else should, and answers every client in one of the WAYS."""

    WAYS = ("noise", "endless line", "drip", "silence", "hang up", "escapes", "redirect to itself")

    def __init__(self, port, way, noise):
        self._port = port
        self.way = way
        self._noise = noise
        self._closing = threading.Event()
        self._listener = socket.socket()
        self._listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self._listener.bind(("127.0.0.1", port))
        self._listener.listen()
        self._listener.settimeout(0.2)
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self):
        while not self._closing.is_set():
            try:
                connection, _ = self._listener.accept()
            except TimeoutError:
                continue
            threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, connection):
        try:
            with connection:
                self._answer(connection)
        except OSError:  # the client has gone
            pass

    def _answer(self, connection):
        connection.settimeout(5)
        if self.way == "noise":
            connection.sendall(self._noise.randbytes(200_000))
        elif self.way == "endless line":
            while not self._closing.wait(0.01):
                connection.sendall(b"a" * 10_000)
        elif self.way == "drip":
            while not self._closing.wait(0.3):
                connection.sendall(b"R")
        elif self.way == "silence":
            self._closing.wait()
        elif self.way == "escapes":
            connection.recv(2000)
            connection.sendall(b"RTSP/1.0 404 \x1b[31mred\x07\r\nCSeq: 1\r\n"
                               b"Server: \x1b]0;x\x07\r\n\r\n")
        elif self.way == "redirect to itself":
            connection.recv(2000)
            place = b"rtsp://u:leak@127.0.0.1:%d/stream" % self._port
            connection.sendall(b"RTSP/1.0 302 Found\r\nCSeq: 1\r\nLocation: " + place + b"\r\n\r\n")

    def close(self):
        self._closing.set()
        self._thread.join()
        self._listener.close()
