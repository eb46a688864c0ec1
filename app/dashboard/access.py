"""Who may talk to the dashboard's server. In: every request and WebSocket; out: the same, or a refusal.

- Host: a name that the server is not known by is refused, since another site's name may be made to point here (DNS
  rebinding). An address is always good: no other site has it.
- Origin: only pages of this very server, host and port, may ask; other programs on this machine have pages as well.
- Token: where others can reach the server, the printed address has a secret that becomes a cookie at the first visit.
- Visitor: each browser gets a secret of its own as a cookie, by which it is known again: its uploads are for it alone.
- No page may be framed, and numbers about the server itself are not told.
"""

from __future__ import annotations

import hmac
import secrets
from collections.abc import Awaitable, Callable, Iterable, MutableMapping
from http.cookies import CookieError, SimpleCookie
from ipaddress import ip_address
from typing import Any
from urllib.parse import parse_qsl, quote, urlencode, urlsplit

Scope = MutableMapping[str, Any]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]

TOKEN = "token"
_CLOSED = ("/_stcore/metrics",)
_OPEN = ("/_stcore/health",)  # says "ok", to those who wait for the server
_HEADERS = (
    (b"content-security-policy", b"frame-ancestors 'none'"),
    (b"x-frame-options", b"DENY"),
    (b"referrer-policy", b"no-referrer"),
    (b"x-content-type-options", b"nosniff"),
)
_FORBIDDEN_CLOSE = 4403


def visitor_cookie(port: int) -> str:
    """Name of the cookie that tells browsers apart; cookies do not tell ports apart."""
    return f"wirewitness_{port}_visitor"


class Gate:
    """ASGI middleware. hosts: names that the server is known by. token: what visitors must have; None for nothing."""

    def __init__(self, app: App, *, hosts: Iterable[str], token: str | None, port: int) -> None:
        self._app = app
        self._hosts = {host.lower().rstrip(".") for host in hosts}
        self._token = token
        self._cookie = f"wirewitness_{port}"  # cookies do not tell ports apart
        self._visitor = visitor_cookie(port)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Hand the request on, or answer it."""
        if scope["type"] not in ("http", "websocket"):
            await self._app(scope, receive, send)
            return
        headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]}
        refusal = self._refusal(scope["path"], headers)
        if refusal is not None:
            await _refuse(scope, send, *refusal)
        elif self._token is None or scope["path"] in _OPEN or self._has_cookie(headers):
            await self._app(scope, receive, _with_headers(send, self._greeting(headers)))
        elif scope["type"] == "http" and self._in_query(scope):
            await self._welcome(scope, send)
        else:
            await _refuse(scope, send, 403, "Open the address that the dashboard printed when it began.")

    def _refusal(self, path: str, headers: dict[str, str]) -> tuple[int, str] | None:
        host = headers.get("host", "")
        if not self._is_ours(host):
            return 403, "This server is not known by that name; --allowed-host NAME makes it so."
        origin = headers.get("origin")
        if origin is not None and _netloc(origin) != host.lower():
            return 403, "Pages of other servers may not ask this one."
        if path.rstrip("/").endswith(_CLOSED):
            return 404, "Not here."
        return None

    def _is_ours(self, host: str) -> bool:
        try:
            parts = urlsplit(f"//{host}")
            name = parts.hostname or ""
            _ = parts.port  # a number, if there is one
        except ValueError:
            return False
        if not name or parts.path or parts.query or parts.fragment or "@" in host:
            return False
        return name.rstrip(".") in self._hosts or _is_address(name)

    def _has_cookie(self, headers: dict[str, str]) -> bool:
        return self._is_token(_cookie_of(headers, self._cookie))

    def _greeting(self, headers: dict[str, str]) -> list[tuple[bytes, bytes]]:
        """The cookie of a visitor who has none, with a page: what a page asks for besides comes at the same time."""
        if "text/html" not in headers.get("accept", "") or _cookie_of(headers, self._visitor):
            return []
        cookie = f"{self._visitor}={secrets.token_hex(16)}; Path=/; HttpOnly; SameSite=Lax"
        return [(b"set-cookie", cookie.encode())]

    def _in_query(self, scope: Scope) -> bool:
        return any(name == TOKEN and self._is_token(value) for name, value in _query(scope))

    def _is_token(self, value: str) -> bool:
        return self._token is not None and hmac.compare_digest(value.encode(), self._token.encode())

    async def _welcome(self, scope: Scope, send: Send) -> None:
        """The same address without the token, which goes along as a cookie from now on."""
        rest = urlencode([(name, value) for name, value in _query(scope) if name != TOKEN])
        # One slash, and no backslash, tab or line end, which browsers take for one or leave out: what begins with two
        # would be the address of another server.
        target = "/" + quote(scope["path"].lstrip("/")) + (f"?{rest}" if rest else "")
        cookie = f"{self._cookie}={self._token}; Path=/; HttpOnly; SameSite=Lax"
        await _answer(send, 303, "", ((b"location", target.encode()), (b"set-cookie", cookie.encode())))


def _cookie_of(headers: dict[str, str], name: str) -> str:
    try:
        cookie = SimpleCookie(headers.get("cookie", "")).get(name)
    except CookieError:
        return ""
    return cookie.value if cookie is not None else ""


def _query(scope: Scope) -> list[tuple[str, str]]:
    return parse_qsl(scope["query_string"].decode("latin-1"), keep_blank_values=True)


def _netloc(origin: str) -> str | None:
    try:
        return urlsplit(origin).netloc.lower()
    except ValueError:  # such as http://[x
        return None


def _is_address(name: str) -> bool:
    try:
        ip_address(name.partition("%")[0])
    except ValueError:
        return False
    return True


def _with_headers(send: Send, more: Iterable[tuple[bytes, bytes]]) -> Send:
    async def sending(message: MutableMapping[str, Any]) -> None:
        if message["type"] == "http.response.start":
            message = {**message, "headers": [*message.get("headers", ()), *_HEADERS, *more]}
        await send(message)

    return sending


async def _refuse(scope: Scope, send: Send, status: int, sentence: str) -> None:
    if scope["type"] == "websocket":
        await send({"type": "websocket.close", "code": _FORBIDDEN_CLOSE, "reason": sentence})
    else:
        await _answer(send, status, sentence)


async def _answer(send: Send, status: int, text: str, headers: Iterable[tuple[bytes, bytes]] = ()) -> None:
    plain = (b"content-type", b"text/plain; charset=utf-8")
    await send({"type": "http.response.start", "status": status, "headers": [plain, *_HEADERS, *headers]})
    await send({"type": "http.response.body", "body": text.encode()})
