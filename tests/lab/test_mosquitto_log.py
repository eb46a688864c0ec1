"""Mosquitto's log as records."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.lab import mosquitto_log
from tests.lab.mosquitto_log import Endpoint, LogEntry

OPENED = "1: New connection from 10.0.0.9:4000 on port 1883."
CONNECTED = "1: New client connected from 10.0.0.9:4000 as the lamp (p2, c1, k60, u'ann')."
METER = Endpoint("10.0.0.9", 4000)


def read(*lines: str) -> list[LogEntry]:
    return list(mosquitto_log.read_log([OPENED, CONNECTED, *(f"2: {line}\n" for line in lines)]))[2:]


@pytest.mark.parametrize(
    ("line", "direction", "kind", "fields"),
    [
        pytest.param("Sending CONNACK to the lamp (1, 0)", "sent", "CONNACK", {"session_present": 1, "code": 0},
                     id="connack"),
        pytest.param("Received PUBLISH from the lamp (d1, q2, r1, m7, 'a 'b/c', ... (12 bytes))", "received", "PUBLISH",
                     {"verdict": "Received", "dup": 1, "qos": 2, "retain": 1, "mid": 7, "topic": "a 'b/c", "size": 12},
                     id="publish"),
        pytest.param("Denied PUBLISH from the lamp (d0, q1, r0, m1, 's', ... (0 bytes))", "received", "PUBLISH",
                     {"verdict": "Denied", "dup": 0, "qos": 1, "retain": 0, "mid": 1, "topic": "s", "size": 0},
                     id="denied publish"),
        pytest.param("Sending PUBLISH to the lamp (d0, q0, r0, m0, 'a', ... (5 bytes))", "sent", "PUBLISH",
                     {"dup": 0, "qos": 0, "retain": 0, "mid": 0, "topic": "a", "size": 5}, id="delivery"),
        pytest.param("Received PUBACK from the lamp (Mid: 3, RC:0)", "received", "PUBACK", {"mid": 3, "code": 0},
                     id="puback"),
        pytest.param("Received PUBREL from the lamp (Mid: 3)", "received", "PUBREL", {"mid": 3}, id="pubrel"),
        pytest.param("Sending PUBREC to the lamp (m3, rc135)", "sent", "PUBREC", {"mid": 3, "code": 135}, id="pubrec"),
        pytest.param("Sending PUBCOMP to the lamp (m3)", "sent", "PUBCOMP", {"mid": 3}, id="pubcomp"),
        pytest.param("Received PINGREQ from the lamp", "received", "PINGREQ", {}, id="ping"),
        pytest.param("Received DISCONNECT from the lamp", "received", "DISCONNECT", {}, id="disconnect"),
        pytest.param("Client the lamp already connected, closing old connection.", "event", "taken over", {},
                     id="take-over"),
        pytest.param("Client the lamp has exceeded timeout, disconnecting.", "event", "silent", {}, id="silent"),
        pytest.param("Client the lamp closed its connection.", "event", "closed", {}, id="closed"),
        pytest.param("Client the lamp disconnected.", "event", "disconnected", {"reason": ""}, id="left"),
        pytest.param("Client the lamp disconnected due to protocol error.", "event", "disconnected",
                     {"reason": "protocol error"}, id="thrown out"),
    ],
)  # fmt: skip
def test_a_line_becomes_an_entry(line: str, direction: str, kind: str, fields: dict[str, Any]) -> None:
    assert read(line) == [LogEntry(2, direction, kind, "the lamp", METER, fields)]


@pytest.mark.parametrize("line", ["mosquitto version 2.0.11 running", "No will message specified.", "", "\tx"])
def test_other_lines_are_left_out(line: str) -> None:
    assert read(line) == []


def test_a_connect_has_its_will() -> None:
    lines = [OPENED, CONNECTED, "1: Will message specified (4 bytes) (r1, q2).", "1: \twills/lamp"]
    [_, connect] = mosquitto_log.read_log(lines)
    assert connect == LogEntry(1, "received", "CONNECT", "the lamp", METER, {
        "level": 2, "clean": 1, "keep_alive_s": 60, "user": "ann",
        "will": {"size": 4, "retain": 1, "qos": 2, "topic": "wills/lamp"},
    })  # fmt: skip


def test_filters_are_listed_with_what_was_granted() -> None:
    [asked, kept, answer, gone, *_] = read(
        "Received SUBSCRIBE from the lamp", "\ta/# (QoS 2)", "the lamp 1 a/#", "\tsecret (QoS 1)",
        "Sending PUBLISH to the lamp (d0, q0, r1, m0, 'a/b', ... (1 bytes))", "Sending SUBACK to the lamp",
        "Received UNSUBSCRIBE from the lamp", "\ta/#", "the lamp a/#", "Sending UNSUBACK to the lamp",
    )  # fmt: skip
    assert asked.fields == {"filters": [["a/#", 2, 1], ["secret", 1, None]]}
    assert (kept.kind, answer.kind) == ("PUBLISH", "SUBACK")
    assert gone.fields == {"filters": [["a/#", None, None]]}


def test_a_client_id_means_its_last_connection() -> None:
    entries = read(
        "New connection from 10.0.0.8:5000 on port 1883.",
        "Client the lamp already connected, closing old connection.",
        "New client connected from 10.0.0.8:5000 as the lamp (p5, c0, k5).",
        "Received PINGREQ from the lamp",
    )
    assert [entry.client for entry in entries] == [Endpoint("10.0.0.8", 5000), METER, *[Endpoint("10.0.0.8", 5000)] * 2]


def test_a_refused_connection_is_found_where_only_one_can_be_meant() -> None:
    refused = ("Sending CONNACK to 10.0.0.8 (0, 5)", "Client <unknown> disconnected, not authorised.")
    opened = [f"New connection from 10.0.0.8:{port} on port 1883." for port in (5000, 5001)]
    [_, answer, _] = read(opened[0], *refused)
    assert (answer.client_id, answer.client, answer.fields["code"]) == (None, Endpoint("10.0.0.8", 5000), 5)
    [_, _, answer, _] = read(*opened, *refused)
    assert answer.client is None


def test_saved_entries_are_the_same_again(tmp_path: Path) -> None:
    entries = read("Received SUBSCRIBE from the lamp", "\ta/# (QoS 2)", "Sending SUBACK to the lamp")
    mosquitto_log.save(entries, tmp_path / "log.jsonl.gz")
    assert mosquitto_log.load(tmp_path / "log.jsonl.gz") == entries
