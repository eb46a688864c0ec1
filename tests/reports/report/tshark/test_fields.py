"""What tshark says of single packets, read with pyshark."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from tests.conftest import SAMPLES
from wirewitness.reports.report.tshark import TsharkError, find_tshark
from wirewitness.reports.report.tshark.fields import packet_fields

FAULTS = SAMPLES / "mqtt_faults.pcapng"
PASSWORD = "lab-device-8Rk3"


def test_fields_stand_in_the_order_of_the_bytes_without_credentials(tshark: str) -> None:
    assert PASSWORD.encode() in FAULTS.read_bytes()
    found = packet_fields(find_tshark(), str(FAULTS), {1883: "mqtt"}, [4, 14])
    assert sorted(found) == [4, 14]
    lines = found[4]
    assert lines[0].startswith("layers eth, ip, tcp")
    order = [next(n for n, line in enumerate(lines) if text in line) for text in ("Msg Len", "MQTT", "Client ID:")]
    assert order == sorted(order)
    assert "  mqtt.passwd: (not shown)" in lines
    assert PASSWORD not in repr(found)


def test_mongo_documents_are_not_shown(tshark: str) -> None:
    found = packet_fields(find_tshark(), str(SAMPLES / "mongo_healthy.pcapng"), {27017: "mongo"}, range(1, 30))
    text = "\n".join(line for lines in found.values() for line in lines)
    assert "  Element: " in text
    assert "mongo.element.value.string: (not shown)" in text
    assert "String: " not in text


def test_values_do_not_stand_at_the_head_of_a_subtree(tshark: str) -> None:
    """Also behind an event loop of the caller."""
    asyncio.run(asyncio.sleep(0))
    path = SAMPLES / "kafka_admin.pcapng"
    assert b"86400000" in path.read_bytes()  # retention.ms of a topic that is made
    found = packet_fields(find_tshark(), str(path), {9092: "kafka"}, [18])
    text = "\n".join(found[18])
    assert "  Config" in found[18]
    assert "  Key: retention.ms" in text
    assert "kafka.config_value: (not shown)" in text
    assert "86400000" not in text


@pytest.mark.parametrize(("name", "told"), [("missing.pcapng", "No such file"), ("test_fields.py", "")])
def test_what_cannot_be_read_is_one_sentence(name: str, told: str, tshark: str) -> None:
    path = Path(__file__).with_name(name)
    with pytest.raises(TsharkError, match=rf"^pyshark cannot read {path}: .*{told}"):
        packet_fields(find_tshark(), str(path), {}, [1])
