"""`extract --redact`: what no dissector decodes is overwritten, for anything may stand there; all else stays as it was.

tshark reads what is written, independently of what chose and overwrote it.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.app.program import run
from tests.app.test_extract import packets
from tests.app.test_show import messages
from tests.support import mqtt_encode as mqtt
from tests.support.attacks import MQTT_SERVER, Wire, answer, kafka
from tests.support.packets import Captured, pcap
from tests.support.websocket import WebSocketTalk
from tests.support.wire import Talk

SECRET = b"tr0ub4dor-and-3"
BEGIN = mqtt.connect(4, "c"), mqtt.connack(properties=None)
TLS = bytes.fromhex("1603010020 01") + b"h" * 31 + bytes.fromhex("1703030014") + b"e" * 20


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


def unknown_protocol() -> list[Captured]:
    wire = Wire(Talk(server=("10.0.0.2", 8080)))
    return wire.say(True, b"LOGIN joe " + SECRET + b"\r\n").say(False, b"+OK " + SECRET).talk.packets


def around_messages() -> list[Captured]:
    """Bytes that belong to no message, behind a loss."""
    wire = Wire(Talk(server=MQTT_SERVER)).say(True, BEGIN[0]).say(False, BEGIN[1]).lose(True, 30)
    wire.say(True, b"\0" * 5 + SECRET)
    for number in range(1, 30):
        wire.say(True, mqtt.publish("topic/of/some/length", b"kept", qos=1, identifier=number))
        wire.say(False, mqtt.ack(4, number))
    return wire.talk.packets


def broken_message() -> list[Captured]:
    body = b"\x00\xffabc" + SECRET  # a topic that is longer than its message
    wire = Wire(Talk(server=MQTT_SERVER)).say(True, BEGIN[0]).say(False, BEGIN[1])
    return wire.say(True, bytes([0x30, len(body)]) + body).talk.packets


def unknown_apis() -> list[Captured]:
    """Messages of Kafka of which the header can be read: another API, a version that nobody knows."""
    wire = Wire(Talk(server=("10.0.0.2", 9092)))
    wire.say(True, kafka(3, 1, 1, struct.pack(">i", 0))).say(False, answer(1, struct.pack(">iii", 0, -1, 0)))
    for number, (key, version) in enumerate([(29_999, 0), (3, 99)], 2):
        wire.say(True, kafka(key, version, number, SECRET)).say(False, answer(number, SECRET))
    return wire.talk.packets


def unknown_inside_websocket() -> list[Captured]:
    return WebSocketTalk(None).open().binary(True, SECRET * 3).text(False, SECRET).packets


def around_frames_of_websocket() -> list[Captured]:
    talk = WebSocketTalk().open().binary(True, BEGIN[0]).binary(False, BEGIN[1])
    talk.server.send_ping(SECRET)
    talk._flush(False)
    return talk.binary(True, mqtt.publish("t", b"kept")).packets


CAPTURES = {
    one.__name__: one
    for one in (
        unknown_protocol,
        around_messages,
        broken_message,
        unknown_apis,
        unknown_inside_websocket,
        around_frames_of_websocket,
    )
}


def flow(capture: Path) -> str:
    rows = run("table", "flows", capture, "--format", "jsonl").stdout.decode().splitlines()
    return str(json.loads(rows[0])["flow_id"])


def told(capture: Path) -> list[tuple[str, str]]:
    return [(row["message_id"], row["operation"]) for row in messages(capture)]


@pytest.mark.parametrize("made", CAPTURES.values(), ids=CAPTURES)
def test_what_nobody_decoded(made: Callable[[], list[Captured]], tmp_path: Path, tshark: str) -> None:
    capture, redacted = tmp_path / "a.pcap", tmp_path / "redacted.pcap"
    capture.write_bytes(pcap(made(), nanoseconds=True))
    assert SECRET in capture.read_bytes()
    done = run("extract", capture, "--flow", flow(capture), "-o", redacted, "--redact")
    assert done.returncode == 0, done.stderr
    assert b"packets held credentials or what was not decoded" in done.stderr
    assert SECRET not in redacted.read_bytes()
    assert SECRET[-8:] not in redacted.read_bytes()
    assert told(redacted) == told(capture)
    before, after = packets(tshark, capture), packets(tshark, redacted)
    assert [line.split("\t")[:6] for line in before] == [line.split("\t")[:6] for line in after]  # but for the data
    assert (b"kept" in redacted.read_bytes()) == (b"kept" in capture.read_bytes())


def test_tls_stays(tmp_path: Path) -> None:
    capture, redacted = tmp_path / "a.pcap", tmp_path / "redacted.pcap"
    capture.write_bytes(pcap(Wire(Talk(server=("10.0.0.2", 9093))).say(True, TLS).talk.packets, nanoseconds=True))
    done = run("extract", capture, "--flow", flow(capture), "-o", redacted, "--redact")
    assert b"connections that speak TLS stay as they are: 1" in done.stderr
    assert TLS in redacted.read_bytes()
