"""Services on the loopback address: each has a port of its own, answers with the page of a path, and notes each request."""

import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from mapping import SERVICES

# Value of each secret, of which the tools know the name alone.
SECRET = "not-a-real-token-{name}"


class Services:
    """Answers as long as this program runs."""

    def __init__(self):
        # Requests, as a service and a method each, and text of the answer to the next GET.
        self.requests, self.page, self.wrong = [], "", []
        self.addresses = {}
        for name, has_account in SERVICES.items():
            server = ThreadingHTTPServer(("127.0.0.1", 0), self.handler(name, has_account))
            server.daemon_threads = True
            threading.Thread(target=server.serve_forever, daemon=True).start()
            self.addresses[name] = f"http://127.0.0.1:{server.server_port}"

    def take(self):
        """Returns the requests since the last time."""
        taken, self.requests = self.requests, []
        return taken

    def handler(services, name, has_account):
        class Handler(BaseHTTPRequestHandler):
            def answer(self, method, text):
                token = self.headers.get("Authorization")
                if token != (f"Bearer {SECRET.format(name=name)}" if has_account else None):
                    services.wrong.append((name, method, token))
                services.requests.append((name, method))
                self.send_response(200)
                self.send_header("Content-Length", str(len(text)))
                self.end_headers()
                self.wfile.write(text)

            def do_GET(self):
                self.answer("GET", services.page.encode())

            def do_POST(self):
                # Bodies of tools come in chunks.
                while size := int(self.rfile.readline(), 16):
                    self.rfile.read(size + 2)
                self.rfile.readline()
                self.answer("POST", b"done")

            def log_message(self, *_):
                pass

        return Handler
