"""A web server that does not understand what it is told: 400 and the end, as nginx answers to what is no HTTP.

In: HOST:PORT. Out: a JSON line for the start and one for each connection. It runs until it is ended.
"""

from __future__ import annotations

import json
import socketserver
import sys

PAGE = b"<html>\r\n<head><title>400 Bad Request</title></head>\r\n<body><h1>400 Bad Request</h1></body>\r\n</html>\r\n"
ANSWER = (
    b"HTTP/1.1 400 Bad Request\r\nServer: nginx/1.24.0\r\nContent-Type: text/html\r\nContent-Length: %d\r\n"
    b"Connection: close\r\n\r\n%s" % (len(PAGE), PAGE)
)


class Answers(socketserver.BaseRequestHandler):
    """One connection."""

    def handle(self) -> None:
        """Take what comes first, answer, end."""
        if self.request.recv(4096):
            self.request.sendall(ANSWER)
            print(json.dumps({"event": "answered"}), flush=True)


class Server(socketserver.ThreadingTCPServer):
    """Takes its port again at once."""

    allow_reuse_address = True
    daemon_threads = True


def main() -> None:
    """Listen until ended."""
    host, _, port = sys.argv[1].rpartition(":")
    with Server((host, int(port)), Answers) as server:
        print(json.dumps({"event": "listening"}), flush=True)
        server.serve_forever()


if __name__ == "__main__":
    main()
