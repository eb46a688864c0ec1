"""Network addresses with their ports, in the one form that sentences and numbers have. In: addresses. Out: text."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from wirewitness.analyser.base.words import printable

# A host's name comes from the wire; longer ones are cut.
_MAX_HOST = 120


def endpoint_text(host: str | None, port: int | None) -> str:
    """`10.0.0.9:9092`, `[fd00::9]:9092`, as it stands in settings; what is not known is left out or said."""
    name = printable(host, _MAX_HOST) if host else "(unknown address)"
    name = f"[{name}]" if ":" in name else name
    return name if port is None else f"{name}:{port}"


def server_text(row: Mapping[str, Any]) -> str:
    """The server of a row of flows, connections or requests."""
    return endpoint_text(row["server_address"], row["server_port"])


def client_endpoint_text(row: Mapping[str, Any]) -> str:
    """The client of such a row, with its port."""
    return endpoint_text(row["client_address"], row["client_port"])


def server_of(row: Mapping[str, Any]) -> str | None:
    """`server` of a finding's numbers: findings about one server are put together by it. None where it is not known."""
    return server_text(row) if row["server_address"] else None


def who_is(name: str | None, place: str | None, *, kind: str = "client", detail: str = "", most: int = 160) -> str:
    """A client in a sentence, whatever its protocol: `client shop-1 at 10.0.0.3`, `the client at 10.0.0.3`.

    place: its address, or its endpoint. kind: what has that name, client or application. detail: in brackets.
    """
    who = f"{kind} {printable(name, most)}" if name else "the client"
    return f"{who} at {place or '(unknown address)'}" + (f" ({detail})" if detail else "")
