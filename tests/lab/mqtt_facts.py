"""What is known of an MQTT run without decoding a packet: from the broker's log and from what the clients printed.

In: LogEntries, a run's directory. Out: rows for MANIFEST.toml; LabError where log and clients do not agree.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from tests.lab.mosquitto_log import LogEntry, packets
from tests.lab.processes import LabError, read_events

LEVELS = {1: "3.1", 2: "3.1.1", 5: "5"}  # the broker's own numbers


def packet_counts(entries: Iterable[LogEntry]) -> dict[str, dict[str, int]]:
    """Return how many packets of each type the broker received and sent, as far as it logs them."""
    counts = Counter((entry.direction, entry.kind) for entry in packets(entries))
    return {
        direction: {kind: count for (one, kind), count in sorted(counts.items()) if one == direction}
        for direction in ("received", "sent")
    }


def messages(entries: Iterable[LogEntry], direction: str, name: str) -> list[dict[str, Any]]:
    """Return how many messages of each client, topic and QoS were received from or sent to it, as rows with NAME."""
    found = [one for one in entries if one.kind == "PUBLISH" and one.direction == direction]
    counts = Counter((one.client_id or "", one.fields["topic"], one.fields["qos"]) for one in found)
    return [
        {"client_id": client_id, "topic": topic, "qos": qos, name: count}
        for (client_id, topic, qos), count in sorted(counts.items())
    ]


def connections(entries: Iterable[LogEntry]) -> list[dict[str, Any]]:
    """Return who was let in and how often, by client id and version."""
    found = [one for one in entries if one.kind == "CONNECT"]
    counts = Counter((one.client_id or "", LEVELS[one.fields["level"]]) for one in found)
    return [
        {"client_id": client_id, "version": version, "connections": count}
        for (client_id, version), count in sorted(counts.items())
    ]


def refused_connections(entries: Iterable[LogEntry]) -> dict[str, int]:
    """Return how many CONNACKs had each code other than 0."""
    codes = Counter(one.fields["code"] for one in entries if one.kind == "CONNACK" and one.fields["code"])
    return {str(code): count for code, count in sorted(codes.items())}


def refused_subscriptions(entries: Iterable[LogEntry]) -> list[dict[str, Any]]:
    """Return the filters that were asked for and not granted."""
    return [
        {"client_id": one.client_id, "filter": name}
        for one in entries if one.kind == "SUBSCRIBE"
        for name, _, granted in one.fields["filters"] if granted is None
    ]  # fmt: skip


def refused_messages(entries: Iterable[LogEntry]) -> list[dict[str, Any]]:
    """Return the messages that the broker took from nobody: denied, or too large."""
    return [
        {"client_id": one.client_id, "topic": one.fields["topic"], "verdict": one.fields["verdict"].lower()}
        for one in entries
        if one.kind == "PUBLISH" and one.fields.get("verdict", "Received") != "Received"
    ]


def without_too_large(entries: Iterable[LogEntry], client_id: str, limit_bytes: int) -> list[LogEntry]:
    """Return the entries without messages that were larger than a client takes: logged as sent, and never sent."""
    return [
        one for one in entries
        if not ((one.direction, one.kind, one.client_id) == ("sent", "PUBLISH", client_id)
                and one.fields["size"] > limit_bytes)
    ]  # fmt: skip


def common(entries: list[LogEntry]) -> dict[str, Any]:
    """Return the facts that every run has."""
    return {
        "packets_logged": packet_counts(entries),
        "connection": connections(entries),
        "published": messages(entries, "received", "messages"),
        "delivered": messages(entries, "sent", "messages"),
    }


def events_of(directory: Path, name: str) -> list[dict[str, Any]]:
    """Return what a client printed."""
    return read_events(directory / f"{name}.out")


def check_deliveries(entries: list[LogEntry], directory: Path, names: dict[str, str]) -> None:
    """Raise LabError unless clients (client id by name of the output) printed exactly what the broker sent them."""
    for name, client_id in names.items():
        told = Counter((one["topic"], one["qos"]) for one in events_of(directory, name) if one["event"] == "received")
        sent = Counter(
            (one.fields["topic"], one.fields["qos"]) for one in entries
            if (one.direction, one.kind, one.client_id) == ("sent", "PUBLISH", client_id)
        )  # fmt: skip
        if told != sent:
            raise LabError(f"{client_id} printed {dict(told)}, the broker sent {dict(sent)}")
