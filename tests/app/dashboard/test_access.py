"""What the dashboard's server refuses, request by request, before anything of it is looked at."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from wirewitness.app.dashboard.access import Gate, visitor_cookie
from wirewitness.app.dashboard.serve import printed_address

PORT = 8501
SECRET = "a-long-secret"
OURS = "localhost:8501"


async def _inner(scope: Any, receive: Any, send: Any) -> None:
    if scope["type"] == "websocket":
        await send({"type": "websocket.accept"})
        return
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": b"inside"})


def asked(
    headers: dict[str, str], *, path: str = "/", query: str = "", kind: str = "http", token: str | None = None
) -> list[dict[str, Any]]:
    """What the client is told."""
    told: list[dict[str, Any]] = []

    async def send(message: Any) -> None:
        told.append(message)

    async def receive() -> Any:
        return {}

    gate = Gate(_inner, hosts=["localhost", "Watch.Example"], token=token, port=PORT)
    scope = {
        "type": kind, "path": path, "query_string": query.encode(),
        "headers": [(name.encode(), value.encode()) for name, value in headers.items()],
    }  # fmt: skip
    asyncio.run(gate(scope, receive, send))
    return told


def status(told: list[dict[str, Any]]) -> int | str:
    return told[0].get("status") or str(told[0]["type"])


def header(told: list[dict[str, Any]], name: bytes) -> str:
    return dict(told[0]["headers"]).get(name, b"").decode()


@pytest.mark.parametrize(
    ("host", "wanted"),
    [
        ("localhost:8501", 200),
        ("LOCALHOST", 200),
        ("watch.example.:80", 200),
        ("127.0.0.1:9000", 200),
        ("[::1]:8501", 200),
        ("evil.example", 403),
        ("localhost.evil.example:8501", 403),
        ("localhost@evil.example", 403),
        ("evil.example/localhost", 403),
        ("localhost:port", 403),
        ("", 403),
    ],
)
def test_a_name_that_is_not_ours_is_refused(host: str, wanted: int) -> None:
    assert status(asked({"host": host})) == wanted


@pytest.mark.parametrize(
    ("origin", "wanted"),
    [
        ("http://localhost:8501", "websocket.accept"),
        ("http://localhost:8502", "websocket.close"),
        ("http://127.0.0.1:8501", "websocket.close"),
        ("http://evil.example", "websocket.close"),
        ("null", "websocket.close"),
        ("http://[x", "websocket.close"),
    ],
)
def test_pages_of_other_servers_may_not_ask(origin: str, wanted: str) -> None:
    assert status(asked({"host": OURS, "origin": origin}, kind="websocket")) == wanted
    assert (status(asked({"host": OURS, "origin": origin})) == 200) is (wanted == "websocket.accept")


def test_no_page_is_framed_and_the_server_tells_nothing_of_itself() -> None:
    assert header(asked({"host": OURS}), b"content-security-policy") == "frame-ancestors 'none'"
    assert status(asked({"host": OURS}, path="/_stcore/metrics")) == 404
    assert status(asked({"host": OURS}, path="/_stcore/metrics/")) == 404


def test_a_token_opens_once_and_becomes_a_cookie() -> None:
    assert status(asked({"host": OURS}, token=SECRET)) == 403
    assert status(asked({"host": OURS}, token=SECRET, kind="websocket")) == "websocket.close"
    assert status(asked({"host": OURS}, query="token=another", token=SECRET)) == 403
    assert status(asked({"host": OURS}, path="/_stcore/health", token=SECRET)) == 200
    welcome = asked({"host": OURS}, path="//kafka-groups", query=f"capture=a%26b&token={SECRET}", token=SECRET)
    assert status(welcome) == 303
    assert header(welcome, b"location") == "/kafka-groups?capture=a%26b"
    cookie = header(welcome, b"set-cookie")
    assert "HttpOnly" in cookie
    kept = {"host": OURS, "cookie": f"theme=dark; {cookie.partition(';')[0]}"}
    assert status(asked(kept, token=SECRET)) == 200
    assert status(asked(kept, token=SECRET, kind="websocket")) == "websocket.accept"
    assert status(asked({"host": OURS, "cookie": "wirewitness_8501=another"}, token=SECRET)) == 403


@pytest.mark.parametrize("path", ["//host/x", "/\\host/x", "/\t/host/x", "/\r\n/host/x", "/\\/host", "///host"])
def test_nobody_is_sent_to_another_server(path: str) -> None:
    there = header(asked({"host": OURS}, path=path, query=f"token={SECRET}", token=SECRET), b"location")
    assert there.startswith("/")
    assert not set("\\\t\r\n") & set(there)
    assert not there.startswith("//")


def test_only_the_very_path_is_open() -> None:
    assert status(asked({"host": OURS}, path="/x/_stcore/health", token=SECRET)) == 403
    assert status(asked({"host": OURS}, path="/_stcore/health/", token=SECRET)) == 403


@pytest.mark.parametrize(
    ("host", "token", "address"),
    [
        ("127.0.0.1", None, "http://127.0.0.1:8501"),
        ("::1", None, "http://[::1]:8501"),
        ("10.0.0.1", "t", "http://10.0.0.1:8501/?token=t"),
    ],
)
def test_the_printed_address_has_the_token(host: str, token: str | None, address: str) -> None:
    assert printed_address(host, PORT, token) == address


def test_a_browser_is_known_again_by_a_cookie_of_its_own() -> None:
    page = {"host": OURS, "accept": "text/html,*/*"}
    first, second = (header(asked(page), b"set-cookie") for _ in range(2))
    name, _, value = first.partition(";")[0].partition("=")
    assert name == visitor_cookie(PORT)
    assert len(value) == 32
    assert "HttpOnly" in first
    assert "SameSite=Lax" in first
    assert second.partition(";")[0] != first.partition(";")[0]
    assert header(asked({**page, "cookie": f"{name}={value}"}), b"set-cookie") == ""
    assert header(asked({**page, "accept": "*/*"}), b"set-cookie") == ""
    assert status(asked({**page, "cookie": f"{name}={value}"}, token=SECRET)) == 403
