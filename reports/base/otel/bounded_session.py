"""HTTP to an endpoint that nobody knows. In: requests of the SDK. Out: answers, bounded in bytes and time, or an error.

What comes back may be endless, or come byte by byte; timeouts of sockets are between two bytes. So another thread shuts
the connection down when the time of a request is over, and no more of an answer is read than somebody looks at.
"""

from __future__ import annotations

import io
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

import requests
from requests.adapters import HTTPAdapter
from urllib3.exceptions import HTTPError

# Of an answer; one that takes all spans is empty, and of others the SDK shows the status line.
ANSWER_BYTES = 16 << 10
_REDIRECTS = range(300, 400)


class NotTaken(requests.RequestException):
    """What was sent is not taken, and to send it again is of no use. The text is one sentence's end."""


class BoundedSession(requests.Session):
    """A session for one thread. trouble: why the last request failed, "" where others say that."""

    def __init__(self, timeout_s: float) -> None:
        """timeout_s: how long a request may take until its answer was read; less where the caller of one says so. Names
        are looked up, and addresses tried, in times of their own."""
        super().__init__()
        self.trouble = ""
        self._timeout_s = timeout_s
        self._line = _Line()
        self.headers["Accept-Encoding"] = "identity"
        for scheme in ("http://", "https://"):
            self.mount(scheme, _Adapter(self._line.opened))

    def send(self, request: requests.PreparedRequest, **kwargs: Any) -> requests.Response:
        """As requests.Session.send, which all requests go through; of the answer at most ANSWER_BYTES. NotTaken where
        it sends on to elsewhere; requests.ConnectionError where no whole answer came in time."""
        self.trouble = ""
        asked = kwargs.get("timeout")
        limit_s = min(asked, self._timeout_s) if isinstance(asked, int | float) else self._timeout_s
        kwargs |= {"stream": True, "allow_redirects": False}
        try:
            with self._line.shut_after(limit_s):
                response = super().send(request, **kwargs)
                _read(response)
            if self._line.is_shut:  # which looks like the end of an answer
                raise requests.Timeout
        except (requests.RequestException, HTTPError, OSError) as error:
            if self._line.is_shut or isinstance(error, requests.Timeout):
                self.trouble = f"no whole answer in {self._timeout_s:g} s"
            raise requests.ConnectionError(self.trouble or error) from error
        if response.status_code in _REDIRECTS:
            self.trouble = f"{response.status_code}, it sends on to elsewhere: name the URL that takes spans"
            raise NotTaken(self.trouble)
        return response

    def get_redirect_target(self, resp: requests.Response) -> str | None:
        """Nowhere: requests would read all of the answer on the way."""
        return None

    def close(self) -> None:
        """As requests.Session.close."""
        super().close()
        self._line.close()


def _read(response: requests.Response) -> None:
    """Put the beginning of the body in its place; a connection whose answer has more is not used again."""
    raw, data = response.raw, b""
    try:
        while len(data) <= ANSWER_BYTES and (more := raw.read(ANSWER_BYTES + 1 - len(data), decode_content=False)):
            data += more
    except BaseException:
        response.close()
        raise
    if len(data) > ANSWER_BYTES:
        response.close()
    response.raw = io.BytesIO(data[:ANSWER_BYTES])


class _Line:
    """The connection of a session, which has one at a time. is_shut: the time of the last request was over.

    A descriptor of its own stays good while TLS takes the socket over, and once an answer is all that holds it.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._socket: socket.socket | None = None
        self.is_shut = False

    def opened(self, new: socket.socket) -> None:
        """This is the connection from now on."""
        self.close()
        with self._lock:
            self._socket = new.dup()
        if self.is_shut:
            self._shut()

    @contextmanager
    def shut_after(self, limit_s: float) -> Iterator[None]:
        """Nothing is waited for any longer, whatever it is."""
        self.is_shut = False
        timer = threading.Timer(limit_s, self._shut)
        timer.daemon = True
        timer.start()
        try:
            yield
        finally:
            timer.cancel()

    def close(self) -> None:
        """Let go of it."""
        with self._lock:
            if self._socket is not None:
                self._socket.close()
            self._socket = None

    def _shut(self) -> None:
        self.is_shut = True
        with self._lock, suppress(OSError):
            if self._socket is not None:
                self._socket.shutdown(socket.SHUT_RDWR)


class _Adapter(HTTPAdapter):
    """Tells of each connection's socket, also to a proxy, before anything is read of it."""

    def __init__(self, opened: Callable[[socket.socket], None]) -> None:
        self._opened = opened
        super().__init__()

    def init_poolmanager(self, *args: Any, **kwargs: Any) -> None:
        """As HTTPAdapter.init_poolmanager."""
        super().init_poolmanager(*args, **kwargs)
        self._watch(self.poolmanager)

    def proxy_manager_for(self, proxy: str, **kwargs: Any) -> Any:
        """As HTTPAdapter.proxy_manager_for."""
        is_new = proxy not in self.proxy_manager
        manager = super().proxy_manager_for(proxy, **kwargs)
        if is_new:
            self._watch(manager)
        return manager

    def _watch(self, manager: Any) -> None:
        classes = manager.pool_classes_by_scheme.items()
        manager.pool_classes_by_scheme = {scheme: _watched(pool, self._opened) for scheme, pool in classes}


def _watched(pool: Any, opened: Callable[[socket.socket], None]) -> type:
    """A class of pools whose connections tell of their sockets."""

    def connected(self: Any) -> socket.socket:
        new: socket.socket = pool.ConnectionCls._new_conn(self)
        opened(new)
        return new

    connection = type(pool.ConnectionCls.__name__, (pool.ConnectionCls,), {"_new_conn": connected})
    return type(pool.__name__, (pool,), {"ConnectionCls": connection})
