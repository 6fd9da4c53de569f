"""A camera over HTTP, in this process. Each client gets one answer, by default without a length."""

import http.server
import threading


class HttpCamera:
    """Answers with `body` and closes the connection. After `stay()` connections stay open, but nothing
    more is sent. `framing` says where the answer ends, as a server does for a file: with a "length", or
    in "chunks"."""

    def __init__(self, body, content_type, framing=None):
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
                    self.wfile.write(b"%x\r\n%b\r\n0\r\n\r\n" % (len(body), body) if chunks else body)
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
