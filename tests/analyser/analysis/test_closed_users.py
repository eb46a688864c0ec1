"""User names of logins: closed by default, open in tables with --payload, and never in the line on a message."""

from __future__ import annotations

import struct

import pytest

from tests.support import mqtt_encode as mqtt
from tests.support.attacks import MQTT_SERVER, answer, kafka, spoken, text
from tests.support.wire import decode
from wirewitness.analyser.base.options import ReadOptions
from wirewitness.analyser.inputs import analysis_of
from wirewitness.dissectors.core.closed import closed_user
from wirewitness.dissectors.registry import PROTOCOLS

USER = "alice"


def bare_token() -> bytes:
    """A login of Kafka without a header around its token."""
    token = b"\0" + USER.encode() + b"\0correct-horse"
    return spoken(
        (True, kafka(17, 0, 1, text(b"PLAIN"))),
        (False, answer(1, struct.pack(">hih", 0, 1, 5) + b"PLAIN")),
        (True, struct.pack(">i", len(token)) + token),
        (False, struct.pack(">i", 0)),
    )


def connect() -> bytes:
    packet = mqtt.connect(4, "c", user_name=USER, password=b"correct-horse")
    return spoken((True, packet), (False, mqtt.connack(properties=None)), server=MQTT_SERVER)


@pytest.mark.parametrize("payload", [False, True])
@pytest.mark.parametrize(
    ("capture", "table"), [(bare_token(), "kafka_authentications"), (connect(), "mqtt_connections")]
)
def test_users_are_open_in_tables_of_logins_only(capture: bytes, table: str, payload: bool) -> None:
    options = ReadOptions(payload=payload)
    decoded = decode(capture, [table, "messages"], options=options)
    with analysis_of(decoded, [table, "messages"], options, PROTOCOLS.values()) as analysis:
        (login,) = analysis.arrow(table, columns=["user_name"]).to_pylist()
        lines = [row["summary"] or "" for row in analysis.arrow("messages", columns=["summary"]).to_pylist()]
    assert login["user_name"] == (USER if payload else closed_user(USER))
    assert any(f"user_name={closed_user(USER)}" in line for line in lines)
    assert not any(USER in line for line in lines)
