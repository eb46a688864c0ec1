"""KAF305 version-mismatch: a client and a broker have no version of an API in common.

Finds
    Requests in a version that the broker does not offer, requests that it refuses with UNSUPPORTED_VERSION (35),
    clients so old that what they speak was removed from the broker, and old Fetch versions for which the broker has to
    convert what it stores. One finding for each client.

Why it matters
    Kafka 4 removed the versions of clients before 0.11. Brokers close the connection without an answer, or the client
    gives up by itself after ApiVersions, and says little about it: it never gets in.

How it decides
    offered: what ApiVersions answered on the same connection. A request outside of it is a warning, critical when
        requests of that API were not answered or refused.
    refused: error 35 to anything but ApiVersions itself, where it is how a client finds its version (KIP-511): a
    warning
        from `several` on, else info.
    too old: the client asks for Metadata in a version of Kafka 0.10 or before (0 to 2) although the broker offers Fetch
        only from version 4 on, and does nothing else than ask for ApiVersions and Metadata. critical, confidence
        medium.
    converted: Fetch below version 4 where the broker offers more: info.

False alarms
    A tool that asks for metadata and nothing else, with a very old library.

What it cannot tell
    What was offered, where the ApiVersions of the connection lies before the capture: only error 35 speaks then.

References
    KIP-35, KIP-511, KIP-896 (what Kafka 4 removed); KIP-98 (record format 2 from Fetch 4 on).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from wirewitness.analyser.base.addresses import server_of
from wirewitness.analyser.base.severity import Confidence, Severity
from wirewitness.analyser.base.times import clock_text, time_text
from wirewitness.analyser.base.titles import client_title, first_of, short
from wirewitness.analyser.base.words import count, names_text, printable, sentence_start, shown
from wirewitness.analyser.engine.rules.evidence import Proof
from wirewitness.analyser.engine.rules.findings import Evidence, Finding
from wirewitness.analyser.engine.rules.frame_rows import Row, rows_of
from wirewitness.analyser.engine.rules.rule import Frames, Rule
from wirewitness.analyser.kafka.rules.names import client_numbers, client_text

USED, EXCHANGES = "kafka_api_versions", "exchanges"
KEYS = ("cluster_id", "client_address", "client_id")
_OLD_METADATA, _FETCH_OF_FORMAT_2 = 2, 4
_ASKING = ("ApiVersions", "Metadata")
_TITLES = {
    "offered": "Version not offered",
    "too old": "Client too old for the broker",
    "refused": "UNSUPPORTED_VERSION",
    "converted": "Old Fetch version, converted",
}
_OLD = f" It knows no version of Fetch that the broker still takes ({_FETCH_OF_FORMAT_2} and later)."


def detect(frames: Frames, *, several: int = 3) -> Iterator[Finding]:
    """At most one finding for the client: the gravest."""
    used, exchanges = rows_of(frames[USED]), rows_of(frames[EXCHANGES])
    refused = [row for row in exchanges if row["error_code"] == 35 and row["operation"] != "ApiVersions"]
    outside = [row for row in used if _is_outside(row)]
    old = _too_old(used)
    converted = [row for row in used if _is_converted(row)]
    if outside:
        names = {row["api_name"] for row in outside}
        answered = not any(row["operation"] in names for row in exchanges)
        severity: Severity = "warning" if answered else "critical"
        yield _finding("offered", severity, "high", outside, _outside_text(outside, answered))
    elif old:
        yield _finding("too old", "critical", "medium", old, _old_text(old))
    elif refused:
        text = f"got UNSUPPORTED_VERSION (35) for {_requests_text(refused)}"
        yield _finding("refused", "warning" if len(refused) >= several else "info", "high", refused, text)
    elif converted:
        text = f"fetches in version {converted[0]['used_version_max']}, for which the broker converts what it stores"
        yield _finding("converted", "info", "high", converted, text)


def _is_outside(row: Row) -> bool:
    if row["api_name"] == "ApiVersions" or row["used_version_max"] is None or row["max_version"] is None:
        return False
    above: bool = row["used_version_max"] > row["max_version"]
    least = (row["used_version_min"], row["min_version"])
    return above or (None not in least and least[0] < least[1])


def _is_converted(row: Row) -> bool:
    used, offered = row["used_version_max"], row["max_version"]
    return row["api_name"] == "Fetch" and used is not None and used < _FETCH_OF_FORMAT_2 <= (offered or 0)


def _too_old(used: Sequence[Row]) -> list[Row]:
    """Metadata of a client of before 0.11 that does nothing else, at a broker that knows no Fetch of then."""
    asked = [row for row in used if row["api_name"] == "Metadata" and row["used_version_max"] is not None]
    least = [row["min_version"] for row in used if row["api_name"] == "Fetch" and row["min_version"] is not None]
    if not asked or not least or min(least) < _FETCH_OF_FORMAT_2:
        return []
    if any(row["api_name"] not in _ASKING and row["used_version_max"] is not None for row in used):
        return []
    return asked if max(row["used_version_max"] for row in asked) <= _OLD_METADATA else []


def _outside_text(outside: Sequence[Row], answered: bool) -> str:
    said = {
        f"{row['api_name']} {_versions(row['used_version_min'], row['used_version_max'])} (the broker offers "
        f"{_versions(row['min_version'], row['max_version'])})"
        for row in outside
    }
    return f"uses {names_text(sorted(said), 2)}" + ("" if answered else "; these got no response, or were refused")


def _old_text(old: Sequence[Row]) -> str:
    version = max(row["used_version_max"] for row in old)
    return f"asks for Metadata in version {version}, as clients before Kafka 0.11 do, and then gives up"


def _versions(low: int | None, high: int | None) -> str:
    return f"version {low}" if low == high else f"versions {low} to {high}"


def _requests_text(rows: Sequence[Row]) -> str:
    names = sorted({f"{shown(row['operation'])} {shown(row['version'])}" for row in rows})
    return f"{count(len(rows), 'request')} ({names_text(names, 4)})"


def _finding(cause: str, severity: Severity, confidence: Confidence, rows: Sequence[Row], text: str) -> Finding:
    first = rows[0]
    software = " ".join(str(first.get(name) or "") for name in ("software_name", "software_version")).strip()
    server = server_of(first)
    operations = sorted({str(name) for row in rows if (name := row.get("api_name") or row.get("operation"))})
    key = {"cluster": first["cluster_id"], "address": first["client_address"], "client_id": first["client_id"]}
    library = f" ({printable(software, 80)})" if software else ""
    return RULE.finding(
        severity=severity,
        confidence=confidence,
        provisional=cause == "too old",
        subject=key,
        title=f"{_TITLES[cause]}: {client_title(first)} at {short(server or 'a broker')}, {first_of(operations)}",
        sentence=(
            f"{sentence_start(client_text(first))}{library} {text}, at {server or 'a broker'} from "
            f"{clock_text(first['ts'])} on.{_OLD if cause == 'too old' else ''}"
        ),
        next_step=(
            "Use a newer client library, or set the protocol version that it is configured to speak higher (sarama: "
            "Config.Version; kafka-python: api_version; librdkafka: broker.version.fallback, api.version.request). "
            "Kafka 4 takes clients of 2.1 and later (KIP-896)."
        ),
        proof=Proof(first["ts"], rows[-1]["ts"], [_evidence(row) for row in rows]),
        numbers={
            **key,
            "cause": cause,
            "clients": [client_numbers(first, software=software or None)],
            "server": server,
            "where": server,
            "operations": operations,
            "error_code": first.get("error_code"),
            "requests_refused": len(rows) if cause in ("offered", "refused") else None,
            "since": time_text(first["ts"]),
        },
    )  # fmt: skip


def _evidence(row: Row) -> Evidence:
    return Evidence(row.get("request_file"), row.get("request_packet"), row["exchange_id"])


RULE = Rule(
    code="KAF305",
    question="refused",
    name="version-mismatch",
    severity="critical",
    confidence="high",
    reads={
        USED: (
            "ts", "exchange_id", "software_name", "software_version", "api_name", "min_version", "max_version",
            "used_version_min", "used_version_max", "server_address", "server_port",
        ),
        EXCHANGES: (
            "ts", "exchange_id", "operation", "version", "status", "error_code", "server_address", "server_port",
            "request_file", "request_packet",
        ),
    },
    partition_by=KEYS,
    detect=detect,
    rows={
        USED: "used_version_max IS NOT NULL OR api_name = 'Fetch'",
        EXCHANGES: "protocol = 'kafka' AND (error_code = 35 OR status = 'unanswered')",
    },
    suspects=(
        f"SELECT {', '.join(KEYS)} FROM r_{USED} WHERE api_name <> 'ApiVersions' AND (used_version_max > max_version "
        f"OR used_version_min < min_version OR (api_name = 'Metadata' AND used_version_max <= {_OLD_METADATA}) OR "
        f"(api_name = 'Fetch' AND used_version_max < {_FETCH_OF_FORMAT_2})) UNION ALL "
        f"SELECT {', '.join(KEYS)} FROM r_{EXCHANGES} WHERE error_code = 35 AND operation <> 'ApiVersions'"
    ),
)  # fmt: skip
