"""Lines of Kafka's request log, made up or from what the lab kept of a broker's log.

In: fields of a line, or a sample's log. Out: text as log4j writes it with Kafka's own layout, `[%d] %p %m (%c)%n`.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from tests.lab import broker_log

START_MS = 1_795_173_918_282
LOGGER = "kafka.request.logger"
_API_VERSIONS = 18
# As the broker writes it of a client that does not say what it is.
_NAMELESS = {"softwareName": "unknown", "softwareVersion": "unknown"}


def date(ms: int) -> str:
    """As log4j's %d in a zone that is UTC."""
    return datetime.fromtimestamp(ms // 1000, UTC).strftime("%Y-%m-%d %H:%M:%S") + f",{ms % 1000:03}"


def heartbeat(**changes: Any) -> dict[str, Any]:
    """What a line says of a Heartbeat, with other values for some of its keys."""
    return {
        "isForwarded": False,
        "requestHeader": header(12, 4, 7, "HEARTBEAT"),
        "request": {"groupId": "orders", "generationId": 3, "memberId": "m-1", "groupInstanceId": None},
        "response": {"throttleTimeMs": 0, "errorCode": 27},
        "connection": "10.0.0.2:9092-10.0.0.11:40000-1-7",
        "totalTimeMs": 1.25,
        "requestQueueTimeMs": 0.05,
        "localTimeMs": 0.5,
        "remoteTimeMs": 0.25,
        "throttleTimeMs": 0,
        "responseQueueTimeMs": 0.1,
        "sendTimeMs": 0.35,
        "securityProtocol": "SASL_SSL",
        "principal": "User:billing",
        "listener": "CLIENTS",
        "clientInformation": {"softwareName": "apache-kafka-java", "softwareVersion": "3.9.0"},
        **changes,
    }


def header(api_key: int, version: int, correlation_id: int, name: str, client_id: str | None = "app") -> dict[str, Any]:
    """The header of a request."""
    return {
        "clientId": client_id,
        "requestApiVersion": version,
        "correlationId": correlation_id,
        "requestApiKey": api_key,
        "requestApiKeyName": name,
    }


def line(said: dict[str, Any] | str, ms: int = START_MS) -> str:
    """One line. said: its JSON, or what stands in its place."""
    text = said if isinstance(said, str) else json.dumps(said, separators=(",", ":"))
    return f"[{date(ms)}] DEBUG Completed request:{text} ({LOGGER})\n"


def log_of(records: Iterable[broker_log.LogRecord]) -> bytes:
    """The lines of records that the lab kept; what it did not keep (who asked, parts of the time) is made up."""
    numbers: dict[Any, int] = {}
    software: dict[Any, dict[str, str]] = {}
    records = list(records)
    for one in records:
        if one.api_key == _API_VERSIONS and "clientSoftwareName" in one.request:
            named = (one.request[f"clientSoftware{what}"] for what in ("Name", "Version"))
            software[one.client] = dict(zip(("softwareName", "softwareVersion"), named, strict=True))
    return "".join(
        line(
            heartbeat(
                isForwarded=one.forwarded,
                requestHeader=header(one.api_key, one.version, one.correlation_id, one.api_name, one.client_id),
                request=one.request,
                response="" if one.response is None else one.response,
                connection=f"{_end(one.server)}-{_end(one.client)}-0-{numbers.setdefault(one.client, len(numbers))}",
                totalTimeMs=one.latency_ms,
                clientInformation=software.get(one.client, _NAMELESS),
            ),
            one.logged_ms,
        )
        for one in records
    ).encode()


def write_sample_log(samples: Path, name: str, path: Path) -> Path:
    """The request log that belongs to a sample capture, as its broker wrote it."""
    path.write_bytes(log_of(broker_log.load(samples / "broker_logs" / f"{name}.jsonl.gz")))
    return path


def _end(end: broker_log.Endpoint) -> str:
    return f"{end.host}:{end.port}"
