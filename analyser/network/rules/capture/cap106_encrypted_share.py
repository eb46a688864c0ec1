"""CAP106 encrypted-share: connections that speak TLS and could not be decrypted.

Finds
    Connections whose first bytes are TLS records, with the server names that clients asked for, and what they lack: a
    key (`--keylog`), the right key, their beginning. Those that were decrypted are not among them. Where other
    connections of such a client say which library it is, the next step names the way to log its keys.

Why it matters
    Nothing inside them is seen by any rule. If the flows in question are among them, silence means nothing.

How it decides
    A ClientHello, or records of TLS in both directions; ports do not count. A connection whose handshake came to
    nothing hides nothing, and does not count. All in one finding for the whole capture, with packets of the connections
    that were not decrypted. What to do depends on what they lack: where keys were given, that they lack theirs.

False alarms
    A flow that begins in the middle of a connection and happens to look like a TLS record.

References
    RFC 8446, record layer and ClientHello; RFC 6066, server_name.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from wirewitness.analyser.base.words import count
from wirewitness.analyser.engine.rules.evidence import REMARK_COLUMNS, proof_of
from wirewitness.analyser.engine.rules.findings import Finding
from wirewitness.analyser.engine.rules.flow_rows import FLOW_COLUMNS, MOST_NAMED, endpoints_text
from wirewitness.analyser.engine.rules.frame_rows import Row, rows_of
from wirewitness.analyser.engine.rules.rule import Frames, Rule
from wirewitness.dissectors.carriers.tls.key_logging import WAYS, WITHOUT_KEYS, Way
from wirewitness.dissectors.core.encryption import (
    DECRYPTED,
    LOST,
    NO_KEY,
    NO_START,
    SNAPPED,
    START_LOST,
    UNSUPPORTED,
    UNSUPPORTED_VERSION,
    WRONG_KEY,
)

# How clients can be made to log their TLS keys. In: names by which libraries call themselves. Out: words.


def ways_of(libraries: Iterable[str]) -> str:
    """About those that are known, as the end of a sentence; empty where none is."""
    found: dict[Way, list[str]] = {}
    for name in sorted(set(libraries)):
        way = next((way for way in WAYS if way.libraries and name.lower().startswith(way.libraries)), None)
        if way is not None:
            found.setdefault(way, []).append(name)
    parts = [f"{', '.join(names)}: {_said(way)}" for way, names in found.items()]
    return f". To log keys here: {'; '.join(parts)}" if parts else ""


def _said(way: Way) -> str:
    told = ", ".join(part for part in (way.note, "" if way.tried else "not tried") if part)
    return f"{way.command}{f' ({told})' if told else ''}"


# Tables in which clients say what they are, on connections that can be read.
_KAFKA_NAMES, _MONGO_NAMES = "kafka_api_versions", "mongo_commands"
_IS_THERE = "EXISTS (SELECT 1 FROM expert_infos WHERE code = 'encrypted')"


def detect(frames: Frames, *, flows_least: int = 1) -> Iterator[Finding]:
    """At most one finding, from `flows_least` encrypted flows on."""
    flows = rows_of(frames["flows"])
    encrypted = [f for f in flows if f["encrypted"] and f["tls_decryption"] not in (None, DECRYPTED, LOST)]
    ids = {f["flow_id"] for f in encrypted}
    proof = [row for row in rows_of(frames["expert_infos"]) if row["flow_id"] in ids]
    if not proof or len(encrypted) < flows_least:
        return
    carried, hidden = (sum(f["bytes_to_server"] + f["bytes_to_client"] for f in held) for held in (flows, encrypted))
    names = sorted({f["sni"] for f in encrypted if f["sni"]})
    asked = f", for {', '.join(names[:3])}{' and others' if len(names) > 3 else ''}" if names else ""
    lacking = Counter(f["tls_decryption"] for f in encrypted)
    lack = "".join(f"; {what}: {many}" for what, many in lacking.most_common())
    keyless = {f["client_address"] for f in encrypted if f["tls_decryption"] in (NO_KEY, WRONG_KEY)}
    said = [(row["client_address"], row["software_name"]) for row in rows_of(frames[_KAFKA_NAMES])]
    said += [(row["client_address"], row["driver"]) for row in rows_of(frames[_MONGO_NAMES])]
    libraries = sorted({name for address, name in said if name and address in keyless})
    yield RULE.finding(
        subject={"capture": "all"},
        title=f"{len(encrypted):,} of {count(len(flows), 'connection')} encrypted: no rule sees what is inside",
        sentence=(
            f"{len(encrypted):,} of {count(len(flows), 'connection')} with data are encrypted (TLS{asked}), with "
            f"{hidden / max(carried, 1):.0%} of the stream bytes, for example between {endpoints_text(encrypted[0])}. "
            f"No rule sees what is inside{lack}."
        ),
        next_step=_next_step(lacking, libraries, flows),
        proof=proof_of(proof),
        numbers={
            "flows": len(flows),
            "encrypted_flows": len(encrypted),
            "lacking": dict(lacking),
            "stream_bytes": carried,
            "encrypted_bytes": hidden,
            "server_names": names[:MOST_NAMED],
            "libraries": libraries[:MOST_NAMED],
            "examples": [{"flow_id": f["flow_id"], "endpoints": endpoints_text(f)} for f in encrypted[:MOST_NAMED]],
        },
    )


def _before_the_keys(flows: Sequence[Row]) -> int:
    """Connections without a key that began before the first one to their server that a key opens."""
    first: dict[str, Any] = {}
    for f in flows:
        if f["tls_decryption"] in (DECRYPTED, LOST):
            first[f["server_address"]] = min(f["ts_first"], first.get(f["server_address"], f["ts_first"]))
    return sum(
        f["tls_decryption"] == NO_KEY and f["server_address"] in first and f["ts_first"] < first[f["server_address"]]
        for f in flows
    )


def _without_keys(flows: Iterable[Row]) -> str:
    """What tells of these connections where no key opens them, as a sentence; empty where nothing is known."""
    likely = {f["port_protocol"] for f in flows if f["tls_decryption"] in (NO_KEY, WRONG_KEY)}
    told = "; ".join(WITHOUT_KEYS[name] for name in sorted(likely & WITHOUT_KEYS.keys()))
    return f" Keys of some clients are enough for theirs; without keys there is {told}." if told else ""


def _next_step(lacking: Counter[str], libraries: Sequence[str], flows: Sequence[Row]) -> str:
    opened = any(f["tls_decryption"] in (DECRYPTED, LOST) for f in flows)
    steps = []
    if lacking.keys() & {NO_KEY, WRONG_KEY}:
        log = "let a client or the server log its keys and give the file with --keylog (docs/tls.md)"
        if opened:
            log = "the keys given open other connections: add that of these clients, or of the server (docs/tls.md)"
        if not lacking[NO_KEY]:
            log = "give the key log of this very run: the given one has other keys (docs/tls.md)"
        steps.append(log + ways_of(libraries))
    if before := _before_the_keys(flows):
        steps.append(
            f"{before:,} of them began before the first connection to its server that a key opens: keys are logged "
            "of connections made from then on, so let these clients connect again"
        )
    if lacking[START_LOST]:
        steps.append("capture without packets lost (a larger buffer, fewer ports), since the handshake says which key")
    if lacking[SNAPPED]:
        steps.append("capture whole packets (tcpdump -s 0), since no key opens a part of a record")
    if lacking[NO_START]:
        steps.append("begin the capture before the clients connect, since without the handshake no key opens them")
    if lacking.keys() & {UNSUPPORTED, UNSUPPORTED_VERSION}:
        steps.append("use another cipher suite or version of TLS (docs/tls.md)")
    without = _without_keys(flows)
    return f"If the answer may be in them: {'; '.join(steps)}.{without} Or capture after the point where TLS ends."


def _one_of_each(table: str, name: str) -> str:
    """SQL: one row for each client and library, where something is encrypted."""
    return (
        f"{_IS_THERE} AND exchange_id IN (SELECT min(exchange_id) FROM {table} WHERE {name} IS NOT NULL "
        f"GROUP BY client_address, {name})"
    )


RULE = Rule(
    code="CAP106",
    question="capture",
    name="encrypted-share",
    severity="info",
    confidence="high",
    reads={
        "flows": (
            *FLOW_COLUMNS,
            "encrypted",
            "sni",
            "tls_decryption",
            "bytes_to_server",
            "bytes_to_client",
            "ts_first",
            "port_protocol",
        ),
        "expert_infos": (*REMARK_COLUMNS, "flow_id"),
        _KAFKA_NAMES: ("client_address", "software_name"),
        _MONGO_NAMES: ("client_address", "driver"),
    },
    partition_by=(),
    signs={"expert_infos": "bool_or(code = 'encrypted')"},
    detect=detect,
    rows={
        "flows": f"bytes_to_server + bytes_to_client > 0 AND duplicate_of IS NULL AND {_IS_THERE}",
        _KAFKA_NAMES: _one_of_each(_KAFKA_NAMES, "software_name"),
        _MONGO_NAMES: _one_of_each(_MONGO_NAMES, "driver"),
        "expert_infos": "code = 'encrypted' AND ts IS NOT NULL",
    },
)
