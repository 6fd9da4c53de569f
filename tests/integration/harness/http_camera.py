"""A camera that speaks HTTP: one answer without a length for each client, in this process."""

import http.server
import threading


class HttpCamera:
    """Answers with `body`, and closes; after `stay()` it stays silent behind the body instead. With
    `length` the answer says how long it is, as a file's does."""

    def __init__(self, body, content_type, length=False):
        self._stay = threading.Event()
        self._closing = threading.Event()
        camera = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                self.send_response(200)
                self.send_header("Content-Type", content_type)
                if length:
                    self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                staying = camera._stay.is_set()
                try:
                    self.wfile.write(body)
                except OSError:  # the client has gone
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
