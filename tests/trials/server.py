"""A server for the tests of `measure`: it answers on a port, and has a child of its own."""

import os
import subprocess
import sys
from http.server import BaseHTTPRequestHandler, HTTPServer


class Handler(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        sum(range(int(os.environ.get("GOGC", "100")) * 1000))
        self.send_response(200)
        self.end_headers()

    def log_message(self, *_: object) -> None:
        pass


if __name__ == "__main__":
    # A child in a session of its own, which ignores what would end it.
    subprocess.Popen(
        [
            "setsid",
            sys.executable,
            "-c",
            "import signal, time\nsignal.signal(signal.SIGTERM, signal.SIG_IGN); time.sleep(600)",
            sys.argv[2],
        ]
    )
    server = HTTPServer(("127.0.0.1", int(sys.argv[1])), Handler)
    sys.stdout.write(f"listening on {sys.argv[1]}\n")
    sys.stdout.flush()
    server.serve_forever()
