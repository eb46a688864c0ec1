"""What the rules about TLS share: which flows they look at, how these are named, proven and counted.

In: rows of `flows` as dicts. Out: SQL, words, evidence, parts of a finding's numbers. Web traffic and the like is
nothing to these rules: they look at servers where a protocol of ours is spoken, or is to be expected.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from wirewitness.analyser.base.addresses import server_of, server_text
from wirewitness.analyser.base.titles import first_of
from wirewitness.analyser.base.words import names_text, printable
from wirewitness.analyser.engine.rules.evidence import Proof
from wirewitness.analyser.engine.rules.findings import Evidence
from wirewitness.analyser.engine.rules.frame_rows import Row
from wirewitness.analyser.network.rules.tls.settings import ALPN
from wirewitness.dissectors.registry import dissector_of

SERVER = ("server_address", "server_port")
# Columns by which a connection is named and proven.
PLACE_COLUMNS = ("flow_id", "client_address", "client_port", "ts_first", "ts_last", "ts_closed", "file", "first_packet")
MOST_NAMED = 20
MAX_NAME = 120

_EXPECTED = f"""
    protocol IS NOT NULL OR port_protocol IS NOT NULL OR tls_alpn IN {ALPN}
    OR (server_address, server_port) IN (SELECT (server_address, server_port) FROM flows WHERE protocol IS NOT NULL)
    OR (server_address, server_port) IN (SELECT (host, port) FROM kafka_brokers)"""
# Of TLS, at servers of ours.
ENCRYPTED = f"duplicate_of IS NULL AND encrypted AND tls_offered IS NOT NULL AND ({_EXPECTED})"
SIGNS: Mapping[str, str] = {"flows": "bool_or(encrypted AND tls_offered IS NOT NULL)"}
ROWS: Mapping[str, str] = {"flows": ENCRYPTED}
ASKS = ("kafka_brokers",)
_PROTOCOL_COLUMNS = ("protocol", "port_protocol", "sni")


def reads(*columns: str) -> dict[str, tuple[str, ...]]:
    """Tables and columns of a rule that wants these of a flow, besides its place."""
    return {
        "flows": tuple(dict.fromkeys((*PLACE_COLUMNS, *_PROTOCOL_COLUMNS, *columns))),
    }


def protocol_of(flows: Iterable[Row]) -> str | None:
    """The protocol that the server speaks or is expected to."""
    rows = list(flows)
    spoken = next((row["protocol"] for row in rows if row["protocol"]), None)
    return spoken or next((row["port_protocol"] for row in rows if row["port_protocol"]), None)


def server_words(flows: Sequence[Row]) -> str:
    """`10.0.0.9:9093 (broker1.example, Kafka)`: of one server, with the name that clients ask for."""
    names = sorted({row["sni"] for row in flows if row["sni"]})
    known = dissector_of(protocol_of(flows))
    inside = [names_text([printable(name, MAX_NAME) for name in names], 2)] if names else []
    inside += [] if known is None else [known.title]
    return server_text(flows[0]) + (f" ({', '.join(inside)})" if inside else "")


def clients_words(flows: Iterable[Row]) -> str:
    """Who they are, by address."""
    return names_text(list(dict.fromkeys(row["client_address"] or "(unknown address)" for row in flows)), 3)


def ends_title(flows: Sequence[Row], between: str = "and") -> str:
    """Clients and server in a title: `10.0.0.1 and 10.0.0.9:9093`."""
    clients = first_of(row["client_address"] or "(unknown address)" for row in flows)
    return f"{clients} {between} {server_text(flows[0])}"


def proof(flows: Sequence[Row]) -> Proof:
    """Connections as proof, at least one: their first packets."""
    return Proof(
        min(row["ts_first"] for row in flows),
        max(row["ts_closed"] or row["ts_last"] or row["ts_first"] for row in flows),
        (Evidence(row["file"], row["first_packet"], None) for row in flows),
    )


def numbers(flows: Sequence[Row]) -> dict[str, Any]:
    """What each finding about connections to one server has in its numbers."""
    counted = Counter(row["client_address"] for row in flows)
    return {
        "server": server_of(flows[0]),
        "where": server_text(flows[0]),
        "server_names": sorted({row["sni"] for row in flows if row["sni"]})[:MOST_NAMED],
        "connections": len(flows),
        "flows": [row["flow_id"] for row in flows[:MOST_NAMED]],
        "clients": [
            {"address": address, "client_id": None, "connections": number}
            for address, number in counted.most_common(MOST_NAMED)
        ],
    }


def alert_of(flow: Row, side: str) -> str | None:
    """The name of the fatal alert of `client` or `server`; None where none could be read."""
    level, _, name = (flow[f"{side}_tls_alert"] or "").partition(" ")
    return name if level == "fatal" else None
