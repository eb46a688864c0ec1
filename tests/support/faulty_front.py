"""A front before an HTTP server that makes its answers go wrong.

In: where the server is, and what to do with each request. Out: a port. Requests are passed on as they are, with their
signatures, so the server behind believes them.
"""

from __future__ import annotations

import contextlib
import http.client
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import NamedTuple


class Request(NamedTuple):
    """number: counts all requests of the front, from 0."""

    number: int
    method: str
    path: str
    range: str


class Fault(NamedTuple):
    """status: answered instead of asking the server. code: S3's word for it. cut_after: so many bytes of the body come,
    then the connection ends. bytes_per_s: how slow the body comes. before: is done before the server is asked."""

    status: int = 0
    code: str = ""
    cut_after: int | None = None
    bytes_per_s: int = 0
    before: Callable[[], None] | None = None


class Asked(NamedTuple):
    """A request as it came."""

    method: str
    path: str
    headers: Mapping[str, str]
    body: bytes


class Answer(NamedTuple):
    """What the server said."""

    status: int
    content: bytes


class Translated(NamedTuple):
    """What the server is asked in place of a request. told: headers for whoever asked, with no content."""

    method: str
    path: str
    headers: Mapping[str, str]
    body: bytes
    told: Callable[[Answer], Mapping[str, str]]


Plan = Callable[[Request], Fault | None]
Translator = Callable[[Asked], Translated | None]
# What stores do now and then, and who reads from them has to get over.
STUMBLES: dict[str, Plan] = {
    "slow-down": lambda request: Fault(503, "SlowDown") if request.number % 3 == 1 else None,
    "internal": lambda request: Fault(500, "InternalError") if request.number % 4 == 2 else None,
    "cut": lambda request: Fault(cut_after=40_000) if request.number % 3 == 1 and request.range else None,
    "slow": lambda request: Fault(bytes_per_s=2_000_000) if request.range else None,
}
_SLICE = 1 << 14
_HOP_BY_HOP = frozenset({"connection", "transfer-encoding", "keep-alive", "content-length"})


class Front:
    """port: of the front. seen: the requests so far. plan: may be replaced while it runs."""

    def __init__(self, port: int, plan: Plan, translator: Translator = lambda _: None) -> None:
        self.plan, self.seen, self.translator = plan, list[Request](), translator
        self._lock = threading.Lock()
        front = self

        class Handler(_Handler):
            upstream, owner = port, front

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.port = int(self._server.server_address[1])
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def fault(self, method: str, path: str, wanted: str) -> Fault:
        """What is to go wrong with this request."""
        with self._lock:
            request = Request(len(self.seen), method, path, wanted)
            self.seen.append(request)
        return self.plan(request) or Fault()

    def close(self) -> None:
        """Stop."""
        self._server.shutdown()
        self._server.server_close()


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    upstream: int
    owner: Front

    def do_GET(self) -> None:
        fault = self.owner.fault(self.command, self.path, self.headers.get("range", ""))
        body = self.rfile.read(int(self.headers.get("content-length", 0)))
        if fault.before:
            fault.before()
        if fault.status:
            self._answer(fault.status, f"<Error><Code>{fault.code}</Code></Error>".encode())
            return
        server = http.client.HTTPConnection("127.0.0.1", self.upstream, timeout=60)
        asked = Asked(self.command, self.path, {name.lower(): value for name, value in self.headers.items()}, body)
        if (other := self.owner.translator(asked)) is not None:
            with contextlib.closing(server):
                server.request(other.method, other.path, other.body, dict(other.headers))
                answer = server.getresponse()
                said = Answer(answer.status, answer.read())
            told = dict(other.told(said))
            self._answer(said.status, b"" if told else said.content, told)
            return
        with contextlib.closing(server):
            server.putrequest(self.command, self.path, skip_host=True, skip_accept_encoding=True)
            for name, value in self.headers.items():
                server.putheader(name, value)
            server.endheaders(body)
            answer = server.getresponse()
            content = answer.read()
        length = answer.getheader("content-length") or str(len(content))
        headers = {name: value for name, value in answer.getheaders() if name.lower() not in _HOP_BY_HOP}
        self._answer(answer.status, content, headers, length, fault)

    do_HEAD = do_PUT = do_POST = do_DELETE = do_GET  # noqa: N815  names of the library

    def _answer(
        self,
        status: int,
        content: bytes,
        headers: dict[str, str] | None = None,
        length: str | None = None,
        fault: Fault = Fault(),  # noqa: B008  a value
    ) -> None:
        self.send_response_only(status)
        for name, value in (headers or {}).items():
            self.send_header(name, value)
        self.send_header("Content-Length", length or str(len(content)))
        self.end_headers()
        if self.command == "HEAD":
            return
        sent = 0
        with contextlib.suppress(OSError):  # whoever asked has gone
            while sent < len(content):
                if fault.cut_after is not None and sent >= fault.cut_after:
                    self.close_connection = True
                    return
                step = content[sent : sent + _SLICE]
                self.wfile.write(step)
                sent += len(step)
                if fault.bytes_per_s:
                    time.sleep(len(step) / fault.bytes_per_s)

    def log_message(self, *_: object) -> None:
        """Nothing on standard error."""


@contextlib.contextmanager
def translating_front(port: int, translator: Translator) -> Iterator[Front]:
    """A front that asks the server on this port in its own words."""
    front = Front(port, lambda _: None, translator)
    try:
        yield front
    finally:
        front.close()


@contextlib.contextmanager
def faulty_front(port: int, plan: Plan = lambda _: None) -> Iterator[Front]:
    """A front before the server on this port."""
    front = Front(port, plan)
    try:
        yield front
    finally:
        front.close()
