"""A receiver of webhooks, in this process."""

import hashlib
import hmac
import http.server
import json
import ssl
import threading
import time

from harness.waiting import wait_until


class Request:
    def __init__(self, headers, body):
        self.headers = headers
        self.body = body
        self.event = json.loads(body)

    def is_signed(self, secret):
        timestamp = self.headers["X-Framelane-Timestamp"]
        signed = hmac.new(secret.encode(), timestamp.encode() + b"." + self.body, hashlib.sha256).hexdigest()
        return self.headers["X-Framelane-Signature"] == f"sha256={signed}" and abs(time.time() - int(timestamp)) < 60


class HookReceiver:
    """Answers with these statuses, one after the other, and with 204 when there is none. A status is a number, or a
    pair of a number and headers. While it is `silent` it gives no answer. `certificate`: (file, key), for TLS."""

    def __init__(self, statuses=(), certificate=None):
        self.requests = []
        self._statuses = list(statuses)
        self.silent = threading.Event()
        self._closing = threading.Event()
        receiver = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self):
                body = self.rfile.read(int(self.headers["Content-Length"]))
                receiver.requests.append(Request(self.headers, body))
                if receiver.silent.is_set():
                    receiver._closing.wait()
                    self.close_connection = True
                    return
                status = receiver._statuses.pop(0) if receiver._statuses else 204
                status, headers = status if isinstance(status, tuple) else (status, {})
                self.send_response(status)
                for name, value in {"Content-Length": "0", **headers}.items():
                    self.send_header(name, value)
                self.end_headers()

            def log_message(self, *_):
                pass

        class Server(http.server.ThreadingHTTPServer):
            daemon_threads = True

            def handle_error(self, *_):  # a client that does not trust this server, or that ends
                pass

        self._server = Server(("127.0.0.1", 0), Handler)
        if certificate:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(*certificate)
            self._server.socket = context.wrap_socket(self._server.socket, server_side=True)
        self.port = self._server.server_address[1]
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def url(self, path="/in", scheme="http", host="127.0.0.1"):
        return f"{scheme}://{host}:{self.port}{path}"

    def events(self, kind=None):
        return [request.event for request in self.requests if kind in (None, request.event["event"])]

    def wait_events(self, count, kind=None, deadline=20):
        return wait_until(lambda: len(self.events(kind)) >= count and self.events(kind),
                          f"{count} events ({kind or 'any'})", deadline)

    def close(self):
        self._closing.set()
        self._server.shutdown()
        self._server.server_close()
